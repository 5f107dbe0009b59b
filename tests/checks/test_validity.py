"""Validity of a pair: both engines under a constraint, no regression without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.json_schema import check_json
from pytest_specdec.checks.sql import check_sql
from pytest_specdec.checks.structured_outputs import check_choice, check_regex
from pytest_specdec.checks.validity import checks_for, judge_validity
from pytest_specdec.generation import Completion, Generation
from pytest_specdec.workload import Prompt, SqlExpectation
from tests.said import answer

SQL = SqlExpectation(dialect="sqlite", ddl="CREATE TABLE t (a INTEGER)", statement="select")
Check = Callable[[Prompt, Generation], Finding | None]


def prompt(*, is_constrained: bool) -> Prompt:
    request = {"response_format": {"type": "json_object"}} if is_constrained else {}
    return Prompt(id="one", request=request, json_schema={"type": "object"}, sql=SQL, line=1)


@pytest.mark.parametrize(
    ("check", "valid", "invalid", "kind"),
    [
        (check_json, "{}", "[]", "schema violation"),
        (check_sql, "SELECT a FROM t", "SELECT b FROM t", "unknown name"),
    ],
)
@pytest.mark.parametrize(
    ("is_constrained", "valid_on", "said"),
    [
        (False, {"baseline", "speculative"}, None),
        (False, {"speculative"}, None),
        (False, set(), None),
        (False, {"baseline"}, "on the speculative engine; the baseline engine's answer: valid"),
        (True, {"baseline", "speculative"}, None),
        (True, {"baseline"}, "on the speculative engine; the baseline engine's answer: valid"),
        (True, {"speculative"}, "on the baseline engine; the speculative engine's answer: valid"),
        (True, set(), "on the speculative engine; the baseline engine's answer: {kind}"),
    ],
)
def test_judge_validity(
    *,
    check: Check,
    valid: str,
    invalid: str,
    kind: str,
    is_constrained: bool,
    valid_on: set[str],
    said: str | None,
) -> None:
    finding = judge_validity(
        prompt(is_constrained=is_constrained),
        baseline=answer(valid if "baseline" in valid_on else invalid),
        speculative=answer(valid if "speculative" in valid_on else invalid),
        check=check,
    )
    if said is None:
        assert finding is None
    else:
        assert finding is not None
        assert finding.kind == kind
        assert finding.facts[0] == said.format(kind=kind)
        assert len(finding.facts) > 1, "the answer's own defect is left out"


@pytest.mark.parametrize(
    ("has_schema", "has_sql", "expected"),
    [
        (False, False, []),
        (True, False, [check_json]),
        (False, True, [check_sql]),
        (True, True, [check_json, check_sql]),
    ],
)
def test_checks_for(*, has_schema: bool, has_sql: bool, expected: list[Check]) -> None:
    declared = Prompt(
        id="one",
        request={},
        json_schema=False if has_schema else None,  # `false` is a schema too
        sql=SQL if has_sql else None,
        line=1,
    )
    assert list(checks_for(declared).values()) == expected


@pytest.mark.parametrize(
    ("outputs", "has_sql", "expected"),
    [
        ({"regex": "a"}, False, {"regex": check_regex}),
        ({"choice": ["a"]}, False, {"choice": check_choice}),
        ({"regex": "a"}, True, {"sql": check_sql, "regex": check_regex}),
        ({"grammar": "root ::= [a]"}, False, {}),
        ({"grammar": "root ::= [a]"}, True, {"sql": check_sql}),
    ],
)
def test_checks_for_structured_outputs(
    *, outputs: dict[str, Any], has_sql: bool, expected: dict[str, Check]
) -> None:
    declared = Prompt(
        id="one",
        request={"structured_outputs": outputs},
        json_schema=None,
        sql=SQL if has_sql else None,
        line=1,
    )
    assert checks_for(declared) == expected


def test_a_regex_holds_both_engines() -> None:
    held = Prompt(
        id="one",
        request={"structured_outputs": {"regex": "[ab]"}},
        json_schema=None,
        sql=None,
        line=1,
    )
    finding = judge_validity(held, baseline=answer("a"), speculative=answer("c"), check=check_regex)
    assert str(finding) == (
        "regex mismatch: `one`\n"
        "  on the speculative engine; the baseline engine's answer: valid\n"
        "  the answer does not match the whole of the regex\n"
        "  regex: '[ab]'\n"
        "  answer: 'c'"
    )


def test_every_answer_of_n_is_held_to_it() -> None:
    held = Prompt(
        id="one",
        request={"structured_outputs": {"regex": "[ab]"}, "n": 2, "temperature": 1},
        json_schema=None,
        sql=None,
        line=1,
    )
    wrong = Completion(token_ids=(7,), text="c", finish_reason="stop", stop_reason=None)
    finding = judge_validity(
        held,
        baseline=answer("a"),
        speculative=replace(answer("a"), others=(wrong,)),
        check=check_regex,
    )
    assert finding is not None
    assert finding.facts == (
        "on the speculative engine; the baseline engine's answer: valid",
        "answer 2 of 2",
        "the answer does not match the whole of the regex",
        "regex: '[ab]'",
        "answer: 'c'",
    )
