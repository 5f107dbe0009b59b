"""What else went on while timed passes were taken: load of others, throttling, company on the GPU.

Recorded beside the numbers, because a ratio of two times does not say what disturbed either. It
may leave a speedup undecided and never passes one. What cannot be read is `None`, since recording
must not end a run; `observer` does that. Floor 0: imports nothing from the package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

T = TypeVar("T", str, int)

# NVML's other reasons tell how a GPU was set up or, as the power cap does, how a loaded one works
# all day.
DISTURBING_REASONS = {
    "HW slowdown",
    "SW thermal slowdown",
    "HW thermal slowdown",
    "HW power brake slowdown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What else went on in one stretch of time.

    Attributes:
        device: what the engines run on.
        wall_s: how long the stretch was, in seconds.
        other_cpu_share: time that others used of all the cores in `/proc/stat`, 0 to 1, time
            stolen by the hypervisor included. Those are the cores of the host as a container sees
            it, often more than this process may use, so that others may fill the few it has while
            the share is small.
        load_average: of the minute before the end; our own engines are in it.
        num_samples: how often the GPUs were asked; the facts of a CPU need only both ends.
        throttle_reasons: what kept the clocks down at any time, in NVML's words, sorted.
        other_gpu_processes: sorted ids of processes not ours that computed on the GPUs. `None`
            also where NVML never names one of ours: in a container it may count by the host's ids.
        sm_clock_mhz: lowest and highest seen while not idle, of the GPU where they differ most.
    """

    device: Literal["cpu", "gpu"]
    wall_s: float
    other_cpu_share: float | None = None
    load_average: float | None = None
    num_samples: int = 0
    throttle_reasons: tuple[str, ...] | None = None
    other_gpu_processes: tuple[int, ...] | None = None
    sm_clock_mhz: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Conditions:
        lists = ("throttle_reasons", "other_gpu_processes", "sm_clock_mhz")
        return cls(
            **{**data, **{key: None if data[key] is None else tuple(data[key]) for key in lists}}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may go on beside a pass before its time says little.

    Attributes:
        max_other_cpu_share: 0 to 1. Of a CPU profile only: a GPU's host has cores to spare.
        max_clock_spread: highest to lowest SM clock, relative to the highest.
    """

    max_other_cpu_share: float = field(
        default=0.25,
        metadata={
            "help": "share of the CPU that others may use while a CPU profile is timed",
            "min": 0.0,
            "max": 1.0,
        },
    )
    max_clock_spread: float = field(
        default=0.10,
        metadata={
            "help": "how far below its highest the GPU's SM clock may fall while it is timed",
            "min": 0.0,
            "max": 1.0,
        },
    )


def together(stretches: Sequence[Conditions]) -> Conditions | None:
    """Several stretches as one: shares by their length, the rest at its worst; `None` for none."""
    if not stretches:
        return None
    wall_s = sum(each.wall_s for each in stretches)
    shares = [
        (each.other_cpu_share, each.wall_s)
        for each in stretches
        if each.other_cpu_share is not None
    ]
    known_s = sum(length for _, length in shares)
    clocks = [each.sm_clock_mhz for each in stretches if each.sm_clock_mhz is not None]
    return Conditions(
        device=stretches[0].device,
        wall_s=wall_s,
        other_cpu_share=sum(share * length for share, length in shares) / known_s
        if known_s
        else None,
        load_average=max(
            (each.load_average for each in stretches if each.load_average is not None), default=None
        ),
        num_samples=sum(each.num_samples for each in stretches),
        throttle_reasons=_union(each.throttle_reasons for each in stretches),
        other_gpu_processes=_union(each.other_gpu_processes for each in stretches),
        sm_clock_mhz=max(clocks, key=spread, default=None),
    )


def _union(parts: Iterable[tuple[T, ...] | None]) -> tuple[T, ...] | None:
    known = [part for part in parts if part is not None]
    return tuple(sorted({each for part in known for each in part})) if known else None


def disturbances(conditions: Conditions, limits: Limits) -> tuple[str, ...]:
    """What may have changed the times, one fact each; empty when nothing did."""
    told = []
    share = conditions.other_cpu_share
    if conditions.device == "cpu" and share is not None and share > limits.max_other_cpu_share:
        told.append(
            f"others used {_percent(share)} of the CPU "
            f"(limit {_percent(limits.max_other_cpu_share)})"
        )
    reasons = [each for each in conditions.throttle_reasons or () if each in DISTURBING_REASONS]
    if reasons:
        told.append(f"the GPU throttled: {', '.join(reasons)}")
    if conditions.other_gpu_processes:
        told.append(f"other processes on the GPU: {len(conditions.other_gpu_processes)}")
    clock = conditions.sm_clock_mhz
    if clock is not None and spread(clock) > limits.max_clock_spread:
        told.append(
            f"SM clock between {clock[0]} and {clock[1]} MHz "
            f"(spread limit {_percent(limits.max_clock_spread)})"
        )
    return tuple(told)


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def spread(clock: tuple[int, int]) -> float:
    """How far the lowest of two clocks is below the highest, 0 to 1."""
    low, high = clock
    return (high - low) / high if high > 0 else 0.0
