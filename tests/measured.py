"""Measurements and stored workloads for tests of judgement, every number settable by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pytest_specdec.counters import DraftCounters
from pytest_specdec.floors import Rules
from pytest_specdec.generation import DraftsSource
from pytest_specdec.measurement import (
    EngineMeasurement,
    Measurement,
    PromptMeasurement,
)
from pytest_specdec.profile import Tolerances
from pytest_specdec.speedup import Speedup
from pytest_specdec.stored_baseline import (
    Provenance,
    StoredAcceptance,
    StoredBaseline,
    StoredLoad,
    StoredSpeedup,
    StoredWorkload,
    rounded,
)

TOLERANCES = Tolerances()
UPDATE = "pytest suites --update-baselines"

PROVENANCE = Provenance(
    versions={"vllm": "0.32.0", "torch": "2.13.0", "python": "3.11.9", "driver": None},
    commit=None,
    date="2026-01-31",
    num_loads=1,
    num_passes=4,
    settings_digest="5e77",
)


def counters(
    num_accepted: int = 100, *, num_drafts: int = 50, num_draft_tokens: int = 200
) -> DraftCounters:
    """Lawful counts: accepted tokens fill one position after the other."""
    positions = [min(num_drafts, max(0, num_accepted - num_drafts * at)) for at in range(4)]
    return DraftCounters(
        num_drafts=num_drafts,
        num_draft_tokens=num_draft_tokens,
        num_accepted_tokens=num_accepted,
        num_accepted_tokens_per_pos=tuple(positions),
    )


COUNTERS = counters()


def prompt(
    name: str = "p1",
    *,
    digest: str = "0" * 16,
    trail: str = "160:60:000000",
    drafts: DraftCounters | None = None,
) -> PromptMeasurement:
    return PromptMeasurement(
        id=name,
        num_output_tokens=160,
        num_steps=60,
        token_digest=digest,
        trail=trail,
        drafts=drafts,
    )


def engine(tokens_per_step: float | None) -> EngineMeasurement:
    return EngineMeasurement(
        num_passes=4,
        num_output_tokens=160,
        num_steps=60,
        tokens_per_step=tokens_per_step,
        ttft_ms=5.0,
        tpot_ms=2.0,
    )


def speedup(
    *values: float,
    tokens_per_step: float = 2.0,
    baseline_step_ms: float = 10.0,
    speculative_step_ms: float = 10.0,
) -> Speedup:
    return Speedup(
        loads=(tuple(math.log(value) for value in values),),
        pairing="adjacent",
        baseline_tokens_per_step=1.0,
        speculative_tokens_per_step=tokens_per_step,
        baseline_step_ms=baseline_step_ms,
        speculative_step_ms=speculative_step_ms,
    )


def measurement(
    *,
    drafts: DraftCounters | None = COUNTERS,
    tokens_per_step: float | None = 2.5,
    prompts: Sequence[PromptMeasurement] = (prompt(),),
    digest: str = "d1",
    drafts_source: DraftsSource | None = "request",
    speedup: Speedup | None = None,
    speedup_missing: str | None = None,
) -> Measurement:
    """By default: rate 0.5, mean acceptance length 3, 2.5 tokens per step."""
    return Measurement(
        workload="sql",
        workload_digest=digest,
        concurrency=1,
        baseline=engine(1.0),
        speculative=engine(tokens_per_step),
        drafts=drafts,
        drafts_source=drafts_source,
        prompts=tuple(prompts),
        speedup=speedup,
        speedup_missing=speedup_missing,
    )


def stored(
    *,
    rate: float = 0.5,
    mean_acceptance_length: float = 3.0,
    tokens_per_step: float = 2.5,
    digest: str = "d1",
    drafts_source: DraftsSource = "request",
    prompts: Sequence[PromptMeasurement] = (prompt(),),
    speedup: float | None = None,
) -> StoredWorkload:
    return StoredWorkload(
        digest=digest,
        concurrency=1,
        acceptance=StoredAcceptance(
            rate=rate,
            mean_acceptance_length=mean_acceptance_length,
            drafts_per_output_token=0.3125,
            tokens_per_step=tokens_per_step,
            estimator="pooled",
            drafts_source=drafts_source,
            prompts=tuple(prompts),
        ),
        speedup=None if speedup is None else stored_speedup(speedup),
        provenance=PROVENANCE,
    )


def large_baseline(*, rate: float) -> StoredBaseline:
    """A file of about 40 kB, more than is written at once, that is soon checked: the names are
    long."""
    prompts = [prompt(f"p{number}" * 5000, drafts=COUNTERS) for number in range(4)]
    return StoredBaseline(
        hardware_key="cpu-x",
        hardware={"model": "X 9"},
        profile="ngram",
        workloads={"sql": stored(rate=rate, prompts=prompts)},
    )


def stored_speedup(
    value: float, *, step_ms: float = 10.0, loads: Sequence[Sequence[float]] = ((0, 0, 0, 0),)
) -> StoredSpeedup:
    """Made of `value` tokens per step at equal step costs.

    Args:
        loads: what is added to the log ratio of each pair of passes.
    """
    return StoredSpeedup(
        value=value,
        estimator="mean log ratio",
        loads=tuple(
            StoredLoad(log_ratios=tuple(rounded(math.log(value) + each) for each in load))
            for load in loads
        ),
        baseline_tokens_per_step=1.0,
        speculative_tokens_per_step=value,
        baseline_step_ms=step_ms,
        speculative_step_ms=step_ms,
    )


def rules(
    *,
    tolerances: Tolerances = TOLERANCES,
    level: float = 0.05,
    looks: tuple[int, ...] = (1,),
    **changed: Any,
) -> Rules:
    """By default one look, after a block, and 5% on both sides."""
    return Rules(tolerances=tolerances, level=level, looks=looks, update_command=UPDATE, **changed)
