"""What a workload has to tell, how bad each of it is, and its row."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.assessment import Subject
from pytest_specdec.checks.finding import Finding
from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.report.json_file import report_data
from pytest_specdec.report.told import told
from tests.report.reported import FINDING, TIE, profile_report, workload_report

DEFECT = KnownDefect(check="json", workload="sql", versions="<1", reason="why")
FOUND: dict[Subject, Finding] = {("json", "one"): FINDING}
FAILED = {"kind": "failed"}


def told_of(**facts: Any) -> list[tuple[str, str, str]]:
    report = profile_report(workloads=(workload_report(**facts),))
    (profile,) = report_data([report])["profiles"]
    return [(each.severity, each.test, each.title) for each in told(profile["workloads"][0])]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, []),
        ({"findings": FOUND}, [("error", "json[one]", "divergence")]),
        (
            {"findings": FOUND, "known": {("json", "one"): DEFECT}},
            [("warning", "json[one]", "divergence")],
        ),
        ({"near_ties": {"two": TIE}}, [("note", "identical[two]", "near tie")]),
        ({"unseen": (DEFECT,)}, [("error", "json", "unexpected pass")]),
        (
            {"acceptance": FAILED, "failing": ("acceptance",)},
            [("error", "acceptance", "failed")],
        ),
        (
            {"acceptance": FAILED, "known": {("acceptance", None): DEFECT}},
            [("warning", "acceptance", "failed")],
        ),
        ({"speedup": {"kind": "inconclusive"}}, [("note", "speedup", "inconclusive")]),
        ({"speedup": FAILED, "gated": ("acceptance",)}, []),
        ({"speedup": FAILED, "is_stored_now": True}, []),
        (
            {"not_stored": ("why",), "failing": ("acceptance", "speedup")},
            [("error", "acceptance and speedup", "not stored")],
        ),
        (
            {
                "near_ties": {"two": TIE},
                "findings": {("counts", None): FINDING, **FOUND},
                "known": {("counts", None): DEFECT},
            },
            [
                ("error", "json[one]", "divergence"),
                ("warning", "counts", "divergence"),
                ("note", "identical[two]", "near tie"),
            ],
        ),
    ],
)
def test_what_is_told(facts: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    assert told_of(**facts) == expected


def test_the_text_is_that_of_the_failing_test() -> None:
    report = profile_report(workloads=(workload_report(findings=FOUND),))
    (profile,) = report_data([report])["profiles"]
    (one,) = told(profile["workloads"][0])
    assert one.text == str(FINDING)
