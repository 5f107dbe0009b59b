"""Two recordings beside each other, an old vLLM's and a new one's: what moved, as facts.

Floor 3; pure. The report prints them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_specdec.checks.identity import Divergence, compare
from pytest_specdec.generation import ROLES, Role
from pytest_specdec.measurement import Measurement, measure
from pytest_specdec.recording import TOLD, Header, Recording, differences

Recorded = Mapping[str, Recording]
"""One profile's recordings, by workload."""
Changed = tuple[str, object, object]
"""A name, and what it was and is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadComparison:
    """One workload.

    Attributes:
        unlike: why its answers and figures are not comparable; empty where they are.
        num_greedy: prompts whose answers are determined.
        diverging: by engine, the first differences between its greedy answers of then and now.
        old, new: the figures; `None` where it was not recorded.
    """

    name: str
    unlike: Sequence[str]
    num_greedy: int
    diverging: Mapping[Role, Sequence[Divergence]]
    old: Measurement | None
    new: Measurement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileComparison:
    """One profile.

    Attributes:
        old, new: what the first recordings are of.
        facts: what differs in versions, hardware and the profile's engine settings.
        config: what vLLM made of its arguments, by engine, where that differs.
    """

    name: str
    old: Header
    new: Header
    facts: Sequence[Changed]
    config: Mapping[Role, Sequence[Changed]]
    workloads: Sequence[WorkloadComparison]


def compare_profile(name: str, old: Recorded, new: Recorded) -> ProfileComparison:
    """All workloads of either; both hold at least one."""
    before, after = (next(iter(each.values())).header for each in (old, new))
    return ProfileComparison(
        name=name,
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
    yield from _changed(*({key: header.profile.get(key) for key in TOLD} for header in (old, new)))


def _changed(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[Changed]:
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield key, old.get(key), new.get(key)


def _workload(name: str, old: Recording | None, new: Recording | None) -> WorkloadComparison:
    was, now = (None if each is None else measure(each.workload, each.runs) for each in (old, new))
    if old is None or new is None:
        unlike = ["only in B" if old is None else "only in A"]
        return WorkloadComparison(
            name=name, unlike=unlike, num_greedy=0, diverging={}, old=was, new=now
        )
    is_alike = old.workload.digest == new.workload.digest
    unlike = [] if is_alike else [*differences(old.workload, new.workload)]
    greedy = [prompt.id for prompt in new.workload.asked if prompt.is_greedy]
    return WorkloadComparison(
        name=name,
        unlike=unlike,
        num_greedy=len(greedy),
        diverging={} if unlike else {role: _diverging(role, greedy, old, new) for role in ROLES},
        old=was,
        new=now,
    )


def _diverging(
    role: Role, prompt_ids: Sequence[str], old: Recording, new: Recording
) -> list[Divergence]:
    first, second = (each.runs.run(role).passes[0] for each in (old, new))
    found = (compare(first.generation(each), second.generation(each)) for each in prompt_ids)
    return [each for each in found if each is not None]
