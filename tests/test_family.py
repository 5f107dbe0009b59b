from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from pytest_specdec.family import Case, judge_family
from pytest_specdec.measurement import Measurement
from pytest_specdec.profile import Tolerances
from pytest_specdec.workload import Metric
from tests.measured import counters, measurement, rules, speedup, stored

TEN_PERCENT = Tolerances(speedup_drop=0.1)


def passes(centre: float, scatter: float = 0.05) -> Measurement:
    values = (centre * math.exp(scatter * (-1) ** number) for number in range(8))
    return measurement(speedup=speedup(*values))


def gating(cases: Mapping[str, Case], *metrics: Metric) -> dict[str, Case]:
    """The same cases, with these metrics gated alone."""
    return {name: replace(each, gated=metrics) for name, each in cases.items()}


def case(measured: Measurement) -> Case:
    return Case(
        measurement=measured,
        stored=stored(speedup=2.0),
        rules=rules(tolerances=TEN_PERCENT, looks=(4,)),
    )


# A p-value of 1%: enough to fail alone at 5%, not among eight.
FALLEN = case(passes(1.7))
CLEAR = case(passes(1.2))
STEADY = case(passes(2.0))


@pytest.mark.parametrize(
    ("others", "kind"),
    [
        ([], "failed"),
        ([STEADY], "failed"),
        ([STEADY] * 7, "inconclusive"),
        # Holm: those that have surely fallen leave their share to the rest.
        ([STEADY] + [CLEAR] * 6, "failed"),
    ],
)
def test_each_figure_has_a_share_of_the_false_alarms(others: list[Case], kind: str) -> None:
    cases = {"fallen": FALLEN, **{str(number): each for number, each in enumerate(others)}}
    verdicts = judge_family(gating(cases, "speedup"), false_alarms=0.05)
    assert verdicts["fallen"]["speedup"].kind == kind


def test_a_workload_that_could_not_run_keeps_its_share() -> None:
    for num_missing, kind in ((0, "failed"), (7, "inconclusive")):
        verdicts = judge_family(
            gating({"fallen": FALLEN}, "speedup"), false_alarms=0.05, num_missing=num_missing
        )
        assert verdicts["fallen"]["speedup"].kind == kind


def test_what_is_not_gated_takes_no_share_and_is_told() -> None:
    cases = {str(number): FALLEN for number in range(2)}
    alone = judge_family(gating(cases, "speedup"), false_alarms=0.05)
    assert alone["0"]["speedup"].kind == "failed"
    assert alone["0"]["acceptance"].kind == "passed"
    shared = judge_family({**cases, "more": STEADY, "and": STEADY}, false_alarms=0.05)
    assert shared["0"]["speedup"].kind == "inconclusive"


def test_a_fall_that_is_certain_is_no_chance_taken() -> None:
    """Answers as stored: counts are exact, and no level is small enough to hide a fall."""
    fallen = case(measurement(drafts=counters(60), speedup=speedup(2.0, 2.0)))
    verdicts = judge_family({"sql": fallen}, false_alarms=1e-12)
    assert verdicts["sql"]["acceptance"].kind == "failed"


def test_nothing_is_gated() -> None:
    verdicts = judge_family(gating({"sql": CLEAR}), false_alarms=0.05)
    assert verdicts["sql"].keys() == {"acceptance", "speedup"}
