"""Resolves every table and column of a parsed SQL query against declared tables.

Scopes, aliases, CTEs and the dialect's rules for case are sqlglot's (`optimizer.qualify`); what it
leaves open is checked beside it. Floor 2: imports from the floors below; `sqlglot` is imported on
use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pytest_specdec.checks.sql_rules import alias_used_as_column, column_beside_aggregate
from pytest_specdec.errors import did_you_mean
from pytest_specdec.json_text import shortened_text
from pytest_specdec.sql_tables import Tables

# Columns that every table has, and the table that is there to select from nothing.
_HIDDEN_COLUMNS = {
    "sqlite": {"rowid", "oid", "_rowid_"},
    "duckdb": {"rowid"},
    "postgres": {"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"},
    "oracle": {"ROWID", "ROWNUM"},
}
_DEFAULT_SCHEMA = {"postgres": "public", "tsql": "dbo"}
_DUAL = {"mysql": "dual", "oracle": "DUAL"}


class Unresolved(ValueError):
    """A statement does not fit the declared tables; `str` says where.

    Attributes:
        kind: for the finding.
        hint: what is declared.
    """

    def __init__(self, fact: str, *, hint: str | None = None, kind: str = "unknown name") -> None:
        super().__init__(fact)
        self.kind = kind
        self.hint = hint


class DeclaredTables:
    """The declared tables, as sqlglot's optimizer wants them."""

    def __init__(self, tables: Tables, rules: str) -> None:
        from sqlglot import exp
        from sqlglot.schema import MappingSchema

        self.tables = tables
        self.rules = rules
        self.dialect = rules.partition(",")[0]
        self.hidden_columns = _HIDDEN_COLUMNS.get(self.dialect, set())
        self.schema = MappingSchema(dialect=rules, normalize=False)
        depth = min(len(name) for name in tables)  # sqlglot wants one depth for all
        # Where a table is declared without its schema, the one that a database looks in is right.
        self.schemas = {"", *(name[-2] for name in tables if len(name) > 1)}
        self.schemas |= {_DEFAULT_SCHEMA.get(self.dialect, "")}
        self.has_default_schema = depth == 1 and self.dialect in _DEFAULT_SCHEMA
        for name, columns in tables.items():
            parts = [exp.to_identifier(part, quoted=True) for part in reversed(name[-depth:])]
            table = exp.Table(**dict(zip(("this", "db", "catalog"), parts, strict=False)))
            self.schema.add_table(table, dict.fromkeys(columns, "unknown"))

    def columns(self, table: Any) -> list[str]:
        """The columns of a table. Raises Unresolved for a table that is not declared."""
        from sqlglot.errors import SchemaError

        bare = table.copy()
        bare.set("alias", None)
        try:
            columns = list(self.schema.column_names(bare))
        except SchemaError as error:
            raise Unresolved(str(error)) from None
        if not columns or (self.has_default_schema and table.db not in self.schemas):
            shown = ".".join(part.name for part in bare.parts)
            known = {".".join(name) for name in self.tables}
            raise Unresolved(f"unknown table: `{shown}`", hint=did_you_mean(shown, known))
        return columns

    def resolve_query(self, query: Any) -> Any:
        """The query with all names qualified."""
        from sqlglot import exp
        from sqlglot.errors import SqlglotError
        from sqlglot.optimizer.qualify import qualify

        self._remove_dual(query)
        has_functions = self._check_tables(query)
        if query.find(exp.Pivot) is not None:
            return query  # what its columns are called is left to the database
        self._check_aliases(query, has_functions=has_functions)
        self._replace_what_is_no_column(query)
        used = sorted({table.name for table in query.find_all(exp.Table)})
        try:
            qualified = qualify(
                query,
                dialect=self.rules,
                schema=self.schema,
                validate_qualify_columns=not has_functions,
                quote_identifiers=False,
                identify=False,
            )
        except SqlglotError as error:
            raise Unresolved(_in_our_words(error), hint=self._columns_hint(used)) from None
        _check_having(qualified)
        _check_set_operations(qualified)
        return qualified

    def _check_tables(self, query: Any) -> bool:
        """Refuses undeclared tables. True where a table function stands among the sources."""
        from sqlglot import exp

        ctes = {cte.alias for cte in query.find_all(exp.CTE)}
        has_functions = False
        for table in query.find_all(exp.Table):
            if not isinstance(table.this, exp.Identifier):
                has_functions = True
            elif len(table.parts) > 1 or table.name not in ctes:
                self.columns(table)
        return has_functions

    def _check_aliases(self, query: Any, *, has_functions: bool) -> None:
        """Refuses what sqlglot would take for its column in any dialect, or not look at."""
        from sqlglot import exp

        known = {column for columns in self.tables.values() for column in columns}
        known |= {each.name for alias in query.find_all(exp.TableAlias) for each in alias.columns}
        inner = (each for each in query.find_all(exp.Query) if each.parent is not None)
        known |= {name for each in inner for name in each.named_selects}
        if has_functions:
            _check_qualifiers(query, known)
        elif "*" not in known:  # else what columns there are is not known
            used = alias_used_as_column(query, frozenset(known), dialect=self.dialect)
            if used is not None:
                raise Unresolved(used)
            beside = column_beside_aggregate(query, dialect=self.dialect)
            if beside is not None:
                raise Unresolved(beside, kind="missing GROUP BY")
            for star in query.find_all(exp.Star):
                for left_out in star.args.get("except_") or ():
                    if left_out.name not in known:
                        raise Unresolved(f"unknown column left out of `*`: `{left_out.name}`")

    def _remove_dual(self, query: Any) -> None:
        from sqlglot import exp

        for table in list(query.find_all(exp.Table)):
            is_dual = table.name == _DUAL.get(self.dialect) and len(table.parts) == 1
            is_read = isinstance(table.parent, exp.From | exp.Join)
            if is_dual and is_read and (table.name,) not in self.tables:
                table.parent.pop()

    def _replace_what_is_no_column(self, query: Any) -> None:
        """Replaces hidden columns, and for sqlite a string in double quotes."""
        from sqlglot import exp

        known = {column for columns in self.tables.values() for column in columns}
        known |= {each.alias for each in query.find_all(exp.Alias, exp.CTE)}
        known |= {each.name for alias in query.find_all(exp.TableAlias) for each in alias.columns}
        for column in list(query.find_all(exp.Column)):
            if column.name in known or isinstance(column.this, exp.Star):
                continue
            may_be_string = not column.table and column.this.quoted and self.dialect == "sqlite"
            if column.name in self.hidden_columns:
                column.replace(exp.null())
            elif may_be_string and not isinstance(column.parent, exp.Select | exp.Alias):
                column.replace(exp.Literal.string(column.name))

    def _columns_hint(self, used: Iterable[str]) -> str | None:
        known = [
            f"`{name[-1]}` has {', '.join(f'`{column}`' for column in columns)}"
            for name, columns in self.tables.items()
            if name[-1] in used
        ]
        return shortened_text("; ".join(known), 600) if known else None


