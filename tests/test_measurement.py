from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec.counters import DraftCounters
from pytest_specdec.generation import Generation, Pass, Role, Run, RunPair
from pytest_specdec.measurement import Measurement, measure, output_tokens_per_s, token_digest
from pytest_specdec.workload import Prompt, Workload

FIRST = DraftCounters(
    num_drafts=3, num_draft_tokens=12, num_accepted_tokens=6, num_accepted_tokens_per_pos=(3, 2, 1)
)
SECOND = DraftCounters(
    num_drafts=2, num_draft_tokens=8, num_accepted_tokens=4, num_accepted_tokens_per_pos=(2, 2)
)
BOTH = DraftCounters(
    num_drafts=5,
    num_draft_tokens=20,
    num_accepted_tokens=10,
    num_accepted_tokens_per_pos=(5, 4, 1),
)
ENGINES_OWN = DraftCounters(
    num_drafts=6, num_draft_tokens=24, num_accepted_tokens=6, num_accepted_tokens_per_pos=(6,)
)
NOTHING = DraftCounters()
B: Role = "baseline"
S: Role = "speculative"
ABBA = (B, S, S, B)
WORKLOAD = Workload(
    name="sql",
    path=Path("sql.jsonl"),
    description="",
    concurrency=2,
    prompts=tuple(
        Prompt(id=name, request={"max_tokens": 10}, json_schema=None, sql=None, line=line)
        for line, name in enumerate(("p1", "p2"), start=1)
    ),
)


def generation(
    prompt_id: str = "p1",
    *,
    num_tokens: int = 10,
    num_steps: int = 10,
    ttft_ms: float = 5.0,
    tpot_ms: float | None = 2.0,
    drafts: DraftCounters | None = None,
) -> Generation:
    return Generation(
        prompt_id=prompt_id,
        prompt_token_ids=(1, 2),
        token_ids=tuple(range(num_tokens)),
        text="",
        finish_reason="length",
        stop_reason=None,
        step_tokens=(1,) * num_steps,
        ttft_ms=ttft_ms,
        tpot_ms=tpot_ms,
        drafts=drafts,
    )


def walk(
    *generations: Generation, wall_s: float = 1.0, drafts: DraftCounters | None = None
) -> Pass:
    return Pass(generations=generations, wall_s=wall_s, drafts=drafts)


def pair(
    baseline: Sequence[Pass], speculative: Sequence[Pass], order: tuple[Role, ...] = ABBA
) -> RunPair:
    return RunPair(
        baseline=Run(role="baseline", workload="sql", passes=tuple(baseline)),
        speculative=Run(role="speculative", workload="sql", passes=tuple(speculative)),
        order=order,
    )


PLAIN = walk(generation("p1"), generation("p2"))
DRAFTED = walk(
    generation("p1", num_steps=4, drafts=FIRST),
    generation("p2", num_steps=6, drafts=SECOND),
    drafts=ENGINES_OWN,
)


def measured(drafted: Pass) -> Measurement:
    return measure(WORKLOAD, pair([PLAIN] * 2, [drafted] * 2))


def test_identity_of_the_workload_is_kept() -> None:
    measurement = measured(DRAFTED)
    assert (measurement.workload, measurement.workload_digest, measurement.concurrency) == (
        "sql",
        WORKLOAD.digest,
        2,
    )


def test_counts_of_every_request_are_summed() -> None:
    measurement = measured(DRAFTED)
    assert (measurement.drafts, measurement.drafts_source) == (BOTH, "request")
    assert measurement.acceptance_rate == 0.5
    assert measurement.mean_acceptance_length == 3.0
    assert measurement.acceptance_rate_per_pos == (1.0, 0.8, 0.2)
    assert measurement.drafts_per_output_token == 0.25
    assert measurement.tokens_per_step == 2.0
    assert measurement.baseline.tokens_per_step == 1.0


