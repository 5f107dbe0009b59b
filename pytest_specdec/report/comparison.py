"""Two recordings beside each other, for a terminal: a row a workload, then what else differs.

Floor 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pytest_specdec.checks.finding import at_most
from pytest_specdec.comparison import ProfileComparison, WorkloadComparison
from pytest_specdec.generation import ROLES
from pytest_specdec.measurement import Measurement
from pytest_specdec.recording import Header
from pytest_specdec.report.facts import ABSENT

COLUMNS = (
    "workload",
    "greedy answers that differ: baseline / speculative",
    "acceptance rate A / B",
    "mean acceptance length A / B",
    "speedup A / B",
)
MAX_NAMED = 8


def comparison_lines(comparison: ProfileComparison) -> Iterator[str]:
    """One profile's part."""
    yield f"profile {comparison.name}"
    yield f"A: {_of(comparison.old)}"
    yield f"B: {_of(comparison.new)}"
    table = [COLUMNS, *map(_row, comparison.workloads)]
    widths = [max(len(row[column]) for row in table) for column in range(len(COLUMNS))]
    yield from ("  ".join(map(str.ljust, row, widths)).rstrip() for row in table)
    for each in comparison.workloads:
        yield from _notes(each)
    for name, was, now in comparison.facts:
        yield f"{name}: {_shown(was)} -> {_shown(now)}"
    for role, changes in comparison.config.items():
        for name, was, now in changes:
            yield f"{role} engine: {name}: {_shown(was)} -> {_shown(now)}"
    if comparison.old.hardware != comparison.new.hardware:
        yield "the hardware differs: speedups say nothing of the versions"


def _of(header: Header) -> str:
    vllm, torch = (header.versions.get(name) or ABSENT for name in ("vllm", "torch"))
    return f"{header.date}; vLLM {vllm}, torch {torch}; {header.hardware}"


def _row(workload: WorkloadComparison) -> tuple[str, ...]:
    return (
        workload.name,
        " / ".join(
            f"{len(workload.diverging[role])} of {workload.num_greedy}"
            if workload.num_greedy and role in workload.diverging
            else ABSENT
            for role in ROLES
        ),
        _figures(workload, lambda each: each.acceptance_rate),
        _figures(workload, lambda each: each.mean_acceptance_length),
        _figures(workload, lambda each: each.speedup.value if each.speedup else None),
    )


def _figures(workload: WorkloadComparison, figure: Callable[[Measurement], float | None]) -> str:
    figures = (None if each is None else figure(each) for each in (workload.old, workload.new))
    return " / ".join(ABSENT if each is None else f"{each:.3f}" for each in figures)


def _notes(workload: WorkloadComparison) -> Iterator[str]:
    if workload.unlike:
        yield f"{workload.name}: not comparable: {'; '.join(workload.unlike)}"
    for role, diverging in workload.diverging.items():
        if diverging:
            told = [f"{each.baseline.prompt_id} at token {each.position}" for each in diverging]
            yield f"{workload.name}: {role} answers differ: {', '.join(at_most(told, MAX_NAMED))}"


def _shown(value: object) -> str:
    return ABSENT if value is None else str(value)
