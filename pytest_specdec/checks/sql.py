"""Whether an answer is one SQL statement of the declared kind whose names are all declared.

`sqlglot.parse` alone is no gate: it accepts a bare `SELECT`, `42` and `sorry`. So the root must be
the declared kind, every SELECT must select something, names are resolved against the DDL, and for
sqlite, and for duckdb where it is installed, the database itself explains the statement. For other
dialects nothing but sqlglot reads the answer. No statement is ever run. Floor 2: imports from the
floors below and its own; `sqlglot` is imported on use.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from pytest_specdec.checks.answer_text import ended_badly, spoiled, truncated
from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.sql_names import Unresolved
from pytest_specdec.checks.sql_statements import resolve
from pytest_specdec.generation import Generation
from pytest_specdec.json_text import quoted, shortened_text
from pytest_specdec.sql_tables import NotExplained, can_explain, explain, read_tables
from pytest_specdec.workload import Prompt, SqlExpectation

MAX_CHARS = 10_000
"""A longer answer is refused unread: resolving its names takes time that grows with the square."""

_FROM_FIRST = frozenset({"duckdb", "clickhouse", "spark", "databricks", "hive"})
_TRAILING_COMMA = frozenset({"duckdb", "bigquery", "snowflake", "databricks", "clickhouse"})


def check_sql(prompt: Prompt, generation: Generation) -> Finding | None:
    """The answer's defect as SQL; `None` for a valid one. The prompt must declare `sql`."""
    if prompt.sql is None:
        raise ValueError(f"prompt `{prompt.id}` declares no `expect.sql`")
    ended = ended_badly(prompt, generation)
    if ended is not None:
        return ended
    text = generation.text
    if len(text) > MAX_CHARS:
        return _finding(prompt, "invalid SQL", f"characters: {len(text)}, at most {MAX_CHARS}")
    try:
        statement = _one_statement(text, prompt.sql)
        _check_start(text, prompt.sql.dialect)
        _check_statement(statement, text, prompt.sql)
    except _Defect as defect:
        spoilt = spoiled(prompt, generation)
        return spoilt or Finding(
            kind=defect.kind, prompt_id=prompt.id, facts=defect.facts, hint=defect.hint
        )
    if generation.finish_reason == "length" and not text.rstrip().endswith(";"):
        return truncated(prompt, generation)  # parses by luck: what was cut off is unknown
    return None


class _Defect(Exception):
    def __init__(self, kind: str, *facts: str, hint: str | None = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.facts = facts
        self.hint = hint


def _check_start(text: str, dialect: str) -> None:
    """Refuses what sqlglot reads in every dialect and only some databases do."""
    import sqlglot

    kinds = [token.token_type for token in sqlglot.tokenize(text, dialect=dialect)]
    comma, from_ = sqlglot.TokenType.COMMA, sqlglot.TokenType.FROM
    if kinds[0] is from_ and dialect not in _FROM_FIRST:
        raise _Defect("invalid SQL", f"a query cannot begin with FROM: {quoted(text)}")
    if dialect not in _TRAILING_COMMA and (comma, from_) in pairwise(kinds):
        raise _Defect("invalid SQL", f"a comma stands before FROM: {quoted(text)}")


def _one_statement(text: str, expected: SqlExpectation) -> Any:
    """The parsed statement, of the declared kind."""
    from sqlglot import exp

    found = [each for each in _parsed(text, expected.dialect) if each is not None]
    statements = [each for each in found if isinstance(each, exp.Query | exp.DML | exp.DDL)]
    if len(found) > 1 and isinstance(found[0], exp.Query | exp.DML):
        after = quoted(found[1].sql(expected.dialect, comments=False))
        if len(statements) == len(found):
            raise _Defect(
                "more than one statement", f"statements: {len(found)}", f"the second: {after}"
            )
        raise _Defect("text after the end", f"the statement ends, and more follows: {after}")
    wanted = expected.statement.upper()
    if not statements or statements[0] is not found[0]:
        raise _Defect(
            "not a statement", f"expected one {wanted} statement, and the answer is: {quoted(text)}"
        )
    statement = statements[0]
    if _kind(statement) != expected.statement:
        raise _Defect("wrong statement", f"expected {wanted}, got: {quoted(text)}")
    return statement


def _parsed(text: str, dialect: str) -> list[Any]:
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError

    try:
        return list(sqlglot.parse(text, dialect=dialect))
    except ParseError as error:
        detail = error.errors[0] if error.errors else {}
        where = f" at line {detail['line']}, column {detail['col']}" if detail.get("line") else ""
        what = shortened_text(str(detail.get("description") or error).strip().rstrip("."))
        near = quoted(f"{detail.get('start_context') or ''}{detail.get('highlight') or ''}"[-60:])
        raise _Defect("invalid SQL", f"{what}{where}", f"up to there: {near}") from None
    except RecursionError:
        raise _Defect("invalid SQL", "nested too deeply to be read") from None
    except (SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError) as error:
        # sqlglot is not hardened: hostile text can trip it. An answer must not end the session.
        what = f"{type(error).__name__}: {shortened_text(str(error))}"
        raise _Defect("invalid SQL", f"sqlglot cannot read it: {what}") from None


def _kind(statement: Any) -> str:
    from sqlglot import exp

    for name, node in (("insert", exp.Insert), ("update", exp.Update), ("delete", exp.Delete)):
        if isinstance(statement, node):
            return name
    root = statement
    while isinstance(root, exp.Subquery):
        root = root.this
    writes = root.find(exp.Insert, exp.Update, exp.Delete, exp.Into) is not None
    is_query = isinstance(root, exp.Select | exp.SetOperation)
    return "select" if is_query and not writes else "other"


def _check_statement(statement: Any, text: str, expected: SqlExpectation) -> None:
    from sqlglot import exp

    dialect = expected.dialect
    for select in statement.find_all(exp.Select):
        if not select.expressions:
            raise _Defect("empty projection", f"a SELECT selects nothing: {quoted(text)}")
    try:
        resolve(statement, read_tables(expected.ddl, dialect=dialect), dialect=dialect)
    except Unresolved as error:
        raise _Defect(error.kind, str(error), hint=error.hint) from None
    except RecursionError:
        raise _Defect("invalid SQL", "nested too deeply to be resolved") from None
    if can_explain(dialect):
        try:
            explain(text, ddl=expected.ddl, dialect=dialect)
        except NotExplained as error:
            reason = str(error).strip().splitlines()[0]
            raise _Defect(f"refused by {dialect}", reason, f"answer: {quoted(text)}") from None


def _finding(prompt: Prompt, kind: str, fact: str) -> Finding:
    return Finding(kind=kind, prompt_id=prompt.id, facts=(fact,))
