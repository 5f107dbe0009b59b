"""Two recordings beside each other, an old vLLM's and a new one's: what moved, as facts.

Floor 3; pure. The report prints them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_specdec.checks.identity import Divergence, compare
from pytest_specdec.generation import ROLES, Role
from pytest_specdec.measurement import Measurement, measure
from pytest_specdec.recording import Header, Recording, differences, told_settings
from pytest_specdec.speedup import Speedup
from pytest_specdec.statistics import Estimate, difference_of_loads, exponential, mean_of_loads

CONFIDENCE = 0.95
"""Of each interval by itself, from end to end; nothing is gated by it."""

Recorded = Mapping[str, Recording]
"""One profile's recordings, by workload."""
Changed = tuple[str, object, object]
"""A name, and what it was and is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A figure that scatters, such as a speedup: a ratio of times.

    Attributes:
        low, high: the interval; `None` where too few passes show a scatter.
    """

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadComparison:
    """One workload.

    Attributes:
        unlike: why its answers and figures are not comparable; empty where they are.
        num_greedy: prompts whose answers are determined.
        diverging: by engine, the first differences between its greedy answers of then and now.
        old, new: the figures; `None` where it was not recorded.
        old_speedup, new_speedup: with their scatter; `None` where there is none.
        speedup_change: the new over the old; `None` where they are not comparable.
    """

    name: str
    unlike: Sequence[str]
    num_greedy: int
    diverging: Mapping[Role, Sequence[Divergence]]
    old: Measurement | None
    new: Measurement | None
    old_speedup: Ratio | None
    new_speedup: Ratio | None
    speedup_change: Ratio | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileComparison:
    """One profile, or two of them.

    Attributes:
        names: the profiles', which are one where sessions are compared.
        old, new: what the first recordings are of.
        facts: what differs in versions, hardware and the profile's engine settings.
        config: what vLLM made of its arguments, by engine, where that differs.
    """

    names: tuple[str, str]
    old: Header
    new: Header
    facts: Sequence[Changed]
    config: Mapping[Role, Sequence[Changed]]
    workloads: Sequence[WorkloadComparison]


def compare_profiles(names: tuple[str, str], old: Recorded, new: Recorded) -> ProfileComparison:
    """All workloads of either; both hold at least one."""
    before, after = (next(iter(each.values())).header for each in (old, new))
    return ProfileComparison(
        names=names,
        old=before,
        new=after,
        facts=[*_facts(before, after)],
        config={
            role: [*_changed(before.engines[role].config, after.engines[role].config)]
            for role in ROLES
            if role in before.engines and role in after.engines
        },
        workloads=[
            _workload(each, old.get(each), new.get(each)) for each in dict.fromkeys((*old, *new))
        ],
    )


def _facts(old: Header, new: Header) -> Iterator[Changed]:
    yield from _changed(old.versions, new.versions)
    yield from _changed(old.hardware.facts, new.hardware.facts)
    yield from _changed(*(told_settings(header.profile) for header in (old, new)))


def _changed(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[Changed]:
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield key, old.get(key), new.get(key)


def _workload(name: str, old: Recording | None, new: Recording | None) -> WorkloadComparison:
    was, now = (None if each is None else measure(each.workload, each.runs) for each in (old, new))
    unlike = _unlike(old, new)
    greedy: list[str] = []
    diverging: Mapping[Role, Sequence[Divergence]] = {}
    if old is not None and new is not None:
        greedy = [prompt.id for prompt in new.workload.asked if prompt.is_greedy]
        if not unlike:
            diverging = {role: _diverging(role, greedy, old, new) for role in ROLES}
    before, after = (None if each is None else each.speedup for each in (was, now))
    return WorkloadComparison(
        name=name,
        unlike=unlike,
        num_greedy=len(greedy),
        diverging=diverging,
        old=was,
        new=now,
        old_speedup=_speedup(before),
        new_speedup=_speedup(after),
        speedup_change=None if unlike else _change(before, after),
    )


def _unlike(old: Recording | None, new: Recording | None) -> list[str]:
    if old is None or new is None:
        return ["only in B" if old is None else "only in A"]
    is_alike = old.workload.digest == new.workload.digest
    return [] if is_alike else [*differences(old.workload, new.workload)]


def _speedup(speedup: Speedup | None) -> Ratio | None:
    return None if speedup is None else _ratio(speedup.value, mean_of_loads(speedup.loads))


def _change(old: Speedup | None, new: Speedup | None) -> Ratio | None:
    """By the scatter of both: two intervals may overlap where the change is sure."""
    if old is None or new is None:
        return None
    return _ratio(new.value / old.value, difference_of_loads(new.loads, old.loads))


def _ratio(value: float, log: Estimate | None) -> Ratio:
    """Of a figure, and of what is known of its logarithm."""
    if log is None:
        return Ratio(value=value, low=None, high=None)
    each_end = (1 + CONFIDENCE) / 2
    low, high = log.low(each_end), log.high(each_end)
    return Ratio(value=value, low=exponential(low), high=exponential(high))


def _diverging(
    role: Role, prompt_ids: Sequence[str], old: Recording, new: Recording
) -> list[Divergence]:
    first, second = (each.runs.run(role).passes[0] for each in (old, new))
    found = (compare(first.generation(each), second.generation(each)) for each in prompt_ids)
    return [each for each in found if each is not None]