def test_counts_are_those_of_one_pass() -> None:
    other = walk(generation("p1", drafts=SECOND), generation("p2", drafts=SECOND))
    assert measure(WORKLOAD, pair([PLAIN] * 2, [DRAFTED, other])).drafts == BOTH


@pytest.mark.parametrize(
    ("per_request", "of_engine", "drafts", "source"),
    [
        ((FIRST, None), ENGINES_OWN, ENGINES_OWN, "engine"),
        ((None, None), ENGINES_OWN, ENGINES_OWN, "engine"),
        ((FIRST, SECOND), None, BOTH, "request"),
        ((FIRST, None), None, None, None),
        ((None, None), None, None, None),
        ((NOTHING, NOTHING), ENGINES_OWN, NOTHING, "request"),
    ],
)
def test_source_of_the_counts(
    per_request: tuple[DraftCounters | None, DraftCounters | None],
    of_engine: DraftCounters | None,
    drafts: DraftCounters | None,
    source: str | None,
) -> None:
    answers = [generation(name, drafts=each) for name, each in zip("ab", per_request, strict=True)]
    measurement = measured(walk(*answers, drafts=of_engine))
    assert (measurement.drafts, measurement.drafts_source) == (drafts, source)


@pytest.mark.parametrize("drafts", [NOTHING, None])
def test_what_was_not_drafted_has_no_number(drafts: DraftCounters | None) -> None:
    measurement = measured(walk(generation(drafts=drafts), generation("p2", drafts=drafts)))
    assert measurement.acceptance_rate is None
    assert measurement.mean_acceptance_length is None
    assert measurement.acceptance_rate_per_pos is None
    assert measurement.drafts_per_output_token is None


def test_nothing_drafted_leaves_the_speculative_engine_without_steps_or_speedup() -> None:
    measurement = measured(walk(generation(drafts=NOTHING), generation("p2", drafts=NOTHING)))
    assert measurement.tokens_per_step is None
    assert measurement.speedup is None
    assert measurement.speedup_missing == "the speculative engine drafted nothing"


def test_unknown_counts_leave_steps_and_speedup() -> None:
    measurement = measured(walk(generation(num_steps=5), generation("p2", num_steps=5)))
    assert measurement.tokens_per_step == 2.0
    assert measurement.speedup is not None


def test_prompts_keep_their_own_counts() -> None:
    first, second = measured(DRAFTED).prompts
    assert (first.id, first.num_output_tokens, first.num_steps, first.drafts) == (
        "p1",
        10,
        4,
        FIRST,
    )
    assert (second.id, second.num_steps, second.drafts) == ("p2", 6, SECOND)
    assert first.token_digest == second.token_digest == token_digest(range(10))


def test_digests_tell_answers_apart() -> None:
    digests = {token_digest(ids) for ids in ((), (1,), (1, 2), (2, 1), (12,))}
    assert len(digests) == 5
    assert all(len(digest) == 16 and int(digest, 16) >= 0 for digest in digests)


def test_times_are_medians_over_all_passes() -> None:
    slow = walk(generation(ttft_ms=50, tpot_ms=None), generation("p2", ttft_ms=7, tpot_ms=8))
    fast = walk(generation(ttft_ms=6, tpot_ms=3), generation("p2", ttft_ms=6, tpot_ms=4))
    measurement = measure(WORKLOAD, pair([slow, fast], [DRAFTED] * 2))
    assert (measurement.baseline.ttft_ms, measurement.baseline.tpot_ms) == (6.5, 4)
    assert (measurement.speculative.ttft_ms, measurement.speculative.tpot_ms) == (5, 2)
    assert measurement.baseline.num_passes == 2


@pytest.mark.parametrize(
    ("passes", "rate"),
    [
        ([PLAIN], 20.0),
        # Geometric, so that the two engines' are in the ratio of the speedup.
        ([walk(generation(), wall_s=1.0), walk(generation(), wall_s=4.0)], 5.0),
        ([PLAIN, walk(generation(), wall_s=0.0)], None),
        ([PLAIN, walk(generation(num_tokens=0))], None),
    ],
)
def test_output_tokens_per_second(passes: list[Pass], rate: float | None) -> None:
    told = output_tokens_per_s(Run(role=B, workload="sql", passes=tuple(passes)))
    assert told == (None if rate is None else pytest.approx(rate))


