from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec.counters import DraftCounters, total
from pytest_specdec.judge_acceptance import judge_acceptance
from pytest_specdec.measurement import PromptMeasurement
from pytest_specdec.profile import Tolerances
from pytest_specdec.stored_baseline import StoredWorkload, rounded
from pytest_specdec.trail import trail_of
from pytest_specdec.tripwires import is_all_or_nothing
from pytest_specdec.verdict import Verdict, VerdictKind
from tests.measured import UPDATE, counters, measurement, prompt, rules, stored

FIVE_PERCENT = Tolerances(
    acceptance_rate_drop=0.05, mean_acceptance_length_drop=0.05, tokens_per_step_drop=0.05
)


def acceptance_verdict(
    measured: Mapping[str, Any],
    kept: StoredWorkload | None,
    tolerances: Tolerances = FIVE_PERCENT,
    **changed: Any,
) -> Verdict:
    return judge_acceptance(
        measurement(**measured), kept, rules=rules(tolerances=tolerances, **changed)
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
        "failed: acceptance rate of `sql`: 0.3 is below 0.475",
        "now: 0.3",
        "stored: 0.5",
        "floor: 0.475 (stored less 5%)",
        "drafts per output token: 0.3125 stored, 0.15625 now",
        "counted by each request when stored, by each engine now",
        "accepted by position: 0.90 0.10 0.00 0.00 stored, 0.60 0.00 0.00 0.00 now",
        "answers: all 2 token for token as stored, so the drafts changed",
        "fell most: `p1`, 60 of 200 accepted when stored, 10 of 200 now",
        "smallest fall below stored that fails here: 5%, always",
        f"hint: if this is meant, record it: `{UPDATE}`",
    ]


def test_changed_answers_are_told() -> None:
    now = [prompt(name, digest="f" * 16) for name in "abcd"] + [prompt("e")]
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


def changed(
    name: str,
    *,
    accepted: tuple[int, int],
    answers: tuple[Sequence[int], Sequence[int]] = (range(160), range(160, 320)),
    steps: tuple[Sequence[int], Sequence[int]] = ((4,) * 40, (4,) * 40),
) -> tuple[PromptMeasurement, PromptMeasurement]:
    """One prompt when stored and now: its answer became another one."""
    was, now = (
        replace(
            prompt(name, digest=f"{number}" * 16, drafts=counters(accepted[number])),
            num_steps=len(steps[number]),
            trail=trail_of(answers[number], steps[number]),
        )
        for number in (0, 1)
    )
    return was, now


def judged(
    both: list[tuple[PromptMeasurement, PromptMeasurement]],
    tolerances: Tolerances = FIVE_PERCENT,
    **facts: Any,
) -> Verdict:
    """The pooled figures are those of the prompts."""
    before, now = zip(*both, strict=True)
    old, new = (sum_of(prompts) for prompts in (before, now))
    assert old.acceptance_rate is not None
    assert old.mean_acceptance_length is not None
    kept = stored(
        rate=rounded(old.acceptance_rate),
        mean_acceptance_length=rounded(old.mean_acceptance_length),
        tokens_per_step=per_step(before),
        prompts=before,
    )
    measured = {"drafts": new, "prompts": now, "tokens_per_step": per_step(now)}
    return acceptance_verdict(measured, kept, tolerances, **facts)


def sum_of(prompts: tuple[PromptMeasurement, ...]) -> DraftCounters:
    return total(each.drafts for each in prompts if each.drafts is not None)


def per_step(prompts: tuple[PromptMeasurement, ...]) -> float:
    return sum(p.num_output_tokens for p in prompts) / sum(p.num_steps for p in prompts)


NAMES = [f"p{number:02}" for number in range(40)]


def test_answers_as_stored_leave_nothing_to_chance() -> None:
    verdict = acceptance_verdict({}, stored())
    assert (verdict.is_exact, verdict.low, verdict.high) == (True, None, None)
    assert verdict.smallest_drop == pytest.approx(0.05)
    assert verdict.power == "smallest fall below stored that fails here: 5%, always"


def test_changed_answers_that_scatter_alike_pass() -> None:
    """Each prompt may accept more or less by a little; in all it is as before."""
    both = [changed(name, accepted=(100, 100 + (-1) ** at)) for at, name in enumerate(NAMES)]
    verdict = judged(both)
    assert (verdict.kind, verdict.is_exact) == ("passed", False)
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < 0.5 < verdict.high
    assert verdict.smallest_drop is not None
    assert 0.05 < verdict.smallest_drop < 0.06


def test_a_fall_over_all_changed_answers_fails() -> None:
    verdict = judged([changed(name, accepted=(100, 85)) for name in NAMES])
    assert (verdict.kind, verdict.metric) == ("failed", "acceptance rate")
    assert "answers: 40 of 40 differ" in str(verdict)


def test_a_fall_of_few_changed_answers_decides_nothing() -> None:
    """It is the rate that fell below its floor; how far it may scatter is not known well enough."""
    both = [changed(name, accepted=(100, 60 if at < 10 else 100)) for at, name in enumerate(NAMES)]
    verdict = judged(both, level=0.001)
    assert verdict.kind == "inconclusive"
    assert "more prompts would decide" in str(verdict)
    assert f"record them: `{UPDATE}`" in str(verdict)


def test_the_level_decides_how_sure_a_failure_must_be() -> None:
    both = [changed(name, accepted=(100, 80 + 2 * (at % 11))) for at, name in enumerate(NAMES)]
    assert judged(both, level=0.2).kind == "failed"
    assert judged(both, level=1e-9).kind == "inconclusive"