def _in_our_words(error: Exception) -> str:
    """sqlglot's message in the house style: one line, names in backticks."""
    line = str(error).strip().splitlines()[0].rstrip(".").replace("'", "`")
    line = re.sub(r"\. Line: (\d+), Col: (\d+)$", r" at line \1, column \2", line)
    line = re.sub(r"^(Unknown \w+: )([^`].*)$", r"\1`\2`", line)
    return line[:1].lower() + line[1:]


def _check_qualifiers(query: Any, known: set[str]) -> None:
    """Beside a table function sqlglot checks no name; what stands before a dot can be, still."""
    from sqlglot import exp

    sources = {each.alias_or_name for each in query.find_all(exp.Table, exp.CTE, exp.TableAlias)}
    sources |= {each.name for each in query.find_all(exp.Anonymous)}
    sources |= known | {each.alias for each in query.find_all(exp.Alias)}
    folded = {each.lower() for each in sources}
    for column in query.find_all(exp.Column):
        if column.table and column.table.lower() not in folded:
            raise Unresolved(f"unknown table of a column: `{column.table}.{column.name}`")


def _check_having(query: Any) -> None:
    """sqlglot leaves an unknown name in HAVING as it is when GROUP BY names an alias."""
    from sqlglot import exp

    for having in query.find_all(exp.Having):
        aliases = having.parent.named_selects
        for column in having.find_all(exp.Column):
            if not column.table and column.name not in aliases:
                raise Unresolved(f"unknown column in HAVING: `{column.name}`")


def _check_set_operations(query: Any) -> None:
    from sqlglot import exp

    for operation in query.find_all(exp.SetOperation):
        left, right = operation.left.named_selects, operation.right.named_selects
        if "*" not in (*left, *right) and len(left) != len(right):
            raise Unresolved(
                f"{operation.key.upper()} of {len(left)} and {len(right)} columns",
                kind="wrong number of values",
            )