def test_answers_of_one_token_have_no_tpot() -> None:
    short = walk(generation(num_tokens=1, num_steps=1, tpot_ms=None))
    assert measure(WORKLOAD, pair([short] * 2, [short] * 2)).baseline.tpot_ms is None


@pytest.mark.parametrize("drift", [0.0, 0.1, -0.2])
def test_abba_cancels_linear_drift(drift: float) -> None:
    """The machine slows by `drift` in the log of time from pass to pass; the ratio stays 2."""
    a1, b1, b2, a2 = (math.exp(drift * slot) for slot in range(4))
    baseline = [replace(PLAIN, wall_s=2 * wall_s) for wall_s in (a1, a2)]
    speculative = [replace(DRAFTED, wall_s=wall_s) for wall_s in (b1, b2)]
    speedup = measure(WORKLOAD, pair(baseline, speculative)).speedup
    assert speedup is not None
    assert speedup.value == pytest.approx(2.0)
    assert speedup.log_ratios == pytest.approx((math.log(2) - drift, math.log(2) + drift))


@settings(deadline=None)
@given(
    walls_s=st.lists(st.floats(0.01, 100), min_size=4, max_size=4),
    steps=st.lists(st.integers(1, 10), min_size=2, max_size=2),
)
def test_speedup_is_tokens_per_step_over_step_cost(walls_s: list[float], steps: list[int]) -> None:
    drafted = [
        walk(generation(num_steps=each), wall_s=wall_s)
        for each, wall_s in zip(steps, walls_s, strict=False)
    ]
    plain = [walk(generation(), wall_s=wall_s) for wall_s in walls_s[2:]]
    speedup = measure(WORKLOAD, pair(plain, drafted)).speedup
    assert speedup is not None
    ratio = speedup.tokens_per_step_ratio / speedup.step_cost_ratio
    assert speedup.value == pytest.approx(ratio, rel=1e-9)
    rates = [each.output_tokens_per_s for each in (*drafted, *plain)]
    expected = math.sqrt(rates[0] / rates[2] * rates[1] / rates[3])
    assert speedup.value == pytest.approx(expected, rel=1e-9)


def test_decomposition_tells_steps_from_their_cost() -> None:
    slow_step = replace(DRAFTED, wall_s=0.75)
    speedup = measure(WORKLOAD, pair([PLAIN] * 2, [slow_step] * 2)).speedup
    assert speedup is not None
    assert speedup.baseline_step_ms == pytest.approx(50.0)
    assert speedup.speculative_step_ms == pytest.approx(75.0)
    assert speedup.tokens_per_step_ratio == pytest.approx(2.0)
    assert speedup.step_cost_ratio == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("order", "pairing"),
    [
        ((B, S), "adjacent"),
        (ABBA, "adjacent"),
        ((S, B, B, S), "adjacent"),
        ((B, S, B, S), "adjacent"),
        ((B, B, S, S), "sequential"),
        ((S, S, S, B, B, B), "sequential"),
    ],
)
def test_pairing_says_whether_drift_cancels(order: tuple[Role, ...], pairing: str) -> None:
    half = len(order) // 2
    speedup = measure(WORKLOAD, pair([PLAIN] * half, [DRAFTED] * half, order)).speedup
    assert speedup is not None
    assert speedup.pairing == pairing


