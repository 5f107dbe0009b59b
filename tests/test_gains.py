from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec.engines.step_costs import StepCosts
from pytest_specdec.gains import point_gain, unmet, worth_it
from pytest_specdec.measurement import Measurement
from pytest_specdec.speedup import Speedup
from pytest_specdec.worth_it import Cost, EngineCost, Gain, PointGain
from tests.gained import gained, point
from tests.measured import counters, measurement, speedup

near: Any = pytest.approx
RANK: dict[Gain, int] = {"loses": 0, "undecided": 1, "gains": 2}
MUST = {"sql": [1, 4]}


def judged(measured: Measurement, **changed: Any) -> PointGain:
    asked: dict[str, Any] = {
        "workload": "sql",
        "point": point(4, 512),
        "changes": {},
        "num_speculative_tokens": 4,
        "num_prompt_tokens": 530.5,
        "is_identical": True,
        "min_gain": 1.0,
    }
    return point_gain(measured, **{**asked, **changed})


def of_values(*values: float, **changed: Any) -> PointGain:
    return judged(measurement(speedup=speedup(*values)), **changed)


@pytest.mark.parametrize(
    ("values", "min_gain", "answer"),
    [
        pytest.param((1.5, 1.52, 1.48, 1.5), 1.0, "gains", id="wholly above"),
        pytest.param((0.8, 0.82, 0.78, 0.8), 1.0, "loses", id="wholly below"),
        pytest.param((0.8, 1.3, 0.9, 1.2), 1.0, "undecided", id="astride"),
        pytest.param((1.5, 1.52, 1.48, 1.5), 1.6, "loses", id="less than is asked for"),
        pytest.param((1.5, 1.52, 1.48, 1.5), 1.5, "undecided", id="about what is asked for"),
        pytest.param((0.9, 0.9), 0.8, "gains", id="more than is asked for"),
        pytest.param((1.0, 1.0), 1.0, "undecided", id="on it"),
        pytest.param((9.0,), 1.0, "undecided", id="one pair"),
        pytest.param((0.1,), 1.0, "undecided", id="one bad pair"),
        # t of one degree of freedom is 12.7: half as much again does not show it.
        pytest.param((1.1, 1.5), 1.0, "undecided", id="two that scatter"),
    ],
)
def test_answers(values: tuple[float, ...], min_gain: float, answer: Gain) -> None:
    assert of_values(*values, min_gain=min_gain).answer == answer


def test_the_interval_is_a_t_interval_of_the_log_ratios() -> None:
    found = of_values(*(math.exp(each) for each in (0.1, 0.2, 0.3, 0.4)))
    # scipy-free: t of 3 degrees of freedom at 97.5% is 3.18245, the standard error 0.0645497
    assert found.gain == pytest.approx(math.exp(0.25))
    assert found.low == pytest.approx(math.exp(0.25 - 3.18245 * 0.0645497), rel=1e-5)
    assert found.high == pytest.approx(math.exp(0.25 + 3.18245 * 0.0645497), rel=1e-5)


def test_loads_are_what_scatters_where_there_are_several() -> None:
    several = replace(speedup(1.0), loads=((0.1, 0.3), (0.2, 0.4)))
    found = judged(measurement(speedup=several))
    # t of 1 degree of freedom is 12.7062, the standard error of (0.2, 0.3) is 0.05
    assert found.low == pytest.approx(math.exp(0.25 - 12.7062 * 0.05), rel=1e-4)
    assert found.reason == "too near 1 for 2 loads: 2 tokens a step for 1 times its cost"


def test_one_pair_has_no_interval() -> None:
    found = of_values(2.0)
    assert (found.gain, found.low, found.high) == (near(2.0), None, None)
    assert found.reason.startswith("one pair of passes shows no scatter: ")


