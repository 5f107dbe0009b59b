"""Updating stored baselines: what is stored of a measurement, how old and new are put together.

Pure functions; `baseline_store` writes what they return. Floor 3.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pytest_specdec.errors import StoredBaselineError
from pytest_specdec.measurement import Measurement
from pytest_specdec.stored_baseline import (
    UPDATE_OPTION,
    Provenance,
    StoredAcceptance,
    StoredBaseline,
    StoredLoad,
    StoredSpeedup,
    StoredWorkload,
    rounded,
)
from pytest_specdec.verdict import DRAFT_COUNTERS, Verdict, number, percent

UpdateMode = Literal["all", "new"]
# A profile that lets nothing be lost can be recorded all the same.
LEAST_ROOM = 0.02
CI_OPTION = "--update-baselines-in-ci"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """One line of the old -> new table; `None` for a number that is not there."""

    workload: str
    metric: str
    old: float | None
    new: float | None


def stored_workload(measurement: Measurement, provenance: Provenance) -> StoredWorkload:
    """What is stored of a measurement.

    A speedup of one pair of passes is left out: nothing says how far off it may be.

    Raises:
        StoredBaselineError: nothing was drafted, or nobody counted.
    """
    rate, length = measurement.acceptance_rate, measurement.mean_acceptance_length
    per_token, per_step = measurement.drafts_per_output_token, measurement.tokens_per_step
    source = measurement.drafts_source
    if rate is None or length is None or per_token is None or per_step is None or source is None:
        raise StoredBaselineError(f"`{measurement.workload}` has no acceptance to store")
    return StoredWorkload(
        digest=measurement.workload_digest,
        concurrency=measurement.concurrency,
        acceptance=StoredAcceptance(
            rate=rate,
            mean_acceptance_length=length,
            drafts_per_output_token=per_token,
            tokens_per_step=per_step,
            estimator="accepted over draft tokens, pooled over the workload",
            drafts_source=source,
            prompts=tuple(sorted(measurement.prompts, key=lambda prompt: prompt.id)),
        ),
        speedup=_stored_speedup(measurement),
        provenance=provenance,
    )


def _stored_speedup(measurement: Measurement) -> StoredSpeedup | None:
    speedup = measurement.speedup
    if speedup is None or len(speedup.log_ratios) < 2:
        return None
    return StoredSpeedup(
        value=speedup.value,
        estimator=f"mean log ratio over {speedup.pairing} pairs of passes",
        loads=tuple(StoredLoad(log_ratios=load) for load in speedup.loads),
        baseline_tokens_per_step=speedup.baseline_tokens_per_step,
        speculative_tokens_per_step=speedup.speculative_tokens_per_step,
        baseline_step_ms=speedup.baseline_step_ms,
        speculative_step_ms=speedup.speculative_step_ms,
    )


def merged(old: StoredBaseline | None, new: StoredBaseline, *, mode: UpdateMode) -> StoredBaseline:
    """The file after an update: `all` replaces the workloads that `new` holds, `new` only adds
    those that are missing. Workloads that `new` does not hold stay, so a partial selection
    deletes nothing.

    Raises:
        StoredBaselineError: the two are of different profiles or hardware.
    """
    if old is None:
        return new
    differences = old.hardware_differences(new.hardware_key, new.hardware)
    if old.profile != new.profile:
        differences = (*differences, f"profile: {old.profile} stored, {new.profile} here")
    if differences:
        raise StoredBaselineError(
            "numbers of other hardware are not mixed into one stored baseline\n"
            + "\n".join(differences),
            hint=f"delete the file of `{old.hardware_key}` and record again with `{UPDATE_OPTION}`",
        )
    first, last = (old, new) if mode == "all" else (new, old)
    return replace(new, workloads={**first.workloads, **last.workloads})


def diff_rows(old: StoredBaseline | None, new: StoredBaseline) -> tuple[DiffRow, ...]:
    """What an update changes, by workload; numbers that stay as stored are left out."""
    before: Mapping[str, StoredWorkload] = {} if old is None else old.workloads
    return tuple(
        DiffRow(workload=name, metric=metric, old=was, new=now)
        for name in sorted(before.keys() | new.workloads.keys())
        for metric, was, now in _moved(before.get(name), new.workloads.get(name))
    )


def _moved(
    old: StoredWorkload | None, new: StoredWorkload | None
) -> list[tuple[str, float | None, float | None]]:
    was, now = _figures(old), _figures(new)
    pairs = [(metric, was.get(metric), now.get(metric)) for metric in was | now]
    return [(metric, before, after) for metric, before, after in pairs if before != after]


def _figures(workload: StoredWorkload | None) -> dict[str, float]:
    if workload is None:
        return {}
    acceptance = workload.acceptance
    figures = {
        "acceptance rate": acceptance.rate,
        "mean acceptance length": acceptance.mean_acceptance_length,
        "drafts per output token": acceptance.drafts_per_output_token,
        "tokens per step": acceptance.tokens_per_step,
    }
    if workload.speedup is not None:
        figures["speedup"] = workload.speedup.value
    return {metric: rounded(value) for metric, value in figures.items()}


def unused(stored: StoredBaseline, asked_for: Collection[str]) -> tuple[str, ...]:
    """Stored workloads that no test asked for."""
    return tuple(sorted(stored.workloads.keys() - set(asked_for)))


def refusals(
    *,
    findings: Sequence[str],
    verdicts: Sequence[Verdict],
    is_ci: bool,
    is_update_in_ci_allowed: bool,
    speedup_drop: float,
) -> tuple[str, ...]:
    """Why one workload's numbers must not be stored, each as a sentence; empty when they may be.

    A verdict of `failed` is no reason: accepting lower numbers is what an update is for. Counters
    that contradict themselves are.

    Args:
        findings: defects in the answers, identity or structure, one line each.
        verdicts: those made on the workload.
        speedup_drop: fall of the speedup that the profile lets pass; a speedup that scatters by
            more than that is no measure for later ones.
    """
    reasons = []
    if is_ci and not is_update_in_ci_allowed:
        reasons.append(f"this is a CI environment and `{CI_OPTION}` is not given")
    if findings:
        reasons.append(f"answers have defects ({len(findings)}), the first: {findings[0]}")
    for verdict in verdicts:
        if verdict.kind in {"inconclusive", "unmeasured"}:
            reasons.append(f"{verdict.metric} is {verdict.kind}")
        elif verdict.metric == DRAFT_COUNTERS:
            reasons.append("the draft counters contradict themselves")
        elif is_unstable(verdict, speedup_drop):
            reasons.append(
                f"{verdict.metric} is unstable: {number(verdict.now or 0)}, but as low as "
                f"{number(verdict.low or 0)} within its interval, further than the tolerance of "
                f"{percent(max(speedup_drop, LEAST_ROOM))}; raise `num_blocks` of the profile"
            )
    return tuple(reasons)


def is_unstable(verdict: Verdict, drop: float) -> bool:
    """Whether a figure scatters by more than may be lost of it. Without a finite interval nothing
    is known of its scatter, and nothing of it is stored."""
    now, low, high = verdict.now, verdict.low, verdict.high
    if now is None or low is None or high is None or math.isinf(high):
        return False
    return low < now * (1 - max(drop, LEAST_ROOM))