@pytest.mark.parametrize(
    ("once", "pairing"), [(ABBA, "adjacent"), ((B, B, S, S), "sequential"), (ABBA[:2], "adjacent")]
)
def test_pairs_of_one_load_stay_together(once: tuple[Role, ...], pairing: str) -> None:
    size = len(once) // 2
    drafted = [replace(DRAFTED, wall_s=0.5 / (load + 1)) for load in range(3) for _ in range(size)]
    runs = replace(pair([PLAIN] * size * 3, drafted, once * 3), num_loads=3)
    speedup = measure(WORKLOAD, runs).speedup
    assert speedup is not None
    assert speedup.pairing == pairing
    first = math.log(PLAIN.wall_s / 0.5)
    assert [len(load) for load in speedup.loads] == [size] * 3
    for load, ratios in enumerate(speedup.loads, start=1):
        assert ratios == pytest.approx((first + math.log(load),) * size)
    assert speedup.log_ratios == tuple(each for load in speedup.loads for each in load)


@pytest.mark.parametrize(
    ("order", "num_loads"), [((*ABBA, B, B, S, S), 2), ((B, S) * 4, 3), ((B, B, S, S) * 2, 1)]
)
def test_loads_that_are_not_alike_have_no_speedup(order: tuple[Role, ...], num_loads: int) -> None:
    runs = replace(pair([PLAIN] * 4, [DRAFTED] * 4, order), num_loads=num_loads)
    measurement = measure(WORKLOAD, runs)
    assert measurement.speedup is None
    assert "does not pair the engines" in str(measurement.speedup_missing)


EMPTY = walk(generation(num_tokens=0), generation("p2", num_tokens=0))
LONGER = walk(generation(num_tokens=11), generation("p2"))
MOVED = walk(generation(num_tokens=9), generation("p2", num_tokens=11))


@pytest.mark.parametrize(
    ("baseline", "speculative", "order", "reason"),
    [
        ([PLAIN] * 2, [LONGER] * 2, ABBA, "baseline 20, speculative 21"),
        ([PLAIN] * 2, [DRAFTED, LONGER], ABBA, "speculative 20 or 21"),
        ([PLAIN, LONGER], [PLAIN, LONGER], ABBA, "baseline 20 or 21"),
        ([EMPTY] * 2, [EMPTY] * 2, ABBA, "no tokens"),
        ([replace(PLAIN, wall_s=0.0)] * 2, [DRAFTED] * 2, ABBA, "no time"),
        ([PLAIN] * 2, [walk(generation(num_tokens=20, num_steps=0))] * 2, ABBA, "no steps"),
        ([PLAIN] * 2, [DRAFTED], ABBA, "2 + 2 passes of the two engines, but 2 + 1"),
        ([PLAIN] * 2, [DRAFTED], (B, S, B), "does not pair"),
        ([PLAIN] * 3, [DRAFTED] * 3, (B, B, S, B, S, S), "does not pair"),
        ([PLAIN] * 2, [MOVED] * 2, ABBA, None),
        ([PLAIN], [DRAFTED], ABBA[:2], None),
    ],
)
def test_speedup_needs_equal_work_in_pairs(
    baseline: list[Pass], speculative: list[Pass], order: tuple[Role, ...], reason: str | None
) -> None:
    measurement = measure(WORKLOAD, pair(baseline, speculative, order))
    assert (measurement.speedup is None) == (reason is not None)
    if reason is None:
        assert measurement.speedup_missing is None
    else:
        assert reason in str(measurement.speedup_missing)


def test_a_sampled_answer_leaves_no_trail() -> None:
    sampled = replace(WORKLOAD.prompts[0], id="p1", request={"temperature": 0.7})
    workload = replace(WORKLOAD, prompts=(sampled,))
    first, second = measure(workload, pair([PLAIN] * 2, [DRAFTED] * 2)).prompts
    assert first.trail == ""
    assert second.trail != ""


def test_passes_that_nobody_timed_have_no_speedup() -> None:
    runs = pair([PLAIN] * 2, [DRAFTED] * 2, ABBA)
    assert measure(WORKLOAD, runs).speedup is not None
    measurement = measure(replace(WORKLOAD, gated=()), runs)
    assert measurement.speedup is None
    assert measurement.speedup_missing == (
        "the workload gates nothing, so its passes are not timed"
    )
    assert measurement.acceptance_rate == measure(WORKLOAD, runs).acceptance_rate
