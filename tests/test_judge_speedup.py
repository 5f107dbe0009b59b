from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_specdec.counters import DraftCounters
from pytest_specdec.judge_speedup import is_decided, judge_speedup
from pytest_specdec.looks import nominal_levels
from pytest_specdec.profile import Tolerances
from pytest_specdec.speedup import Speedup
from pytest_specdec.stored_baseline import StoredWorkload
from pytest_specdec.verdict import Verdict, VerdictKind
from tests.measured import UPDATE, measurement, rules, speedup, stored, stored_speedup

TEN_PERCENT = Tolerances(speedup_drop=0.1)
STEADY = (1.99, 2.01, 2.0, 2.0)
WILD = (1.2, 3.0, 1.4, 2.6)
MINIMUM = Tolerances(speedup_drop=0.1, min_speedup=1.5)


def speedup_verdict(
    values: tuple[float, ...],
    kept: StoredWorkload | None,
    tolerances: Tolerances = TEN_PERCENT,
    **changed: Any,
) -> Verdict:
    return judge_speedup(
        measurement(speedup=speedup(*values)), kept, rules=rules(tolerances=tolerances, **changed)
    )


@pytest.mark.parametrize(
    ("values", "kept", "tolerances", "kind"),
    [
        pytest.param(STEADY, stored(speedup=2.0), TEN_PERCENT, "passed", id="as stored"),
        pytest.param(STEADY, stored(speedup=1.0), TEN_PERCENT, "passed", id="better"),
        pytest.param((2.0, 2.0), stored(speedup=2.222222), TEN_PERCENT, "passed", id="on floor"),
        pytest.param((2.0, 2.0), stored(speedup=2.2223), TEN_PERCENT, "failed", id="just below"),
        pytest.param(STEADY, stored(speedup=2.5), TEN_PERCENT, "failed", id="wholly below"),
        pytest.param(
            (1.99, 2.01, 1.98, 2.02),
            stored(speedup=2.222),
            TEN_PERCENT,
            "inconclusive",
            id="astride",
        ),
        pytest.param(WILD, stored(speedup=2.0), TEN_PERCENT, "inconclusive", id="wild"),
        pytest.param((2.0,), stored(speedup=1.0), TEN_PERCENT, "inconclusive", id="one pair"),
        pytest.param((0.1,), stored(speedup=9.0), TEN_PERCENT, "inconclusive", id="one bad pair"),
        pytest.param(STEADY, None, TEN_PERCENT, "no stored baseline", id="none stored"),
        pytest.param(STEADY, stored(), TEN_PERCENT, "no stored baseline", id="none in the stored"),
        pytest.param(STEADY, stored(digest="d2", speedup=9.0), TEN_PERCENT, "incomparable", id="d"),
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
    assert speedup_verdict(values, kept, tolerances, looks=(1, 2)).kind == kind


def scattered(centre: float, scatter: float, num_pairs: int = 8) -> tuple[float, ...]:
    """Speedups around `centre`, every other a `scatter` above or below it on the log scale."""
    return tuple(centre * math.exp(scatter * (-1) ** number) for number in range(num_pairs))


@pytest.mark.parametrize(
    ("level", "misses", "kind"),
    [
        (0.01, 0.05, "inconclusive"),
        (0.2, 0.05, "failed"),
        (0.01, 0.3, "inconclusive"),
    ],
)
def test_failing_and_passing_have_an_error_rate_each(
    level: float, misses: float, kind: VerdictKind
) -> None:
    """A mean somewhat below its floor: a p-value of about 6%."""
    tolerances = Tolerances(speedup_drop=0.1, misses=misses)
    values = scattered(1.735, 0.06)
    kept = stored(speedup=2.0)
    assert speedup_verdict(values, kept, tolerances, level=level, looks=(4,)).kind == kind


def test_the_bounds_say_what_the_verdict_says() -> None:
    """Failed is wholly below the floor, passed wholly above it, at the two ends' confidences."""
    for centre, scatter in ((1.5, 0.05), (1.9, 0.02), (1.78, 0.05), (1.8, 0.001), (2.5, 0.3)):
        verdict = speedup_verdict(scattered(centre, scatter), stored(speedup=2.0), looks=(4,))
        assert verdict.low is not None
        assert verdict.high is not None
        assert verdict.floor == 1.8
        expected = "inconclusive"
        if verdict.high < 1.8:
            expected = "failed"
        elif verdict.low >= 1.8:
            expected = "passed"
        assert verdict.kind == expected


def test_the_stored_passes_scatter_too() -> None:
    """The same passes now, compared with a figure known well and with one known badly."""
    now = scattered(1.74, 0.005)
    well = replace(stored(), speedup=stored_speedup(2.0, loads=((0.001, -0.001) * 4,)))
    badly = replace(stored(), speedup=stored_speedup(2.0, loads=((0.1, -0.1) * 4,)))
    assert speedup_verdict(now, well, looks=(4,)).kind == "failed"
    assert speedup_verdict(now, badly, looks=(4,)).kind == "inconclusive"


def test_a_tightened_stored_figure_stands() -> None:
    """Whatever the passes that it was once the mean of."""
    kept = stored(speedup=2.0)
    assert kept.speedup is not None
    tightened = replace(kept, speedup=replace(kept.speedup, value=2.4))
    assert speedup_verdict(scattered(2.0, 0.01), kept, looks=(4,)).kind == "passed"
    verdict = speedup_verdict(scattered(2.0, 0.01), tightened, looks=(4,))
    assert (verdict.kind, verdict.stored, verdict.floor) == ("failed", 2.4, 2.16)


def loaded(*loads: Sequence[float]) -> Speedup:
    return replace(
        speedup(2.0), loads=tuple(tuple(math.log(value) for value in load) for load in loads)
    )


def judged_loads(now: Speedup, kept: StoredWorkload, looks: tuple[int, ...]) -> Verdict:
    return judge_speedup(
        measurement(speedup=now), kept, rules=rules(tolerances=TEN_PERCENT, looks=looks)
    )


def test_loads_that_differ_decide_less_than_their_passes_would() -> None:
    """Each load agrees with itself to a thousandth, and they are 8% apart from each other."""
    apart = [scattered(centre, 0.001) for centre in (1.60, 1.73, 1.80)]
    kept = replace(stored(), speedup=stored_speedup(2.0, loads=((0.0, 0.0), (0.05,), (-0.05,))))
    assert judged_loads(loaded(*apart), kept, (2, 3)).kind == "inconclusive"
    together = tuple(value for load in apart for value in load)
    assert speedup_verdict(together, stored(speedup=2.0), looks=(12,)).kind == "failed"


def test_one_load_against_several_is_a_prediction_from_them() -> None:
    near = replace(stored(), speedup=stored_speedup(2.0, loads=((0.001,), (-0.001,), (0.0,))))
    far = replace(stored(), speedup=stored_speedup(2.0, loads=((0.15,), (-0.15,), (0.0,))))
    now = scattered(1.6, 0.001)
    assert speedup_verdict(now, near, looks=(4,)).kind == "failed"
    assert speedup_verdict(now, far, looks=(4,)).kind == "inconclusive"


def test_looks_of_several_loads_are_at_loads() -> None:
    kept = replace(stored(), speedup=stored_speedup(2.0, loads=((0.001,), (-0.001,), (0.0,))))
    two = measurement(speedup=loaded(scattered(2.0, 0.01), scattered(2.01, 0.01)))
    assert is_decided(two, kept, rules=rules(tolerances=TEN_PERCENT, looks=(2, 3)))
    assert not is_decided(two, kept, rules=rules(tolerances=TEN_PERCENT, looks=(3,)))


LOOKS = (2, 4, 8)


def decided_after(values: tuple[float, ...]) -> list[int]:
    """The blocks after which the passes so far are enough."""
    asked = rules(tolerances=TEN_PERCENT, looks=LOOKS)
    kept = stored(speedup=2.0)
    return [
        blocks
        for blocks in range(1, len(values) // 2 + 1)
        if is_decided(measurement(speedup=speedup(*values[: 2 * blocks])), kept, rules=asked)
    ]


@pytest.mark.parametrize("centre", [2.0, 1.5])
def test_what_is_clear_is_decided_at_the_first_look(centre: float) -> None:
    assert decided_after(scattered(centre, 0.005, 16))[0] == 2


def test_nothing_is_decided_between_the_looks() -> None:
    assert set(decided_after(scattered(2.0, 0.005, 16))) == {2, 4, 8}


def test_what_is_not_clear_takes_all_passes() -> None:
    assert decided_after(scattered(1.81, 0.05, 16)) == []


def test_what_a_look_has_decided_stays_decided() -> None:
    """Passes that were taken beyond it, as they are for numbers to be stored, change nothing."""
    values = (*scattered(1.5, 0.005, 4), *scattered(2.4, 0.005, 12))
    assert speedup_verdict(values, stored(speedup=2.0), looks=LOOKS).kind == "failed"


def test_each_look_asks_for_more_than_one_look_would() -> None:
    values = scattered(1.72, 0.05, 16)
    kept = stored(speedup=2.0)
    p_value = 1 - (speedup_verdict(values, kept, looks=(8,)).high_confidence or 0)
    assert p_value == pytest.approx(0.05)
    verdict = speedup_verdict(values, kept, looks=LOOKS)
    assert verdict.high_confidence == pytest.approx(1 - nominal_levels(0.05, LOOKS)[-1])
    assert verdict.low_confidence == pytest.approx(1 - nominal_levels(0.05, LOOKS)[-1])


def test_before_the_first_look_nothing_is_decided() -> None:
    verdict = speedup_verdict(scattered(1.0, 0.001, 2), stored(speedup=2.0), looks=(2, 4))
    assert verdict.kind == "inconclusive"
    assert "interval: unbounded" in str(verdict)


def test_medians_on_the_other_side_leave_it_undecided() -> None:
    """A few passes were far too slow: the mean is surely below, most passes are not."""
    values = (*(1.85,) * 13, *(1.0,) * 3)
    kept = stored(speedup=2.0)
    verdict = speedup_verdict(values, kept, level=0.2, looks=(8,))
    assert verdict.kind == "inconclusive"
    assert "by medians the speedup is 1.85, on the other side of the floor" in str(verdict)


def test_a_disturbed_run_fails_nothing_and_passes_what_passes() -> None:
    disturbed = ("others used 60% of the CPU (limit 25%)",)
    kept = stored(speedup=2.0)
    fallen = speedup_verdict(scattered(1.2, 0.01), kept, looks=(4,), disturbances=disturbed)
    assert fallen.kind == "inconclusive"
    assert fallen.reasons[0] == disturbed[0]
    assert fallen.hint == "run again on a machine that does nothing else"
    passing = speedup_verdict(scattered(2.0, 0.01), kept, looks=(4,), disturbances=disturbed)
    assert passing.kind == "passed"


def test_the_smallest_drop_is_one_that_is_found() -> None:
    """Passes that scatter alike and lie as low as it says are below the floor by its own account,
    with room for those that come out higher."""
    steady = speedup_verdict(scattered(2.0, 0.02, 16), stored(speedup=2.0), looks=(8,))
    assert steady.smallest_drop is not None
    assert 0.1 < steady.smallest_drop < 0.15
    fallen = scattered(2.0 * (1 - steady.smallest_drop), 0.02, 16)
    assert speedup_verdict(fallen, stored(speedup=2.0), looks=(8,)).kind == "failed"
    noisy = speedup_verdict(scattered(2.0, 0.1, 16), stored(speedup=2.0), looks=(8,))
    assert noisy.smallest_drop is not None
    assert noisy.smallest_drop > steady.smallest_drop


def test_failure_text_of_a_fallen_speedup() -> None:
    now = speedup(1.5, 1.5, tokens_per_step=2.0, baseline_step_ms=9.0, speculative_step_ms=12.0)
    verdict = judge_speedup(
        measurement(speedup=now), stored(speedup=2.0), rules=rules(tolerances=TEN_PERCENT)
    )
    assert str(verdict).splitlines() == [
        "failed: speedup of `sql`: 1.5 is below 1.8",
        "now: 1.5",
        "interval: 1.5 to 1.5 (confidence of each end: 95%, 95%)",
        "stored: 2",
        "floor: 1.8 (stored less 10%)",
        "tokens per step: 2 stored, 2 now (speedup unmoved by it)",
        "step cost ratio: 1 stored, 1.33333 now (speedup 25% lower by it)",
        "of the step cost, ms a speculative step: 10 stored, 12 now (speedup 16.7% lower by it)",
        "of the step cost, ms a baseline step: 10 stored, 9 now (speedup 10% lower by it)",
        "the baseline engine by itself: 100 output tokens/s stored, 111.111 now",
        "what lowered it most: the step cost ratio: the speculative step costs more "
        "(speedup 25% lower by it)",
        "smallest fall below stored that fails here: 10%, 95% of the time",
        f"hint: if this is meant, record it: `{UPDATE}`",
    ]


def test_inconclusive_says_what_would_decide() -> None:
    verdict = speedup_verdict((1.7, 2.3, 1.8, 2.2), stored(speedup=2.0), looks=(2,))
    assert verdict.kind == "inconclusive"
    assert verdict.hint is not None
    assert "pairs of passes would decide: set `num_blocks = " in verdict.hint
    assert UPDATE not in str(verdict)


def test_on_its_floor_no_number_of_passes_would_decide() -> None:
    verdict = speedup_verdict((1.5, 2.16), stored(speedup=2.0))
    assert "too near its floor" in str(verdict)
    assert UPDATE not in str(verdict)


def test_several_loads_ask_for_more_loads() -> None:
    kept = replace(stored(), speedup=stored_speedup(2.0, loads=((0.01,), (-0.01,), (0.0,))))
    verdict = judged_loads(loaded((1.8,), (2.1,), (2.0,)), kept, (3,))
    assert verdict.kind == "inconclusive"
    assert verdict.hint is not None
    assert "loads would decide: set `num_loads = " in verdict.hint


def test_one_pair_has_no_interval_and_is_not_stored() -> None:
    text = str(speedup_verdict((2.0,), None))
    assert "interval: unbounded" in text
    assert "raise `num_blocks`" in text


def test_equal_work_is_needed_for_a_speedup() -> None:
    verdict = judge_speedup(
        measurement(speedup_missing="the passes differ in output tokens"),
        stored(speedup=2.0),
        rules=rules(),
    )
    assert verdict.kind == "unmeasured"
    assert verdict.reasons == ("the passes differ in output tokens",)
    assert "`ignore_eos`" in str(verdict)


def test_a_speedup_without_drafts_is_unmeasured_for_that_reason() -> None:
    verdict = judge_speedup(
        measurement(drafts=DraftCounters(), speedup_missing="the speculative engine drafted none"),
        stored(speedup=1.0),
        rules=rules(),
    )
    assert verdict.reasons == ("nothing was drafted in 60 steps",)
    assert "`speculative_config`" in str(verdict)


def test_a_profile_may_let_all_be_lost() -> None:
    everything = Tolerances(speedup_drop=1.0)
    verdict = speedup_verdict((0.1, 0.3), stored(speedup=2.0), everything, looks=(3, 6, 8))
    assert (verdict.kind, verdict.floor) == ("passed", 0.0)
    assert is_decided(
        measurement(speedup=speedup(0.1, 0.3)),
        stored(speedup=2.0),
        rules=rules(tolerances=everything, looks=(3, 6, 8)),
    )


def test_a_bound_without_a_number_breaks_nothing() -> None:
    verdict = speedup_verdict((1.2, 3.0), stored(speedup=2.0), level=5e-7)
    assert (verdict.kind, verdict.high) == ("inconclusive", math.inf)


def test_what_a_look_decided_is_told_with_its_own_figures() -> None:
    values = (*scattered(1.5, 0.005, 4), *scattered(2.4, 0.005, 12))
    verdict = speedup_verdict(values, stored(speedup=2.0), looks=LOOKS)
    assert verdict.now == pytest.approx(1.5)
    assert verdict.reasons[0] == "decided by the first 2 of 8 blocks"


def test_no_fall_below_stored_is_named_where_another_floor_holds_or_none_would_fail() -> None:
    minimum = speedup_verdict(scattered(1.6, 0.01), stored(speedup=1.4), MINIMUM, looks=(4,))
    assert (minimum.floor, minimum.smallest_drop) == (1.5, None)
    disturbed = speedup_verdict(
        scattered(2.0, 0.01), stored(speedup=2.0), looks=(4,), disturbances=("others",)
    )
    assert disturbed.smallest_drop is None


def test_more_passes_are_no_answer_to_a_few_slow_ones() -> None:
    values = (*(1.85,) * 13, *(1.0,) * 3)
    verdict = speedup_verdict(values, stored(speedup=2.0), level=0.2, looks=(8,))
    assert verdict.hint == "see what slowed those few passes, and run again"


def test_the_smallest_drop_is_that_of_all_passes_though_few_were_needed() -> None:
    """Had it fallen, the passes would have gone on."""
    few = speedup_verdict(scattered(2.0, 0.03, 4), stored(speedup=2.0), looks=LOOKS)
    alone = speedup_verdict(scattered(2.0, 0.03, 4), stored(speedup=2.0), looks=(2,))
    assert few.kind == alone.kind == "passed"
    assert few.smallest_drop is not None
    assert alone.smallest_drop is not None
    # Both less the 10% that may be lost anyway.
    assert few.smallest_drop - 0.1 < 0.5 * (alone.smallest_drop - 0.1)