def test_figures() -> None:
    measured = measurement(speedup=speedup(1.6, 1.6, tokens_per_step=2.4, speculative_step_ms=15.0))
    slower = replace(measured.speculative, ttft_ms=6.0, tpot_ms=1.0)
    found = judged(replace(measured, speculative=slower), changes={"num_speculative_tokens": 2})
    assert found == PointGain(
        workload="sql",
        point=point(4, 512),
        answer="gains",
        reason="2.4 tokens a step for 1.5 times its cost",
        changes={"num_speculative_tokens": 2},
        num_speculative_tokens=4,
        num_prompt_tokens=530.5,
        acceptance_rate=0.5,
        mean_acceptance_length=3.0,
        tokens_per_step_ratio=2.4,
        step_cost_ratio=1.5,
        gain=near(1.6),
        low=near(1.6),
        high=near(1.6),
        ttft_ratio=1.2,
        tpot_ratio=0.5,
    )


@pytest.mark.parametrize("tpots_ms", [(None, 2.0), (2.0, None), (2.0, 0.0)])
def test_a_ratio_without_one_side_is_none(tpots_ms: tuple[float | None, float | None]) -> None:
    measured = measurement(speedup=speedup(1.5, 1.5))
    new, old = tpots_ms
    without = replace(
        measured,
        speculative=replace(measured.speculative, tpot_ms=new),
        baseline=replace(measured.baseline, tpot_ms=old),
    )
    assert judged(without).tpot_ratio is None


def test_other_answers_are_not_a_gain_whatever_they_gain() -> None:
    found = of_values(2.0, 2.0, is_identical=False)
    assert (found.answer, found.reason) == (
        "not identical",
        "greedy answers differ from the baseline engine's",
    )
    assert found.gain == pytest.approx(2.0)


def test_other_answers_of_other_lengths_are_first_of_all_other_answers() -> None:
    measured = measurement(speedup_missing="the passes differ in output tokens")
    assert judged(measured, is_identical=False).answer == "not identical"


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("the speculative engine drafted nothing", "the speculative engine drafted nothing"),
        (None, "no speedup was taken"),
    ],
)
def test_without_a_speedup_nothing_is_measured(why: str | None, reason: str) -> None:
    found = judged(measurement(speedup_missing=why))
    assert (found.answer, found.reason, found.gain) == ("unmeasured", reason, None)
    assert (found.low, found.high, found.expected) == (None, None, None)
    assert found.acceptance_rate == 0.5


def made_of(tokens: float, cost: float) -> Speedup:
    gain = tokens / cost
    return speedup(gain, gain, tokens_per_step=tokens, speculative_step_ms=10 * cost)


@pytest.mark.parametrize(
    ("measured", "k", "reason"),
    [
        pytest.param(
            measurement(
                drafts=counters(4, num_drafts=60, num_draft_tokens=60), speedup=made_of(1.05, 1.5)
            ),
            4,
            "6.67% of draft tokens accepted: 1.05 tokens a step for 1.5 times its cost",
            id="acceptance",
        ),
        pytest.param(
            measurement(
                drafts=counters(24, num_drafts=6, num_draft_tokens=24), speedup=made_of(1.1, 1.5)
            ),
            4,
            "a draft in 10% of steps: 1.1 tokens a step for 1.5 times its cost",
            id="steps without a draft",
        ),
        pytest.param(
            measurement(
                drafts=counters(140, num_drafts=50, num_draft_tokens=200), speedup=made_of(3.5, 4.2)
            ),
            4,
            "3.5 tokens a step for 4.2 times its cost",
            id="step cost",
        ),
        pytest.param(
            measurement(
                drafts=counters(18, num_drafts=60, num_draft_tokens=60), speedup=made_of(1.3, 1.45)
            ),
            1,
            "30% of draft tokens accepted: 1.3 tokens a step for 1.45 times its cost",
            id="acceptance, by little",
        ),
        pytest.param(
            measurement(drafts=None, speedup=made_of(1.1, 1.5)),
            4,
            "1.1 tokens a step for 1.5 times its cost",
            id="drafts not counted",
        ),
        pytest.param(
            measurement(speedup=made_of(1.1, 1.5)),
            None,
            "1.1 tokens a step for 1.5 times its cost",
            id="k not known",
        ),
    ],
)
def test_a_loss_says_what_it_is_made_of(measured: Measurement, k: int | None, reason: str) -> None:
    found = judged(measured, num_speculative_tokens=k)
    assert (found.answer, found.reason) == ("loses", reason)


