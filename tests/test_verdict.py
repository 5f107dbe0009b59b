from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec.counters import DraftCounters
from pytest_specdec.explain import speedup_moves
from pytest_specdec.floors import of_other_hardware
from pytest_specdec.judge import judge_acceptance, judge_speedup
from pytest_specdec.profile import Tolerances
from pytest_specdec.stored_baseline import StoredWorkload, rounded
from pytest_specdec.verdict import Outcome, Verdict, VerdictKind, outcome
from tests.measured import counters, measurement, prompt, speedup, stored, stored_speedup

UPDATE = "pytest suites --update-baselines"
TOLERANCES = Tolerances()


def acceptance_verdict(
    measured: Mapping[str, Any],
    kept: StoredWorkload | None,
    tolerances: Tolerances = TOLERANCES,
    hardware_differences: tuple[str, ...] = (),
) -> Verdict:
    return judge_acceptance(
        measurement(**measured),
        kept,
        tolerances=tolerances,
        update_command=UPDATE,
        hardware_differences=hardware_differences,
    )


def speedup_verdict(
    values: tuple[float, ...],
    kept: StoredWorkload | None,
    tolerances: Tolerances = TOLERANCES,
    hardware_differences: tuple[str, ...] = (),
) -> Verdict:
    return judge_speedup(
        measurement(speedup=speedup(*values)),
        kept,
        tolerances=tolerances,
        update_command=UPDATE,
        hardware_differences=hardware_differences,
    )


NOTHING = {"drafts": DraftCounters(), "tokens_per_step": None}
BROKEN = replace(counters(), num_accepted_tokens=300)


@pytest.mark.parametrize(
    ("measured", "kept", "kind", "metric"),
    [
        pytest.param({}, stored(), "passed", "acceptance rate", id="as stored"),
        pytest.param({}, stored(rate=0.1), "passed", "acceptance rate", id="better rate"),
        pytest.param(
            {},
            stored(rate=0.2, mean_acceptance_length=1.5, tokens_per_step=1.2),
            "passed",
            "acceptance rate",
            id="all better",
        ),
        pytest.param({}, stored(rate=0.526315), "passed", "acceptance rate", id="rate on floor"),
        pytest.param({}, stored(rate=0.526318), "failed", "acceptance rate", id="rate below"),
        pytest.param(
            {},
            stored(mean_acceptance_length=3.157894),
            "passed",
            "acceptance rate",
            id="length on floor",
        ),
        pytest.param(
            {},
            stored(mean_acceptance_length=3.158),
            "failed",
            "mean acceptance length",
            id="length below",
        ),
        pytest.param(
            {}, stored(tokens_per_step=2.631578), "passed", "acceptance rate", id="steps on floor"
        ),
        pytest.param(
            {}, stored(tokens_per_step=2.6316), "failed", "tokens per step", id="steps below"
        ),
        pytest.param(
            {"drafts": counters(98), "tokens_per_step": 1.0},
            stored(),
            "failed",
            "tokens per step",
            id="fewer drafts at the same rate",
        ),
        pytest.param({}, None, "no stored baseline", "acceptance rate", id="none stored"),
        pytest.param({}, stored(digest="d2"), "incomparable", "acceptance rate", id="other digest"),
        pytest.param(
            {"drafts": counters(10)},
            stored(digest="d2"),
            "incomparable",
            "acceptance rate",
            id="a fall from other prompts is no fall",
        ),
        pytest.param(
            {"drafts": counters(2)}, None, "failed", "mean acceptance length", id="minimum, alone"
        ),
        pytest.param(
            {"drafts": counters(2)},
            stored(digest="d2"),
            "failed",
            "mean acceptance length",
            id="minimum, incomparable",
        ),
        pytest.param(
            {"drafts": counters(2), "tokens_per_step": 1.03},
            stored(rate=0.01, mean_acceptance_length=1.04, tokens_per_step=1.03),
            "failed",
            "mean acceptance length",
            id="minimum above a poor stored one",
        ),
        pytest.param(
            {"drafts": counters(3, num_drafts=60)},
            None,
            "no stored baseline",
            "acceptance rate",
            id="on the minimum",
        ),
        pytest.param(NOTHING, stored(), "unmeasured", "acceptance", id="nothing drafted"),
        pytest.param(NOTHING, None, "unmeasured", "acceptance", id="nothing drafted, none stored"),
        pytest.param({"drafts": None}, stored(), "unmeasured", "acceptance", id="nobody counted"),
        pytest.param(
            {"tokens_per_step": None}, stored(), "unmeasured", "acceptance", id="no steps known"
        ),
        pytest.param({"drafts": BROKEN}, stored(), "failed", "draft counters", id="broken laws"),
        pytest.param({"drafts": BROKEN}, None, "failed", "draft counters", id="broken, alone"),
        pytest.param(
            {"prompts": (prompt(drafts=BROKEN),)},
            stored(),
            "failed",
            "draft counters",
            id="broken in one prompt",
        ),
    ],
)
def test_acceptance_kinds(
    measured: Mapping[str, Any], kept: StoredWorkload | None, kind: VerdictKind, metric: str
) -> None:
    verdict = acceptance_verdict(measured, kept)
    assert (verdict.kind, verdict.metric, verdict.workload) == (kind, metric, "sql")


