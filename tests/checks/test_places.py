"""Where in an answer its defect lies: the data that reports mark it by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_specdec.checks.validity import checks_for, judge_validity
from pytest_specdec.json_text import bare_pointer
from pytest_specdec.workload import SqlExpectation
from tests.said import answer, completion, prompt

DDL = "CREATE TABLE t (a INTEGER)"
SCHEMA = {
    "type": "object",
    "properties": {"a/b": {"type": "array", "items": {"type": "integer"}}},
}


def place(check: str, text: str) -> tuple[int | None, str | None]:
    """Position and pointer of the finding, which holds the answer and whose it is."""
    held = {"regex": {"regex": "ab+"}, "choice": {"choice": ["ab", "c"]}}.get(check)
    declared = replace(
        prompt() if held is None else prompt(structured_outputs=held),
        json_schema=SCHEMA if check == "json" else None,
        sql=SqlExpectation(dialect="sqlite", ddl=DDL, statement="select")
        if check == "sql"
        else None,
    )
    valid = {"json": "{}", "sql": "SELECT a FROM t", "regex": "ab", "choice": "ab"}[check]
    found = judge_validity(
        declared,
        baseline=answer(valid),
        speculative=answer(text),
        check=checks_for(declared)[check],
    )
    assert found is not None
    assert (found.role, found.answer) == ("speculative", text)
    return found.position, found.pointer


@pytest.mark.parametrize(
    ("text", "position", "pointer"),
    [
        ('{"a": nope}', 6, None),
        ('{"a": 1}}', 8, None),
        ('{"a": 1} and so', 9, None),
        ('Sure: {"a": 1}', 0, None),
        ('{"a": <|im_end|>}', 6, None),
        ("[]", None, ""),
        ('{"a/b": [1, "x"]}', None, "/a~1b/1"),
        ("", None, None),
    ],
)
def test_of_json(text: str, position: int | None, pointer: str | None) -> None:
    assert place("json", text) == (position, pointer)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("SELECT a,\na b c FROM t", "c FROM"),
        ("SELECT a FROM nothing", "nothing"),
        ("SELECT 'b', b FROM t", "b FROM"),
        ("SELECT t.b FROM t", "b FROM"),
        ("SELECT nope(a) FROM t", "nope"),
        ("SELECT 'abc", None),
        ("sorry", None),
    ],
)
def test_of_sql(text: str, marked: str | None) -> None:
    position, _ = place("sql", text)
    assert (None if position is None else text[position:].startswith(str(marked))) == (
        None if marked is None else True
    )


@pytest.mark.parametrize(
    ("check", "text", "position"),
    [("regex", "abbx", 3), ("regex", "x", None), ("choice", "abx", 2), ("choice", "x", None)],
)
def test_of_what_is_held(check: str, text: str, position: int | None) -> None:
    assert place(check, text) == (position, None)


def test_of_one_of_several_answers() -> None:
    asked = replace(prompt(), json_schema=SCHEMA)
    first = answer("{}")
    several = replace(first, others=(completion(text="[1]"),))
    found = judge_validity(
        asked, baseline=first, speculative=several, check=checks_for(asked)["json"]
    )
    assert found is not None
    assert found.answer == "[1]"


def test_bare_pointers() -> None:
    assert bare_pointer([]) == ""
    assert bare_pointer(["a/b", 0, "~"]) == "/a~1b/0/~0"
