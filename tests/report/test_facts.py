"""One word for a profile and for a session."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.report.facts import OverallVerdict, overall
from pytest_specdec.worth_it import WorthIt
from tests.measured_gains import EMPTY, gained
from tests.report.reported import FINDING, own_test, profile_report, workload_report

DEFECT = KnownDefect(check="json", workload="sql", versions="<1", reason="why")
FOUND = {("json", "one"): FINDING}


def asked(*answers: Any, unmet: tuple[str, ...] = ()) -> dict[str, Any]:
    """A session that only asks whether speculation is worth it."""
    points = [gained(answer=each) for each in answers]
    return {
        "workloads": (),
        "worth_it": WorthIt(points=points, answers=(), cost=None, unmet=unmet),
    }


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({}, "passed"),
        ({"workloads": ()}, "nothing ran"),
        ({"workloads": (), "not_run": {"sql": "the session ended before it"}}, "nothing ran"),
        ({"workloads": (), "not_run": {"sql": "refused"}}, "error"),
        ({"workloads": (), "failure": "it died"}, "error"),
        ({"failure": "it died"}, "error"),
        ({"not_run": {"story": "refused"}}, "error"),
        ({"is_unused_failing": True}, "failed"),
        ({"workloads": (workload_report(findings=FOUND),)}, "failed"),
        ({"workloads": (workload_report(findings=FOUND), workload_report())}, "failed"),
        (
            {"workloads": (workload_report(findings=FOUND, known={("json", "one"): DEFECT}),)},
            "passed",
        ),
        ({"workloads": (workload_report(unseen=(DEFECT,)),)}, "failed"),
        ({"workloads": (workload_report(failing=("speedup",)),)}, "failed"),
        ({"workloads": (workload_report(speedup={"kind": "inconclusive"}),)}, "passed"),
        ({"own_tests": (own_test("failed"), own_test())}, "failed"),
        ({"own_tests": (own_test("error"), own_test("failed"))}, "error"),
        ({"own_tests": (own_test("xfailed"), own_test("skipped"), own_test("xpassed"))}, "passed"),
        ({"workloads": (), "own_tests": (own_test(),)}, "passed"),
        ({"workloads": (), "own_tests": (own_test("xfailed"),)}, "passed"),
        ({"workloads": (), "own_tests": (own_test("skipped"),)}, "nothing ran"),
        ({"workloads": (), "worth_it": EMPTY}, "nothing ran"),
        (asked("gains", "loses", "undecided", "unmeasured"), "passed"),
        (asked("gains", "not identical"), "failed"),
        (asked("gains", unmet=("why",)), "failed"),
        ({**asked("gains"), "not_run": {"sql": "refused"}}, "error"),
        (
            {**asked("gains"), "not_run": {"sql": "the session ended before it"}},
            "error",
        ),
    ],
)
def test_a_profile(facts: dict[str, Any], word: str) -> None:
    assert profile_report(**facts).verdict == word


@pytest.mark.parametrize(
    ("verdicts", "word"),
    [
        ([], "nothing ran"),
        (["passed", "nothing ran"], "passed"),
        (["passed", "failed"], "failed"),
        (["failed", "error", "passed"], "error"),
    ],
)
def test_a_session(verdicts: list[OverallVerdict], word: str) -> None:
    assert overall(verdicts) == word
