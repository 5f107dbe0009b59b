"""Two recordings beside each other, for a terminal: a row a workload, then what else differs.

Floor 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pytest_specdec.checks.finding import at_most
from pytest_specdec.comparison import ProfileComparison, Ratio, WorkloadComparison
from pytest_specdec.generation import ROLES
from pytest_specdec.measurement import Measurement
from pytest_specdec.recording import Header
from pytest_specdec.report.facts import ABSENT
from pytest_specdec.report.figures import decimal, scattered

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
    yield _title(comparison)
    yield f"A: {_of(comparison.old)}"
    yield f"B: {_of(comparison.new)}"
    table = [COLUMNS, *map(_row, comparison.workloads)]
    widths = [max(len(row[column]) for row in table) for column in range(len(COLUMNS))]
    yield from ("  ".join(map(str.ljust, row, widths)).rstrip() for row in table)
    for each in comparison.workloads:
        yield from _notes(each)
    if any(map(_is_of_one_load, comparison.workloads)):
        yield "speedups of one load each: what varies between engine starts is in no interval"
    for name, was, now in comparison.facts:
        yield f"{name}: {_shown(was)} -> {_shown(now)}"
    for role, changes in comparison.config.items():
        for name, was, now in changes:
            yield f"{role} engine: {name}: {_shown(was)} -> {_shown(now)}"
    if comparison.old.hardware != comparison.new.hardware:
        yield "the hardware differs: speedups say nothing of the versions"


def _title(comparison: ProfileComparison) -> str:
    old, new = comparison.names
    return f"profile {old}" if old == new else f"profiles {old} (A) and {new} (B)"


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
        f"{_interval(workload.old_speedup)} / {_interval(workload.new_speedup)}",
    )


def _figures(workload: WorkloadComparison, figure: Callable[[Measurement], float | None]) -> str:
    figures = (None if each is None else figure(each) for each in (workload.old, workload.new))
    return " / ".join(decimal(each, 3) for each in figures)


def _interval(ratio: Ratio | None, *, digits: int = 2) -> str:
    return ABSENT if ratio is None else scattered(ratio.value, ratio.low, ratio.high, digits=digits)


def _notes(workload: WorkloadComparison) -> Iterator[str]:
    if workload.unlike:
        yield f"{workload.name}: not comparable: {'; '.join(workload.unlike)}"
    for role, diverging in workload.diverging.items():
        if diverging:
            told = [f"{each.baseline.prompt_id} at token {each.position}" for each in diverging]
            yield f"{workload.name}: {role} answers differ: {', '.join(at_most(told, MAX_NAMED))}"

    if (change := workload.speedup_change) is not None:
        said = f"{workload.name}: speedup B / A: {_interval(change, digits=3)}"
        yield f"{said}: {_moved(change)}"


def _moved(change: Ratio) -> str:
    if change.low is None or change.high is None:
        return "too few passes to decide whether it changed"
    if change.low <= 1 <= change.high:
        return "whether it changed is undecided"
    return "it rose" if change.value > 1 else "it fell"


def _is_of_one_load(workload: WorkloadComparison) -> bool:
    """Whether its change is judged by the scatter within the one load of either side."""
    both = (workload.old, workload.new)
    loads = [each.speedup.loads for each in both if each is not None and each.speedup is not None]
    return workload.speedup_change is not None and all(len(each) == 1 for each in loads)


def _shown(value: object) -> str:
    return ABSENT if value is None else str(value)
