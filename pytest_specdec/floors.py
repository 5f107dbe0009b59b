"""Floors: the lowest figure that passes, how it came about, and the verdict's text around it.

What both judges share. Floor 3; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_specdec.looks import schedule
from pytest_specdec.measurement import Measurement, is_nothing_drafted
from pytest_specdec.profile import Profile, Tolerances
from pytest_specdec.stored_baseline import StoredWorkload, rounded
from pytest_specdec.verdict import Verdict, VerdictKind, percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a judge goes by, beside the numbers.

    Attributes:
        level: how often this figure may be called fallen although it is not; `holm` shares out the
            profile's `false_alarms` among the figures that are gated.
        looks: after how many blocks, or loads, a speedup is looked at.
        counts_loads: whether it is loads; else it is blocks, while there is one load.
        update_command: what a person types to record the stored baseline.
        hardware_differences: `StoredBaseline.hardware_differences` of the stored file.
        disturbances: what else went on while the passes were taken, each a sentence.
        is_against_speculation: whether the baseline engine speculates too. Then the profile's
            `min_speedup` is what the speedup is held to, and a stored one may be missing.
    """

    tolerances: Tolerances
    level: float
    looks: tuple[int, ...]
    update_command: str
    counts_loads: bool = False
    hardware_differences: tuple[str, ...] = ()
    disturbances: tuple[str, ...] = ()
    is_against_speculation: bool = False


def looks_of(profile: Profile) -> tuple[int, ...]:
    """The fixed schedule: of loads where the profile has several, else of blocks. Where one engine
    makes all its passes first, no look could end them early, and there is one."""
    if profile.num_loads > 1:
        return schedule(profile.num_loads, profile.num_looks)
    return schedule(profile.num_blocks, 1 if profile.layout == "sequential" else profile.num_looks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum:
    """A floor of the profile, which holds with or without a stored baseline."""

    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure and the lowest value it passes with; all rounded as stored figures are.

    Attributes:
        floor: `None` when nothing is stored and the profile sets no minimum.
        origin: how the floor came about.
        minimum: the profile's minimum, where that is the floor.
    """

    metric: str
    now: float
    stored: float | None
    floor: float | None
    origin: str | None
    minimum: Minimum | None

    @property
    def has_fallen(self) -> bool:
        return self.floor is not None and self.now < self.floor


def line(
    metric: str,
    now: float,
    *,
    stored: float | None,
    drop: float,
    minimum: Minimum | None = None,
) -> Line:
    """The figure against the stored one less `drop`, or the profile's minimum if that is higher."""
    floor, origin, binding = None, None, None
    if stored is not None:
        floor, origin = rounded(stored * (1 - drop)), f"stored less {percent(drop)}"
    if minimum is not None and (floor is None or minimum.value > floor):
        floor, origin = rounded(minimum.value), f"`{minimum.name}` of the profile"
        binding = minimum
    return Line(
        metric=metric, now=rounded(now), stored=stored, floor=floor, origin=origin, minimum=binding
    )


def obstacles(
    measurement: Measurement, stored: StoredWorkload | None, hardware_differences: Sequence[str]
) -> tuple[str, ...]:
    """Why the stored numbers are not to be compared with; empty when they are, or not there."""
    if stored is None:
        return ()
    if stored.digest != measurement.workload_digest:
        return (*hardware_differences, "the workload is not the one that was stored")
    return tuple(hardware_differences)


def verdict_of(
    kind: VerdictKind,
    measurement: Measurement,
    figure: Line,
    *,
    update_command: str,
    reasons: Sequence[str] = (),
) -> Verdict:
    """The verdict on one figure, with the next step for its kind."""
    hints = {
        "failed": f"if this is meant, record it: `{update_command}`",
        "no stored baseline": f"record one: `{update_command}`",
        "incomparable": f"record it again: `{update_command}`",
    }
    hint = hints.get(kind)
    if kind == "failed" and figure.minimum is not None:
        hint = (
            "speculation does not pay here: change `speculative_config`, "
            f"or lower `{figure.minimum.name}` of the profile"
        )
    return Verdict(
        kind=kind,
        metric=figure.metric,
        workload=measurement.workload,
        now=figure.now,
        stored=figure.stored,
        floor=figure.floor,
        floor_origin=figure.origin,
        reasons=tuple(reasons),
        hint=hint,
    )


def of_other_hardware(verdict: Verdict, *, file: str, update_command: str) -> Verdict:
    """The verdict where the stored file is of other hardware under the same key: what would be
    recorded is not mixed into it, so it goes first."""
    if verdict.kind not in {"no stored baseline", "incomparable"}:
        return verdict
    hint = f"delete `{file}`, which is of other hardware, and record again: `{update_command}`"
    return replace(verdict, hint=hint)


def unmeasured(measurement: Measurement, metric: str, why: str) -> Verdict:
    """The verdict on figures that are not there; nothing drafted is the reason before others."""
    if is_nothing_drafted(measurement.drafts):
        why = f"nothing was drafted in {measurement.speculative.num_steps} steps"
        hint = (
            "see whether `speculative_config` took effect in the engine's log; "
            "n-gram drafts only what the prompt already holds"
        )
    elif metric == "speedup":
        hint = "passes of equal work need answers of equal length: set `ignore_eos` in the workload"
    else:
        hint = "vLLM counts drafts unless `disable_log_stats` is set"
    return Verdict(
        kind="unmeasured",
        metric=metric,
        workload=measurement.workload,
        reasons=(why,),
        hint=hint,
    )
