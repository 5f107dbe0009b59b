"""Resolves every table and column of a parsed SQL statement against declared tables.

Scopes, aliases, CTEs and the dialect's rules for case are sqlglot's (`optimizer.qualify`). An
UPDATE or a DELETE is read as the SELECT that would find its rows; for an INSERT the column list and
the number of values are checked. What stands in ON CONFLICT is left to the database. Floor 2:
imports from the floors below; `sqlglot` is imported on use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pytest_specdec.errors import did_you_mean
from pytest_specdec.json_text import shortened_text
from pytest_specdec.sql_tables import Tables, name_rules

_ROW_IDS = {"sqlite": {"rowid", "oid", "_rowid_"}, "duckdb": {"rowid"}}


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


def resolve(statement: Any, tables: Tables, *, dialect: str) -> None:
    """Resolves all names of one statement.

    Raises:
        Unresolved: for the first that is not declared, and where columns differ in number.
    """
    from sqlglot import exp
    from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

    rules = name_rules(dialect)
    tree = normalize_identifiers(statement.copy(), dialect=rules)
    names = _Names(tables, rules)
    if isinstance(tree, exp.Insert):
        _resolve_insert(tree, names, dialect)
    elif isinstance(tree, exp.Update):
        _resolve_update(tree, names)
    elif isinstance(tree, exp.Delete):
        sources = [tree.this, *(tree.args.get("using") or ())]
        names.resolve_query(_as_select(tree, sources, expressions=()))
    else:
        names.resolve_query(tree)


class _Names:
    """The declared tables, as sqlglot's optimizer wants them."""

    def __init__(self, tables: Tables, rules: str) -> None:
        from sqlglot import exp
        from sqlglot.schema import MappingSchema

        self.tables = tables
        self.rules = rules
        self.dialect = rules.partition(",")[0]
        self.schema = MappingSchema(dialect=rules, normalize=False)
        depth = min(len(name) for name in tables)  # sqlglot wants one depth for all
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
        if not columns:
            shown = ".".join(part.name for part in bare.parts)
            known = {".".join(name) for name in self.tables}
            raise Unresolved(f"unknown table: `{shown}`", hint=did_you_mean(shown, known))
        return columns

    def resolve_query(self, query: Any) -> Any:
        """The query with all names qualified."""
        from sqlglot import exp
        from sqlglot.errors import SqlglotError
        from sqlglot.optimizer.qualify import qualify

        has_functions = self._check_tables(query)
        self._replace_sqlite_spellings(query)
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

    def _replace_sqlite_spellings(self, query: Any) -> None:
        """Replaces what is no column: a row id, and for sqlite a string in double quotes."""
        from sqlglot import exp

        known = {column for columns in self.tables.values() for column in columns}
        known |= {each.alias for each in query.find_all(exp.Alias, exp.CTE)}
        known |= {each.name for alias in query.find_all(exp.TableAlias) for each in alias.columns}
        row_ids = _ROW_IDS.get(self.dialect, set())
        for column in list(query.find_all(exp.Column)):
            if column.name in known or isinstance(column.this, exp.Star):
                continue
            may_be_string = not column.table and column.this.quoted and self.dialect == "sqlite"
            if column.name in row_ids:
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


def _resolve_insert(tree: Any, names: _Names, dialect: str) -> None:
    from sqlglot import exp

    target = tree.this
    table = target.this if isinstance(target, exp.Schema) else target
    known = names.columns(table)
    listed = [each.name for each in target.expressions] if isinstance(target, exp.Schema) else []
    _check_columns(listed, table, known)
    source = tree.expression
    if isinstance(source, exp.Values):
        for row in source.expressions:
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            _check_width(len(items), listed, known, dialect)
            values = [each.copy() for each in items if not isinstance(each, exp.Var)]
            names.resolve_query(_as_select(tree, (), expressions=values))
    elif isinstance(source, exp.Query):
        query = source.copy()
        if tree.args.get("with_") is not None and not query.args.get("with_"):
            query.set("with_", tree.args["with_"].copy())
        selected = names.resolve_query(query).named_selects
        if "*" not in selected:
            _check_width(len(selected), listed, known, dialect)
    returning = tree.args.get("returning")
    if returning is not None:
        names.resolve_query(_as_select(tree, [table], expressions=()))


def _check_columns(listed: list[str], table: Any, known: list[str]) -> None:
    for position, column in enumerate(listed):
        if column not in known:
            raise Unresolved(
                f"unknown column of `{table.name}`: `{column}`", hint=did_you_mean(column, known)
            )
        if column in listed[:position]:
            raise Unresolved(f"column listed twice: `{column}`", kind="repeated column")


def _check_width(num_values: int, listed: list[str], known: list[str], dialect: str) -> None:
    columns = listed or known
    may_be_fewer = not listed and dialect == "postgres"  # the rest take their defaults
    if num_values > len(columns) or (num_values < len(columns) and not may_be_fewer):
        raise Unresolved(
            f"{num_values} values for {len(columns)} columns",
            hint="the columns are " + ", ".join(f"`{column}`" for column in columns),
            kind="wrong number of values",
        )


def _resolve_update(tree: Any, names: _Names) -> None:
    from sqlglot import exp

    known = names.columns(tree.this)
    for assignment in tree.expressions:
        target = assignment.this
        if isinstance(target, exp.Column) and not tree.this.args.get("joins"):
            _check_columns([target.name], tree.this, known)
    source = tree.args.get("from_")
    sources = [tree.this, *([] if source is None else [source.this])]
    values = [each.expression.copy() for each in tree.expressions if each.expression is not None]
    names.resolve_query(_as_select(tree, sources, expressions=values))


def _as_select(tree: Any, sources: Iterable[Any], *, expressions: Iterable[Any]) -> Any:
    """The SELECT over `sources` with the WHERE, RETURNING and WITH of a writing statement."""
    from sqlglot import exp

    select = exp.Select(expressions=list(expressions))
    returning = tree.args.get("returning")
    if returning is not None and sources:
        for each in returning.expressions:
            select.append("expressions", each.copy())
    if not select.expressions:
        select.append("expressions", exp.Literal.number(1))
    for position, source in enumerate(sources):
        table = source.copy()
        joins = table.args.get("joins") or []
        table.set("joins", None)
        if position == 0:
            select.set("from_", exp.From(this=table))
        else:
            select.append("joins", exp.Join(this=table, kind="CROSS"))
        for join in joins:
            select.append("joins", join.copy())
    for key in ("where", "with_"):
        if tree.args.get(key) is not None:
            select.set(key, tree.args[key].copy())
    return select