def test_without_counts_of_each_prompt_a_fall_of_changed_answers_decides_nothing() -> None:
    both = [
        (replace(was, drafts=None), replace(now, drafts=None))
        for was, now in (changed(name, accepted=(100, 100)) for name in NAMES[:3])
    ]
    before, now = zip(*both, strict=True)
    per = per_step(now)
    for accepted in (60, 100):
        verdict = acceptance_verdict(
            {"drafts": counters(accepted), "prompts": now, "tokens_per_step": per},
            stored(prompts=before, tokens_per_step=per),
        )
        assert (verdict.kind, verdict.is_exact) == ("inconclusive", False)
        assert "a vLLM that counts drafts for each request" in str(verdict)


def parting(at: int, *, step_tokens: int) -> list[tuple[PromptMeasurement, PromptMeasurement]]:
    """Answers that part `at` a token; up to there steps give `step_tokens` now instead of 4, and
    after it so many that in all there are fewer steps than before."""
    answers = (range(160), (*range(at), *range(1000, 1160 - at)))
    steps = ((4,) * 40, (*(step_tokens,) * (at // step_tokens), *(20,) * ((160 - at) // 20)))
    return [changed(name, accepted=(100, 100), answers=answers, steps=steps) for name in NAMES[:4]]


def test_more_steps_for_the_same_tokens_fail_whatever_came_after() -> None:
    """Up to where the answers part there is no chance in it."""
    verdict = judged(parting(80, step_tokens=2))
    assert (verdict.kind, verdict.metric) == ("failed", "tokens per step of the common beginning")
    assert (verdict.now, verdict.stored, verdict.floor) == (2.0, 4.0, 3.8)
    assert (
        "the 320 tokens that stored and present answers begin with (50% of those stored) took "
        "80 steps when stored, 160 now"
    ) in verdict.reasons


@pytest.mark.parametrize(
    ("at", "step_tokens"), [(80, 4), (77, 4), (83, 4), (86, 4), (80, 8), (32, 2), (4, 2)]
)
def test_a_common_beginning_does_not_fail(at: int, step_tokens: int) -> None:
    """No more steps, or too short a beginning to stand for the workload."""
    assert judged(parting(at, step_tokens=step_tokens)).kind == "passed"


def positions(*per_pos: int, num_drafts: int = 100) -> DraftCounters:
    return DraftCounters(
        num_drafts=num_drafts,
        num_draft_tokens=num_drafts * len(per_pos),
        num_accepted_tokens=sum(per_pos),
        num_accepted_tokens_per_pos=per_pos,
    )


@pytest.mark.parametrize(
    ("drafts", "is_tripped"),
    [
        (positions(60, 60, 60, 60), True),
        # One less may be chance.
        (positions(60, 60, 60, 59), False),
        (positions(60, 59, 58, 57), False),
        (positions(60, 45, 30, 20), False),
        # Rarely or nearly always accepted: few positions to lose any at.
        (positions(4, 4, 4, 4), False),
        (positions(95, 95, 94, 94), False),
        # Too few tokens or drafts to tell: good ones do as well.
        (positions(60), False),
        (positions(60, 60), False),
        (positions(30, 30, 30), False),
        (positions(30, 30, 30, 30), False),
        (positions(300, 300, 300, num_drafts=500), True),
        (positions(300, 295, 293, num_drafts=500), False),
        (DraftCounters(), False),
    ],
)
def test_all_or_nothing(drafts: DraftCounters, is_tripped: bool) -> None:
    assert is_all_or_nothing(drafts, 0.98) is is_tripped
    assert not is_all_or_nothing(drafts, 1.0)


def test_all_or_nothing_fails_by_name_without_a_stored_baseline() -> None:
    verdict = acceptance_verdict({"drafts": positions(60, 60, 60, 60)}, None)
    assert (verdict.kind, verdict.metric) == ("failed", "accepted tokens per draft")
    assert str(verdict).splitlines()[2] == (
        "all or nothing: of 100 drafts 60% were accepted at the first position and 60% at the last"
    )


def test_a_step_that_parts_is_no_slower_step() -> None:
    """Cut short or not, it was begun at the same token: as many steps, and a higher rate now."""
    both = [
        changed(
            name,
            accepted=(100, 106),
            answers=(range(64), (*range(17), *range(1000, 1047))),
            steps=((1, 3, 3, 3, 3, 5, *(4,) * 11, 2), (1, 3, 3, 3, 3, 4, *(4,) * 11, 3)),
        )
        for name in NAMES[:20]
    ]
    verdict = judged(both)
    assert verdict.kind == "passed"
    assert "begin with" not in str(verdict)


def test_answers_that_nobody_could_repeat_are_never_exact() -> None:
    """A sampled answer leaves no trail; that it came out as stored is chance."""
    sampled = replace(prompt(drafts=counters()), trail="")
    verdict = acceptance_verdict({"prompts": (sampled,)}, stored(prompts=(sampled,)))
    assert (verdict.kind, verdict.is_exact) == ("inconclusive", False)


@pytest.mark.parametrize("names", [("p2",), ("p1", "p2"), ()])
def test_stored_prompts_that_are_others_are_incomparable(names: tuple[str, ...]) -> None:
    kept = stored(rate=0.9, prompts=[prompt(name) for name in names])
    verdict = acceptance_verdict({}, kept)
    assert (verdict.kind, verdict.stored) == ("incomparable", None)
    assert "the stored prompts are not those of the workload" in str(verdict)


def test_two_prompts_show_next_to_no_scatter_and_break_nothing() -> None:
    """One degree of freedom at a tiny level: the upper bound has no number."""
    both = [changed("p1", accepted=(100, 40)), changed("p2", accepted=(100, 160))]
    verdict = judged(both, level=0.01 / 16)
    assert verdict.kind == "inconclusive"
    assert verdict.high == math.inf
