"""The terminal's summary: a row a workload, and the notes below."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.report.facts import ABSENT
from pytest_specdec.report.summary import summary_lines
from tests.report.reported import (
    FACTS,
    FINDING,
    RATE,
    TIE,
    profile_report,
    row_of,
    update,
    verdict,
    workload_report,
)

DEFECT = KnownDefect(check="json", workload="sql", versions="<1", reason="why")
KNOWN: dict[str, Any] = {
    "findings": {("json", "one"): FINDING},
    "known": {("json", "one"): DEFECT},
}


def test_nothing_ran() -> None:
    assert summary_lines(profile_report(workloads=())) == []


def test_columns_are_as_wide_as_their_widest() -> None:
    header, first, second, *_ = summary_lines(
        profile_report(workloads=(workload_report("sql"), workload_report("structured_extraction")))
    )
    at = header.index("identical")
    assert first.index("3 of 3") == second.index("3 of 3") == at
    assert not any(line.endswith(" ") for line in (header, first, second))


@pytest.mark.parametrize(
    ("facts", "column", "text"),
    [
        ({}, "identical", "3 of 3"),
        ({"findings": {("identical", "one"): FINDING}}, "identical", "2 of 3"),
        ({"near_ties": {"two": TIE}}, "identical", "2 of 3 (1 near tie)"),
        ({"near_ties": {"two": TIE, "one": TIE}}, "identical", "1 of 3 (2 near ties)"),
        (
            {"near_ties": {"two": TIE}, "findings": {("identical", "one"): FINDING}},
            "identical",
            "1 of 3 (1 near tie)",
        ),
        ({"num_greedy": 0}, "identical", "-"),
        ({"num_valid": {"baseline": 2, "speculative": 2}}, "valid", "2 of 2"),
        ({"num_valid": {"baseline": 2, "speculative": 1}}, "valid", "1 of 2"),
        ({"num_valid": {"baseline": 1, "speculative": 2}}, "valid", "2 of 2 (baseline 1)"),
        ({"num_checked": 0, "num_valid": {"baseline": 0, "speculative": 0}}, "valid", "-"),
        ({}, "acceptance rate", "0.500 / 0.500 / 0.475"),
        ({"rate": None}, "acceptance rate", "-"),
        ({"rate": {**RATE, "stored": None}}, "acceptance rate", "0.500 / - / 0.475"),
        ({"rate": {**RATE, "stored": None, "floor": None}}, "acceptance rate", "0.500 / - / -"),
        ({}, "mean acceptance length", "3.00"),
        ({"drafts": None}, "mean acceptance length", "-"),
        ({"speedup": {"now": None}}, "speedup", "-"),
        ({"speedup": {"now": 1.5}}, "speedup", "1.50"),
        ({"speedup": {"now": 1.5, "low": 1.4, "high": 1.61}}, "speedup", "1.50 (1.40 to 1.61)"),
        ({"speedup": {"now": 1.5, "low": 0.0, "high": float("inf")}}, "speedup", "1.50"),
        ({"speedup": {"now": 1.5, "low": -float("inf"), "high": float("inf")}}, "speedup", "1.50"),
        ({"gated": (), "speedup": {"now": 1.5}}, "speedup", "1.50"),
        ({}, "fall that fails: acceptance / speedup", "- / -"),
        (
            {"acceptance": {"smallest_drop": 0.02}, "speedup": {"smallest_drop": 0.0612}},
            "fall that fails: acceptance / speedup",
            "2% / 6.12%",
        ),
        (
            {"speedup": {"smallest_drop": 0.0612}},
            "fall that fails: acceptance / speedup",
            "- / 6.12%",
        ),
    ],
)
def test_a_row(facts: dict[str, Any], column: str, text: str) -> None:
    assert row_of(facts)[column] == text


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({}, "passed"),
        ({"findings": {("json", "one"): FINDING}}, "failed"),
        ({"findings": {("json", "one"): FINDING}, "is_stored_now": True}, "failed"),
        ({"acceptance": {"kind": "failed"}, "is_stored_now": True}, "stored"),
        ({"acceptance": {"kind": "failed"}}, "failed"),
        ({"acceptance": {"kind": "unmeasured"}, "speedup": {"kind": "failed"}}, "failed"),
        (
            {"acceptance": {"kind": "incomparable"}, "speedup": {"kind": "unmeasured"}},
            "unmeasured",
        ),
        (
            {"acceptance": {"kind": "no stored baseline"}, "speedup": {"kind": "incomparable"}},
            "incomparable",
        ),
        (
            {"acceptance": {"kind": "passed"}, "speedup": {"kind": "no stored baseline"}},
            "no stored baseline",
        ),
        ({"speedup": {"kind": "inconclusive"}}, "inconclusive"),
        ({"gated": ("acceptance",), "speedup": {"kind": "failed"}}, "passed"),
        ({"gated": ("speedup",), "speedup": {"kind": "failed"}}, "failed"),
        ({"gated": (), "speedup": {"kind": "failed"}}, "passed"),
        ({"gated": (), "findings": {("json", "one"): FINDING}}, "failed"),
        ({"gated": (), "is_stored_now": True}, "stored"),
        (KNOWN, "passed"),
        ({**KNOWN, "gated": ()}, "known defect"),
        ({**KNOWN, "is_stored_now": True}, "stored"),
        ({**KNOWN, "speedup": {"kind": "failed"}}, "failed"),
        (
            {"findings": {**KNOWN["findings"], ("json", "two"): FINDING}, "known": KNOWN["known"]},
            "failed",
        ),
        ({"acceptance": {"kind": "failed"}, "known": {("acceptance", None): DEFECT}}, "passed"),
        (
            {
                "acceptance": {"kind": "failed"},
                "known": {("acceptance", None): DEFECT},
                "gated": ("acceptance",),
            },
            "known defect",
        ),
        ({"unseen": (DEFECT,)}, "failed"),
        ({"unseen": (DEFECT,), "is_stored_now": True}, "failed"),
        ({**KNOWN, "unseen": (DEFECT,), "gated": ()}, "failed"),
    ],
)
def test_a_workload_is_as_good_as_its_worst_verdict(facts: dict[str, Any], word: str) -> None:
    assert row_of(facts)["verdict"] == word


def notes(**facts: Any) -> list[str]:
    workloads = facts.pop("workloads", (workload_report("sql"),))
    return summary_lines(profile_report(workloads=workloads, **facts))[1 + len(workloads) :]


def test_notes_of_a_plain_session() -> None:
    assert notes() == [
        "engines started: baseline 1, speculative 1; loaded in: baseline 2.5 s, speculative 2.5 s"
    ]


def test_notes_without_a_loaded_engine() -> None:
    assert notes(engines={}) == ["engines started: baseline 1, speculative 1; loaded in: -"]


def test_an_upgrade_is_told_with_what_moved() -> None:
    moved = workload_report("sql", acceptance={"now": 0.4, "stored": 0.5})
    unstored = workload_report("story", acceptance={"stored": None})
    lines = notes(
        workloads=(moved, unstored),
        versions={"vllm": "0.32.0", "torch": "2.13.0", "driver": None},
        stored_versions={"vllm": ["0.30.0", "0.31.0"], "torch": ["2.13.0"]},
    )
    assert lines[:2] == [
        "changed since the numbers were stored: vllm 0.30.0 and 0.31.0 -> 0.32.0",
        "  sql: acceptance rate 0.5 -> 0.4",
    ]
    assert not any("story" in line for line in lines)


@pytest.mark.parametrize(
    ("versions", "stored_versions"),
    [
        ({"vllm": "0.32.0", "driver": None}, {"vllm": ["0.32.0"], "driver": [ABSENT]}),
        ({"vllm": "0.32.0"}, {}),
    ],
)
def test_no_upgrade_is_told_where_there_was_none(
    versions: dict[str, str | None], stored_versions: dict[str, list[str]]
) -> None:
    lines = notes(versions=versions, stored_versions=stored_versions)
    assert not any("changed since" in line for line in lines)


def test_differing_engines_and_unused_entries_are_told() -> None:
    other = {"baseline": FACTS, "speculative": {**FACTS, "config": {"a": 2, "b": None, "c": 1}}}
    lines = notes(engines=other, unused=("old", "older"))
    assert "engines differ in (baseline / speculative): a 1 / 2; c None / 1" in lines
    assert "stored, but no test asked for: old, older" in lines


def test_what_disturbed_a_workload_is_told() -> None:
    lines = notes(
        workloads=(
            workload_report("sql", disturbances=("others used all of it", "it was hot")),
            workload_report("story"),
        )
    )
    assert lines[1:] == [
        "sql: while it was timed, others used all of it",
        "sql: while it was timed, it was hot",
    ]


def test_known_defects_are_told_with_how_often_each_was_seen() -> None:
    other = KnownDefect(check="speedup", workload="sql", versions="<2", reason="why else")
    known = {("json", "one"): DEFECT, ("speedup", None): other, ("json", "two"): DEFECT}
    lines = notes(workloads=(workload_report("sql", known=known), workload_report("story")))
    assert lines[1:] == [
        "sql: json: known defect of vLLM <1: why (seen: 2)",
        "sql: speedup: known defect of vLLM <2: why else (seen: 1)",
    ]


def test_known_defects_that_do_not_show_themselves_are_told() -> None:
    lines = notes(
        workloads=(workload_report("sql", unseen=(DEFECT,), **KNOWN), workload_report("story"))
    )
    assert lines[1:] == [
        "sql: json: known defect of vLLM <1: why (seen: 1)",
        "sql: json: unexpected pass: known defect of vLLM <1: why",
    ]


def test_known_defects_that_no_test_is_about_are_told() -> None:
    assert notes(untested=(DEFECT,))[1:] == ["known defect that no test is about: `json` of `sql`"]


def test_an_update_is_told_row_by_row() -> None:
    lines = notes(
        update=update(
            path="baselines/x/fast.json",
            rows=(
                ("sql", "acceptance rate", None, 0.5),
                ("sql", "speedup", 1.25, 2.0),
                ("old", "speedup", 1.25, None),
            ),
            refused={"story": ("why", "and why else")},
        )
    )
    assert lines[1:] == [
        "sql: acceptance rate - -> 0.5",
        "sql: speedup 1.25 -> 2",
        "old: speedup 1.25 -> -",
        "story: not stored: why; and why else",
        "stored baselines written: baselines/x/fast.json",
    ]
    assert notes(update=update(path=None, rows=(), refused={}))[1:] == [
        "stored baselines unchanged"
    ]


@pytest.mark.parametrize(
    ("kind", "is_stored_now", "is_told"),
    [
        ("no stored baseline", False, True),
        ("incomparable", False, True),
        ("no stored baseline", True, False),
        ("failed", False, False),
    ],
)
def test_what_to_type_is_told_once(kind: str, is_stored_now: bool, is_told: bool) -> None:
    undecided = verdict(kind=kind, hint="record one: `pytest`")
    one = workload_report(
        "sql",
        is_stored_now=is_stored_now,
        acceptance=undecided,
        speedup=undecided,
    )
    lines = notes(workloads=(one, one))
    assert lines.count("hint: record one: `pytest`") == is_told


def test_settings_changed_since_the_numbers_were_stored_are_told() -> None:
    told = "the profile's settings are not those that the numbers were stored with"
    assert told in summary_lines(profile_report(is_changed=True))
    assert told not in summary_lines(profile_report())