def test_other_hardware_is_incomparable() -> None:
    verdict = acceptance_verdict({}, stored(), hardware_differences=("hardware `gpu`: A, B",))
    assert (verdict.kind, verdict.stored, verdict.floor) == ("incomparable", None, None)
    assert "hardware `gpu`: A, B" in verdict.reasons


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


def test_all_that_fell_are_listed_worst_first() -> None:
    verdict = acceptance_verdict({"drafts": counters(60), "tokens_per_step": 1.0}, stored())
    assert verdict.metric == "tokens per step"
    assert verdict.reasons[:2] == (
        "acceptance rate fell too: 0.3, floor 0.475 (stored less 5%)",
        "mean acceptance length fell too: 2.2, floor 2.85 (stored less 5%)",
    )


def test_failure_text_of_a_fallen_rate() -> None:
    drafts = counters(60, num_drafts=25)
    verdict = acceptance_verdict(
        {
            "drafts": drafts,
            "prompts": (prompt(drafts=counters(10)), prompt("p2", drafts=counters(50))),
            "drafts_source": "engine",
        },
        stored(prompts=(prompt(drafts=counters(60)), prompt("p2", drafts=counters(40)))),
    )
    assert str(verdict).splitlines() == [
        "failed: acceptance rate of `sql`",
        "now: 0.3",
        "stored: 0.5",
        "floor: 0.475 (stored less 5%)",
        "drafts per output token: 0.3125 stored, 0.15625 now",
        "counted by each request when stored, by each engine now",
        "answers: all 2 token for token as stored, so the drafts changed",
        "fell most: `p1`, 60 of 200 accepted when stored, 10 of 200 now",
        f"hint: if this is meant, record it: `{UPDATE}`",
    ]


def test_changed_answers_are_told() -> None:
    now = [prompt(name, digest="f" * 16) for name in "abcd"] + [prompt("e"), prompt("new")]
    before = [prompt(name) for name in "abcde"]
    verdict = acceptance_verdict({"drafts": counters(60), "prompts": now}, stored(prompts=before))
    assert "answers: 4 of 5 differ from those stored (`a`, `b`, `c`, ...)" in verdict.reasons


def test_no_prompt_is_named_that_did_not_fall() -> None:
    same = (prompt(drafts=counters()),)
    verdict = acceptance_verdict({"tokens_per_step": 1.0, "prompts": same}, stored(prompts=same))
    assert verdict.kind == "failed"
    assert "fell most" not in str(verdict)


def test_a_fall_below_the_minimum_is_not_cured_by_recording() -> None:
    verdict = acceptance_verdict({"drafts": counters(2)}, None)
    assert verdict.floor == 1.05
    assert verdict.floor_origin == "`min_mean_acceptance_length` of the profile"
    assert UPDATE not in str(verdict)
    assert "lower `min_mean_acceptance_length` of the profile" in str(verdict)


def test_broken_laws_are_told_by_name() -> None:
    verdict = acceptance_verdict({"prompts": (prompt("p7", drafts=BROKEN),)}, None)
    assert verdict.reasons[0] == "prompt `p7`: accepted 300 of 200 draft tokens"