def test_a_point_that_is_not_decided_says_by_how_many_passes() -> None:
    assert of_values(0.8, 1.3, 0.9, 1.2, min_gain=1.05).reason == (
        "too near 1.05 for 4 pairs of passes: 2 tokens a step for 1 times its cost"
    )


def test_expected_gains_are_there_where_costs_are() -> None:
    measured = measurement(
        drafts=counters(90, num_drafts=60, num_draft_tokens=240),
        speedup=speedup(1.5, 1.5, tokens_per_step=2.5),
    )
    costs = StepCosts(draft_ratio=0.25, verification_ratio=1.25)
    found = judged(measured, costs=costs)
    assert found.expected == pytest.approx(2.5 / 2)
    assert found.expected_verified == pytest.approx(2.5 / 2.25)


log_gains = st.lists(st.floats(min_value=-2, max_value=2), min_size=1, max_size=8)


@settings(deadline=None)
@given(logs=log_gains, up=st.floats(min_value=0, max_value=1))
def test_more_gain_at_each_pair_is_never_a_worse_answer(logs: list[float], up: float) -> None:
    before, after = (
        of_values(*(math.exp(each + more) for each in logs)).answer for more in (0.0, up)
    )
    assert RANK[after] >= RANK[before]


@settings(deadline=None)
@given(logs=log_gains, min_gain=st.floats(min_value=0.2, max_value=5))
def test_only_the_distance_to_the_least_gain_counts(logs: list[float], min_gain: float) -> None:
    plain = of_values(*(math.exp(each) for each in logs), min_gain=1.0)
    scaled = of_values(*(min_gain * math.exp(each) for each in logs), min_gain=min_gain)
    if plain.low is not None and plain.high is not None and 0 < plain.low < plain.high:
        gaps = math.log(plain.low), math.log(plain.high)
        if min(abs(gap) for gap in gaps) > 1e-9:  # nearer than that is rounding
            assert scaled.answer == plain.answer


UNDECIDED = gained(4, 1.02, width=1.04, reason="too near 1 for 4 pairs of passes: of this")
SLOW = gained(4, 0.8, reason="of that")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        pytest.param(
            UNDECIDED,
            "`sql` must gain at in_flight=4, and that could not be shown: 1.02 "
            "(95%: 0.981 to 1.06)\n"
            "too near 1 for 4 pairs of passes: of this\n"
            "hint: raise `num_blocks` in `worth_it` of the profile, "
            "or take 4 out of `must_gain.sql`",
            id="undecided",
        ),
        pytest.param(
            gained(4, 1.5, width=None),
            "`sql` must gain at in_flight=4, and that could not be shown: 1.5\n"
            "why\n"
            "hint: raise `num_blocks` in `worth_it` of the profile, "
            "or take 4 out of `must_gain.sql`",
            id="without an interval",
        ),
        pytest.param(
            SLOW,
            "`sql` must gain at in_flight=4, and loses: 0.8 (95%: 0.784 to 0.816), 20% slower\n"
            "of that\n"
            "hint: change `speculative_config` of the profile, or take 4 out of `must_gain.sql`",
            id="loses",
        ),
        pytest.param(
            gained(4, 1.2, answer="loses"),
            "`sql` must gain at in_flight=4, and gains too little: 1.2 (95%: 1.18 to 1.22)\n"
            "why\n"
            "hint: change `speculative_config` of the profile, or take 4 out of `must_gain.sql`",
            id="gains, but less than is asked for",
        ),
        pytest.param(
            gained(4, answer="not identical", reason="greedy answers differ"),
            "`sql` must gain at in_flight=4: greedy answers differ\n"
            "hint: no gain counts until they are the same",
            id="other answers",
        ),
        pytest.param(
            gained(4, None, reason="nothing was drafted"),
            "`sql` must gain at in_flight=4, and was not measured: nothing was drafted",
            id="unmeasured",
        ),
    ],
)
def test_what_must_gain_and_does_not_says_why(found: PointGain, text: str) -> None:
    assert unmet(found, MUST) == text


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(gained(4), id="gains"),
        pytest.param(gained(2, 0.8), id="another load"),
        pytest.param(gained(4, 0.8, workload="story"), id="another workload"),
        pytest.param(gained(4, 0.8, changes={"num_speculative_tokens": 2}), id="a variant"),
    ],
)
def test_nothing_is_unmet_elsewhere(found: PointGain) -> None:
    assert unmet(found, MUST) is None


