"""What sqlglot reads in every dialect and only some databases do.

sqlglot translates between dialects, so it reads more than the one it is told: `LIMIT` in T-SQL,
`::` in MySQL. For sqlite and duckdb the database itself says so; for the others these rules do.
They name the dialects that are known to lack a thing and leave all others alone. Floor 2: imports
nothing from the package; `sqlglot` is imported on use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_FROM_FIRST = frozenset({"bigquery", "duckdb", "clickhouse", "spark", "databricks", "hive"})
_TRAILING_COMMA = frozenset({"duckdb", "bigquery", "snowflake", "databricks", "clickhouse"})

_STRICT_LISTS = frozenset({"postgres", "redshift", "mysql", "tsql", "bigquery", "oracle", "trino"})
_OPEN_LISTS = ("L_PAREN COMMA", "COMMA COMMA", "COMMA R_PAREN")
_STRICT_GROUPS = _STRICT_LISTS | {"snowflake"}

# What it is called, sqlglot's tokens in a row, the dialects that lack it.
_LACKING = (
    ("`LIMIT offset, count`", "LIMIT NUMBER COMMA", "postgres redshift snowflake bigquery trino"),
    ("`LIMIT`", "LIMIT NUMBER", "tsql oracle"),
    ("`::`", "DCOLON", "mysql tsql bigquery oracle trino"),
    ("`ILIKE`", "ILIKE", "mysql tsql bigquery oracle trino"),
    ("`DISTINCT ON`", "DISTINCT ON", "mysql tsql bigquery oracle trino snowflake redshift"),
    ("`QUALIFY`", "QUALIFY", "postgres mysql tsql trino"),
    ("`FULL JOIN`", "FULL JOIN", "mysql"),
    ("`FULL JOIN`", "FULL OUTER", "mysql"),
    ("`INTERVAL`", "INTERVAL STRING", "tsql"),
    ("`INTERVAL`", "INTERVAL NUMBER", "tsql"),
    ("`[`", "L_BRACKET", "mysql"),
    ("array without `ARRAY`", "SELECT L_BRACKET", "postgres redshift"),
)
# The clauses in which a name given in the same SELECT does not stand for its column.
_NO_ALIAS_IN = {
    "where": "postgres mysql tsql oracle bigquery trino",
    "having": "postgres tsql trino",
    "group": "tsql trino",
    "expressions": "postgres mysql tsql oracle bigquery trino",
}
_CLAUSES = {
    "where": "WHERE",
    "having": "HAVING",
    "group": "GROUP BY",
    "expressions": "the list of columns",
}


def foreign_syntax(text: str, *, dialect: str) -> str | None:
    """The first thing that the dialect does not have; `None` where there is none."""
    import sqlglot

    kinds = [token.token_type.name for token in sqlglot.tokenize(text, dialect=dialect)]
    if kinds[:1] == ["FROM"] and dialect not in _FROM_FIRST:
        return "a query cannot begin with FROM"
    if dialect not in _TRAILING_COMMA and _stand_in_a_row("COMMA FROM", kinds):
        return "a comma stands before FROM"
    if dialect in _STRICT_LISTS and any(_stand_in_a_row(row, kinds) for row in _OPEN_LISTS):
        return "a comma stands at the end of a list"
    if kinds.count("WHEN") > kinds.count("THEN"):
        return "a WHEN lacks its THEN"
    for what, row, lacking in _LACKING:
        if dialect in lacking.split() and _stand_in_a_row(row, kinds):
            return f"{dialect} has no {what}"
    return None


def _stand_in_a_row(row: str, kinds: list[str]) -> bool:
    wanted = row.split()
    starts = range(len(kinds) - len(wanted) + 1)
    return any(kinds[start : start + len(wanted)] == wanted for start in starts)


def alias_used_as_column(query: Any, known: frozenset[str], *, dialect: str) -> str | None:
    """The first name that a SELECT gives and then uses where the dialect does not know it yet.

    Args:
        known: names that may be columns; a use of one of them is never told.
    """
    from sqlglot import exp

    for select in query.find_all(exp.Select):
        own = {each.alias for each in select.expressions if isinstance(each, exp.Alias)} - known
        for clause, column in _columns(select, dialect):
            if not column.table and column.name in own:
                return (
                    f"{dialect} does not know the name in {_CLAUSES[clause]} yet: `{column.name}`"
                )
    return None


def column_beside_aggregate(query: Any, *, dialect: str) -> str | None:
    """The first column that a SELECT lists beside an aggregate although it has no GROUP BY.

    A query inside another may mean a column of the outer one, so it is left to the database.
    """
    from sqlglot import exp

    if dialect not in _STRICT_GROUPS:
        return None
    for select in query.find_all(exp.Select):
        if select.args.get("group") or (select.parent_select and not select.find_ancestor(exp.CTE)):
            continue
        inside = [part for each in select.expressions for part in each.walk(prune=_is_apart)]
        if any(isinstance(part, exp.AggFunc) for part in inside):
            columns = (part for part in inside if isinstance(part, exp.Column))
            for column in columns:
                if not isinstance(column.this, exp.Star):
                    return f"`{column.name}` stands beside an aggregate without GROUP BY"
    return None


def _is_apart(node: Any) -> bool:
    """Whether what is inside is no column of the row: an aggregate's, a window's, a query's."""
    from sqlglot import exp

    apart = (exp.AggFunc, exp.Window, exp.WithinGroup, exp.Filter, exp.Query, exp.AnonymousAggFunc)
    return isinstance(node, apart)


def _columns(select: Any, dialect: str) -> Iterator[tuple[str, Any]]:
    """The columns of the clauses that know no alias."""
    from sqlglot import exp

    for clause, strict in _NO_ALIAS_IN.items():
        part = select.args.get(clause) if dialect in strict.split() else None
        for node in part if isinstance(part, list) else filter(None, [part]):
            yield from ((clause, column) for column in node.find_all(exp.Column))