@settings(deadline=None)
@given(
    rate=st.floats(0.01, 1), length=st.floats(1.2, 9), steps=st.floats(1, 9), drop=st.floats(0, 0.9)
)
def test_stored_figures_always_pass_against_themselves(
    rate: float, length: float, steps: float, drop: float
) -> None:
    """Whatever rounding did to the stored figures."""
    num_drafts = 997
    now = DraftCounters(
        num_drafts=num_drafts,
        num_draft_tokens=9 * num_drafts,
        num_accepted_tokens=round(rate * length * 100),
        num_accepted_tokens_per_pos=(round(rate * length * 100),),
    )
    assert now.acceptance_rate is not None
    assert now.mean_acceptance_length is not None
    kept = stored(
        rate=rounded(now.acceptance_rate),
        mean_acceptance_length=rounded(now.mean_acceptance_length),
        tokens_per_step=rounded(steps),
    )
    tolerances = Tolerances(
        acceptance_rate_drop=drop,
        mean_acceptance_length_drop=drop,
        tokens_per_step_drop=drop,
        min_mean_acceptance_length=1.0,
    )
    verdict = acceptance_verdict({"drafts": now, "tokens_per_step": steps}, kept, tolerances)
    assert verdict.kind == "passed"


def test_two_thirds_pass_at_no_tolerance() -> None:
    """2/3 is stored as 0.666667, which is more than 2/3."""
    now = {"drafts": counters(100, num_draft_tokens=150)}
    none = Tolerances(acceptance_rate_drop=0.0)
    assert acceptance_verdict(now, stored(rate=0.666667), none).kind == "passed"
    assert acceptance_verdict(now, stored(rate=0.666668), none).kind == "failed"


STEADY = (1.99, 2.01, 2.0, 2.0)
WILD = (1.2, 3.0, 1.4, 2.6)
MINIMUM = Tolerances(min_speedup=1.5)


@pytest.mark.parametrize(
    ("values", "kept", "tolerances", "kind"),
    [
        pytest.param(STEADY, stored(speedup=2.0), TOLERANCES, "passed", id="as stored"),
        pytest.param(STEADY, stored(speedup=1.0), TOLERANCES, "passed", id="better"),
        pytest.param((2.0, 2.0), stored(speedup=2.222222), TOLERANCES, "passed", id="on floor"),
        pytest.param((2.0, 2.0), stored(speedup=2.2223), TOLERANCES, "failed", id="just below"),
        pytest.param(STEADY, stored(speedup=2.5), TOLERANCES, "failed", id="wholly below"),
        pytest.param(STEADY, stored(speedup=2.222), TOLERANCES, "inconclusive", id="astride"),
        pytest.param(WILD, stored(speedup=2.0), TOLERANCES, "inconclusive", id="wild"),
        pytest.param((2.0,), stored(speedup=1.0), TOLERANCES, "inconclusive", id="one pair"),
        pytest.param((0.1,), stored(speedup=9.0), TOLERANCES, "inconclusive", id="one bad pair"),
        pytest.param(STEADY, None, TOLERANCES, "no stored baseline", id="none stored"),
        pytest.param(STEADY, stored(), TOLERANCES, "no stored baseline", id="none in the stored"),
        pytest.param(STEADY, stored(digest="d2", speedup=9.0), TOLERANCES, "incomparable", id="d"),
        pytest.param(STEADY, None, MINIMUM, "no stored baseline", id="above the minimum alone"),
        pytest.param((1.4, 1.4), None, MINIMUM, "failed", id="below the minimum alone"),
        pytest.param((1.4, 1.6), None, MINIMUM, "no stored baseline", id="astride it alone"),
        pytest.param((1.4, 1.4), stored(digest="d2"), MINIMUM, "failed", id="below, other digest"),
        pytest.param((1.4, 1.4), stored(speedup=1.4), MINIMUM, "failed", id="minimum is higher"),
        pytest.param((1.8, 1.8), stored(speedup=2.5), MINIMUM, "failed", id="stored is higher"),
        pytest.param((1.5, 1.5), stored(speedup=1.5), MINIMUM, "passed", id="on the minimum"),
    ],
)
def test_speedup_kinds(
    values: tuple[float, ...],
    kept: StoredWorkload | None,
    tolerances: Tolerances,
    kind: VerdictKind,
) -> None:
    assert speedup_verdict(values, kept, tolerances).kind == kind


