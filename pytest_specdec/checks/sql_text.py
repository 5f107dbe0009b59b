"""Reads an answer as one SQL statement of a declared kind, before any of its names is resolved.

`sqlglot.parse` alone is no gate: it accepts a bare `SELECT`, `42` and `sorry`. So the root must be
the declared kind, every SELECT must select something, and what only some databases read is refused
for the others (`sql_rules`). Floor 2: imports from the floors below and its own; `sqlglot` is
imported on use.
"""

from __future__ import annotations

import re
from typing import Any

from pytest_specdec.checks.sql_places import place_of_error
from pytest_specdec.checks.sql_rules import foreign_syntax
from pytest_specdec.json_text import quoted, shortened_text

# What a database reads and sqlglot does not, and the word that means the same to sqlglot.
_REPLACE_INTO = (re.compile(r"(?i)\s*REPLACE(?=\s+INTO\b)"), "INSERT")
_UPDATE_OR = (
    re.compile(r"(?i)\s*UPDATE\s+OR\s+(?:ABORT|FAIL|IGNORE|REPLACE|ROLLBACK)\b"),
    "UPDATE",
)
_SPELLINGS = {"sqlite": (_REPLACE_INTO, _UPDATE_OR), "mysql": (_REPLACE_INTO,)}


class SqlDefect(Exception):
    """An answer is not what was declared; its parts are those of the finding."""

    def __init__(
        self, kind: str, *facts: str, hint: str | None = None, position: int | None = None
    ) -> None:
        super().__init__(kind)
        self.kind = kind
        self.facts = facts
        self.hint = hint
        self.position = position


def read_statement(text: str, *, dialect: str, kind: str) -> Any:
    """The parsed statement of kind `select`, `insert`, `update` or `delete`.

    Raises:
        SqlDefect: when the text is anything else.
    """
    from sqlglot import exp

    statement = _one_statement(text, dialect=dialect, kind=kind)
    foreign = foreign_syntax(text, dialect=dialect)
    if foreign is not None:
        raise SqlDefect("invalid SQL", f"{foreign}: {quoted(text)}")
    for select in statement.find_all(exp.Select):
        if not select.expressions:
            raise SqlDefect("empty projection", f"a SELECT selects nothing: {quoted(text)}")
    return statement


def _one_statement(text: str, *, dialect: str, kind: str) -> Any:
    from sqlglot import exp

    read = (each for each in _parsed(text, dialect) if each is not None)
    found = [each for each in read if not isinstance(each, exp.Semicolon)]  # a comment behind it
    statements = [each for each in found if isinstance(each, exp.Query | exp.DML | exp.DDL)]
    if len(found) > 1 and isinstance(found[0], exp.Query | exp.DML):
        after = quoted(found[1].sql(dialect, comments=False))
        if len(statements) == len(found):
            raise SqlDefect(
                "more than one statement", f"statements: {len(found)}", f"the second: {after}"
            )
        raise SqlDefect("text after the end", f"the statement ends, and more follows: {after}")
    wanted = kind.upper()
    if not statements or statements[0] is not found[0]:
        raise SqlDefect(
            "not a statement", f"expected one {wanted} statement, and the answer is: {quoted(text)}"
        )
    statement = statements[0]
    if _kind(statement) != kind:
        raise SqlDefect("wrong statement", f"expected {wanted}, got: {quoted(text)}")
    return statement


def _parsed(text: str, dialect: str) -> list[Any]:
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError

    for pattern, word in _SPELLINGS.get(dialect, ()):
        if (begin := pattern.match(text)) is not None:  # as long as it was, so places stay right
            text = word.rjust(begin.end()) + text[begin.end() :]
    try:
        return list(sqlglot.parse(text, dialect=dialect))
    except ParseError as error:
        detail = error.errors[0] if error.errors else {}
        where = f" at line {detail['line']}, column {detail['col']}" if detail.get("line") else ""
        what = shortened_text(str(detail.get("description") or error).strip().rstrip("."))
        near = quoted(f"{detail.get('start_context') or ''}{detail.get('highlight') or ''}"[-60:])
        at = place_of_error(text, detail)
        raise SqlDefect(
            "invalid SQL", f"{what}{where}", f"up to there: {near}", position=at
        ) from None
    except RecursionError:
        raise SqlDefect("invalid SQL", "nested too deeply to be read") from None
    except (SqlglotError, ValueError, TypeError, AttributeError, IndexError, KeyError) as error:
        # sqlglot is not hardened: hostile text can trip it. An answer must not end the session.
        what = f"{type(error).__name__}: {shortened_text(str(error))}"
        raise SqlDefect("invalid SQL", f"sqlglot cannot read it: {what}") from None


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
