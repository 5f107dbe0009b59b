from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import pytest

from pytest_specdec.floors import of_other_hardware
from pytest_specdec.judge_acceptance import judge_acceptance
from pytest_specdec.judge_speedup import judge_speedup
from pytest_specdec.stored_baseline import StoredWorkload
from pytest_specdec.verdict import Outcome, Verdict, VerdictKind, outcome
from tests.measured import UPDATE, measurement, rules, speedup, stored

SURE = Verdict(kind="failed", metric="speedup", workload="sql", now=1.5, stored=2.0)


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"low": 1.4, "high": 1.6}, "interval: 1.4 to 1.6"),
        (
            {"low": 1.4, "high": 1.6, "low_confidence": 0.975, "high_confidence": 0.9995},
            "interval: 1.4 to 1.6 (confidence of each end: 97.5%, 99.95%)",
        ),
        (
            {"low": 0.0, "high": float("inf")},
            "interval: unbounded (too few passes to show a scatter)",
        ),
        (
            {"smallest_drop": 0.081},
            "smallest fall below stored that fails here: 8.1%, 95% of the time",
        ),
        (
            {"smallest_drop": 0.02, "is_exact": True},
            "smallest fall below stored that fails here: 2%, always",
        ),
    ],
)
def test_how_sure_a_verdict_is_is_told(facts: dict[str, float], line: str) -> None:
    assert line in str(replace(SURE, **facts)).splitlines()  # type: ignore[arg-type]


def test_what_is_not_known_is_not_told() -> None:
    assert str(SURE).splitlines() == ["failed: speedup of `sql`", "now: 1.5", "stored: 2"]
    assert SURE.power == ""


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        ("failed", "failed: speedup of `sql`: 1.5 is below 1.9"),
        ("passed", "passed: speedup of `sql`"),
        ("inconclusive", "inconclusive: speedup of `sql`"),
    ],
)
def test_the_first_line_says_how_far_a_figure_fell(kind: VerdictKind, head: str) -> None:
    told = replace(SURE, kind=kind, floor=1.9, floor_origin="stored less 5%")
    assert str(told).splitlines()[0] == head


@pytest.mark.parametrize("kind", get_args(VerdictKind))
def test_the_way_out_of_other_hardware_names_the_file(kind: VerdictKind) -> None:
    verdict = Verdict(kind=kind, metric="speedup", workload="sql", hint="as it was")
    told = of_other_hardware(verdict, file="baselines/x/fast.json", update_command=UPDATE)
    if kind in ("incomparable", "no stored baseline"):
        assert str(told).splitlines()[-1] == (
            "hint: delete `baselines/x/fast.json`, which is of other hardware, and record again: "
            f"`{UPDATE}`"
        )
    else:
        assert told == verdict


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("kind", "in_gate", "elsewhere"),
    [
        ("passed", "pass", "pass"),
        ("failed", "fail", "fail"),
        ("unmeasured", "fail", "fail"),
        ("inconclusive", "fail", "skip"),
        ("no stored baseline", "fail", "skip"),
        ("incomparable", "fail", "skip"),
    ],
)
def test_outcomes(kind: VerdictKind, in_gate: str, elsewhere: str, strict: bool) -> None:
    verdict = Verdict(kind=kind, metric="speedup", workload="sql", reasons=("why",), hint="do")
    result = outcome(verdict, strict=strict)
    assert result.kind == (in_gate if strict else elsewhere)
    messages = {"pass": "", "fail": str(verdict), "skip": f"{kind}: speedup of `sql`; why; do"}
    assert result.message == messages[result.kind]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("chosen", ["fail", "warn"])
@pytest.mark.parametrize("kind", get_args(VerdictKind))
def test_what_an_inconclusive_verdict_does_is_chosen_for_it_alone(
    kind: VerdictKind, chosen: Literal["fail", "warn"], strict: bool
) -> None:
    verdict = Verdict(kind=kind, metric="speedup", workload="sql", now=1.5, hint="do")
    result = outcome(verdict, strict=strict, inconclusive=chosen)
    if kind != "inconclusive":
        assert result == outcome(verdict, strict=strict)
        assert result.warning is None
    elif chosen == "fail":
        assert result == Outcome(kind="fail", message=str(verdict))
    else:
        told = "inconclusive: speedup of `sql`; do"
        assert result == Outcome(kind="skip", message=told, warning=str(verdict))


@pytest.mark.parametrize("kept", [None, stored(digest="d2", speedup=2.0)])
def test_a_skip_names_the_command_that_records(kept: StoredWorkload | None) -> None:
    measured = measurement(speedup=speedup(2.0, 2.0))
    for judge in (judge_acceptance, judge_speedup):
        verdict = judge(measured, kept, rules=rules())
        result = outcome(verdict, strict=False)
        assert result.kind == "skip"
        assert f"`{UPDATE}`" in result.message
        assert "\n" not in result.message