def test_it_must_gain_behind_any_context_and_at_any_temperature() -> None:
    text = unmet(gained(point(4, 512, 0.7), 0.8), MUST)
    assert text is not None
    assert text.startswith("`sql` must gain at in_flight=4,context_tokens=512,temperature=0.7, and")


COST = Cost(baseline=EngineCost(load_s=1.0), speculative=EngineCost(load_s=2.0))


def answered(points: Sequence[PointGain], **must_gain: Sequence[int]) -> Any:
    return worth_it(points, cost=COST, min_gain=1.0, must_gain=must_gain)


def test_the_whole_answer() -> None:
    points = [gained(1), gained(4, 0.8), gained(1, workload="story")]
    found = answered(points, sql=[1, 4])
    assert found.points == points
    assert [(each.workload, each.text) for each in found.answers] == [
        ("sql", "only for 1 in flight"),
        ("story", "worth it"),
    ]
    assert found.cost == COST
    assert [each.splitlines()[0] for each in found.unmet] == [
        "`sql` must gain at in_flight=4, and loses: 0.8 (95%: 0.784 to 0.816), 20% slower"
    ]


def test_what_must_gain_and_was_never_measured_is_unmet() -> None:
    variant = gained(8, changes={"num_speculative_tokens": 2})
    found = answered([gained(1), variant], sql=[1, 8], sqll=[1])
    assert found.unmet == (
        "`sql` must gain at in_flight=8, and no such point was measured",
        "`sqll` must gain at in_flight=1, and no such point was measured",
    )


def test_nothing_measured_is_nothing_answered() -> None:
    assert (answered([]).answers, answered([]).unmet) == ([], ())


gains_of_loads = st.dictionaries(
    st.sampled_from([1, 2, 4, 8]), st.floats(min_value=0.3, max_value=3), min_size=1
)


@settings(deadline=None)
@given(gains=gains_of_loads, up=st.floats(min_value=1, max_value=3))
def test_what_gains_more_everywhere_is_never_less_worth_it(
    gains: dict[int, float], up: float
) -> None:
    ranks = ["not worth it", "undecided", "only for", "worth it"]
    before, after = (
        answered([gained(load, gain * more) for load, gain in gains.items()]).answers[0].answer
        for more in (1.0, up)
    )
    assert ranks.index(after) >= ranks.index(before)


@settings(deadline=None)
@given(gains=gains_of_loads, chance=st.randoms())
def test_the_order_of_points_does_not_matter(gains: dict[int, float], chance: Any) -> None:
    points = [gained(load, gain) for load, gain in gains.items()]
    points += [gained(1, gain, changes={"k": load}) for load, gain in gains.items()]
    shuffled = list(points)
    chance.shuffle(shuffled)
    assert answered(shuffled, sql=[1]).answers == answered(points, sql=[1]).answers
