"""Resolves the names of a whole SQL statement: a query, or an INSERT, UPDATE or DELETE.

An UPDATE or a DELETE is read as the SELECT that would find its rows; for an INSERT the column list
and the number of values are checked. What stands in ON CONFLICT is left to the database. Floor 2:
imports from the floors below and its own; `sqlglot` is imported on use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytest_specdec.checks.sql_names import DeclaredTables, Unresolved
from pytest_specdec.errors import did_you_mean
from pytest_specdec.sql_tables import Tables, name_rules


def resolve(statement: Any, tables: Tables, *, dialect: str) -> None:
    """Resolves all names of one statement.

    Raises:
        Unresolved: for the first that is not declared, and where columns differ in number.
    """
    from sqlglot import exp
    from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

    rules = name_rules(dialect)
    tree = normalize_identifiers(statement.copy(), dialect=rules)
    names = DeclaredTables(tables, rules)
    if dialect == "tsql":
        _unname_old_and_new(tree)
    if isinstance(tree, exp.Insert):
        _resolve_insert(tree, names, dialect)
    elif isinstance(tree, exp.Update):
        _resolve_update(tree, names)
    elif isinstance(tree, exp.Delete):
        sources = [tree.this, *(tree.args.get("using") or ())]
        names.resolve_query(_as_select(tree, sources, expressions=()))
    else:
        names.resolve_query(tree)


def _unname_old_and_new(tree: Any) -> None:
    """Removes T-SQL's names for the rows before and after from its OUTPUT."""
    from sqlglot import exp

    returning = tree.args.get("returning")
    for column in () if returning is None else returning.find_all(exp.Column):
        if column.table in ("inserted", "deleted"):
            column.set("table", None)


def _resolve_insert(tree: Any, names: DeclaredTables, dialect: str) -> None:
    from sqlglot import exp

    target = tree.this
    table = target.this if isinstance(target, exp.Schema) else target
    known = names.columns(table)
    listed = [each.name for each in target.expressions] if isinstance(target, exp.Schema) else []
    source = tree.expression
    if tree.args.get("by_name") and isinstance(source, exp.Query):
        listed = source.named_selects
    _check_columns(listed, table, [*known, *names.hidden_columns])
    if isinstance(source, exp.Values):
        for row in source.expressions:
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            _check_width(len(items), listed, known, dialect)
            names.resolve_query(_as_select(tree, (), expressions=_values(items)))
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


def _resolve_update(tree: Any, names: DeclaredTables) -> None:
    from sqlglot import exp

    source = tree.args.get("from_")
    sources = [] if source is None else [source.this]
    target = tree.this
    aliased = [each for each in sources if isinstance(each, exp.Table) and each.alias]
    if names.dialect == "tsql" and target.name in [each.alias for each in aliased]:
        target = next(each for each in aliased if each.alias == target.name)
    else:
        sources.insert(0, target)
    known = names.columns(target)
    for assignment in tree.expressions:
        column = assignment.this
        if isinstance(column, exp.Column) and not tree.this.args.get("joins"):
            _check_columns([column.name], target, known)
    values = _values(each.expression for each in tree.expressions)
    names.resolve_query(_as_select(tree, sources, expressions=values))


def _values(items: Iterable[Any]) -> list[Any]:
    """What is assigned, DEFAULT left out; in parentheses, so that nothing is taken for a name."""
    from sqlglot import exp

    written = [each for each in items if each is not None and not isinstance(each, exp.Var)]
    return [exp.Paren(this=each.copy()) for each in written if not _is_default(each)]


def _is_default(value: Any) -> bool:
    from sqlglot import exp

    is_bare = isinstance(value, exp.Column) and not value.table and not value.this.quoted
    return is_bare and value.name.lower() == "default"


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