@pytest.mark.parametrize(
    ("confidence", "kind"), [(0.9, "failed"), (0.95, "failed"), (0.975, "inconclusive")]
)
def test_bounds_are_one_sided(confidence: float, kind: VerdictKind) -> None:
    """Five pairs, their mean 2.5 standard errors below the floor: 96.7% sure of one side, and
    less than 95% sure of both."""
    shape = (-1.0, -0.5, 0.0, 0.5, 1.0)
    standard_error = math.sqrt(2.5 / 4) / math.sqrt(5)
    logs = [math.log(1.8) - 2.5 * standard_error * 0.1 + 0.1 * each for each in shape]
    values = tuple(math.exp(each) for each in logs)
    tolerances = Tolerances(confidence=confidence)
    assert speedup_verdict(values, stored(speedup=2.0), tolerances).kind == kind


def test_failure_text_of_a_fallen_speedup() -> None:
    now = speedup(1.5, 1.5, tokens_per_step=2.0, baseline_step_ms=9.0, speculative_step_ms=12.0)
    verdict = judge_speedup(
        measurement(speedup=now),
        stored(speedup=2.0),
        tolerances=TOLERANCES,
        update_command=UPDATE,
    )
    assert str(verdict).splitlines() == [
        "failed: speedup of `sql`",
        "now: 1.5",
        "interval: 1.5 to 1.5 (each bound at 95% confidence)",
        "stored: 2",
        "floor: 1.8 (stored less 10%)",
        "tokens per step: 2 stored, 2 now (speedup unmoved by it)",
        "ms a speculative step: 10 stored, 12 now (speedup 16.7% lower by it)",
        "ms a baseline step: 10 stored, 9 now (speedup 10% lower by it)",
        "lowered it most: ms a speculative step",
        f"hint: if this is meant, record it: `{UPDATE}`",
    ]


@pytest.mark.parametrize(
    ("moved", "culprit"),
    [
        ({"tokens_per_step": 1.5}, "tokens per step"),
        ({"speculative_step_ms": 13.0}, "ms a speculative step"),
        ({"baseline_step_ms": 7.0}, "ms a baseline step"),
        ({"baseline_step_ms": 13.0}, None),
        ({}, None),
    ],
)
def test_what_lowered_the_speedup(moved: Mapping[str, float], culprit: str | None) -> None:
    sentences = speedup_moves(speedup(2.0, **moved), stored_speedup(2.0))
    named = [each for each in sentences if each.startswith("lowered it most: ")]
    assert named == ([] if culprit is None else [f"lowered it most: {culprit}"])


def test_inconclusive_says_what_would_decide() -> None:
    verdict = speedup_verdict((1.7, 2.3), stored(speedup=2.0))
    assert verdict.hint == "about 16 pairs of passes would decide: set `num_blocks = 8`"
    near = speedup_verdict((1.5, 2.16), stored(speedup=2.0))
    assert "too near its floor" in str(near)
    assert UPDATE not in str(near)


def test_one_pair_has_no_interval_and_is_not_stored() -> None:
    text = str(speedup_verdict((2.0,), None))
    assert "interval: unbounded" in text
    assert "raise `num_blocks`" in text


def test_equal_work_is_needed_for_a_speedup() -> None:
    verdict = judge_speedup(
        measurement(speedup_missing="the passes differ in output tokens"),
        stored(speedup=2.0),
        tolerances=TOLERANCES,
        update_command=UPDATE,
    )
    assert verdict.kind == "unmeasured"
    assert verdict.reasons == ("the passes differ in output tokens",)
    assert "`ignore_eos`" in str(verdict)


def test_a_speedup_without_drafts_is_unmeasured_for_that_reason() -> None:
    verdict = judge_speedup(
        measurement(drafts=DraftCounters(), speedup_missing="the speculative engine drafted none"),
        stored(speedup=1.0),
        tolerances=TOLERANCES,
        update_command=UPDATE,
    )
    assert verdict.reasons == ("nothing was drafted in 60 steps",)
    assert "`speculative_config`" in str(verdict)


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
    for verdict in (acceptance_verdict({}, kept), speedup_verdict(STEADY, kept)):
        result = outcome(verdict, strict=False)
        assert result.kind == "skip"
        assert f"`{UPDATE}`" in result.message
        assert "\n" not in result.message
