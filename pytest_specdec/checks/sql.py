"""Whether an answer is one SQL statement of the declared kind whose names are all declared.

It is read as one statement (`sql_text`), its names are resolved against the DDL
(`sql_statements`), and for sqlite, and for duckdb where it is installed, the database itself
explains it. For other dialects nothing but sqlglot reads the answer. No statement is ever run.
Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

from pytest_specdec.checks.answer_text import ended_badly, spoiled, truncated
from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.sql_names import Unresolved
from pytest_specdec.checks.sql_places import place_of_name
from pytest_specdec.checks.sql_statements import resolve
from pytest_specdec.checks.sql_text import SqlDefect, read_statement
from pytest_specdec.generation import Generation
from pytest_specdec.json_text import quoted
from pytest_specdec.sql_tables import NotExplained, can_explain, explain, read_tables
from pytest_specdec.workload import Prompt, SqlExpectation

MAX_CHARS = 10_000
"""A longer answer is refused unread: resolving its names takes time that grows with the square."""


def check_sql(prompt: Prompt, generation: Generation) -> Finding | None:
    """The answer's defect as SQL; `None` for a valid one. The prompt must declare `sql`."""
    if prompt.sql is None:
        raise ValueError(f"prompt `{prompt.id}` declares no `expect.sql`")
    ended = ended_badly(prompt, generation)
    if ended is not None:
        return ended
    text = generation.text
    try:
        _check_statement(text, prompt.sql)
    except SqlDefect as defect:
        return spoiled(prompt, generation) or Finding(
            kind=defect.kind,
            prompt_id=prompt.id,
            facts=defect.facts,
            hint=defect.hint,
            position=defect.position,
        )
    if generation.finish_reason == "length" and not text.rstrip().endswith(";"):
        return truncated(prompt, generation)  # parses by luck: what was cut off is unknown
    return None


def _check_statement(text: str, expected: SqlExpectation) -> None:
    if len(text) > MAX_CHARS:
        raise SqlDefect("invalid SQL", f"characters: {len(text)}, at most {MAX_CHARS}")
    dialect = expected.dialect
    statement = read_statement(text, dialect=dialect, kind=expected.statement)
    try:
        resolve(statement, read_tables(expected.ddl, dialect=dialect), dialect=dialect)
    except Unresolved as error:
        at = place_of_name(text, str(error), dialect=dialect)
        raise SqlDefect(error.kind, str(error), hint=error.hint, position=at) from None
    except RecursionError:
        raise SqlDefect("invalid SQL", "nested too deeply to be resolved") from None
    if can_explain(dialect):
        try:
            explain(text, ddl=expected.ddl, dialect=dialect)
        except NotExplained as error:
            reason = str(error).strip().splitlines()[0]
            at = place_of_name(text, reason, dialect=dialect)
            raise SqlDefect(
                f"refused by {dialect}", reason, f"answer: {quoted(text)}", position=at
            ) from None
