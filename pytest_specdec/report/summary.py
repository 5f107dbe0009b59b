"""The summary for a terminal: a row a workload, then what a person needs beside it. Floor 4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_specdec.assessment import Assessment
from pytest_specdec.report.facts import ABSENT, ProfileReport, WorkloadReport
from pytest_specdec.report.figures import decimal, scattered
from pytest_specdec.report.worth_it_lines import worth_it_lines
from pytest_specdec.verdict import number, percent

COLUMNS = (
    "workload",
    "identical",
    "valid",
    "acceptance rate now / stored / floor",
    "mean acceptance length",
    "speedup",
    "fall that fails: acceptance / speedup",
    "verdict",
)


def summary_lines(report: ProfileReport) -> list[str]:
    """One profile's part of the summary; empty when nothing ran."""
    worth_it = [] if report.worth_it is None else worth_it_lines(report.worth_it)
    if not report.workloads and not worth_it:
        return []
    return [*(_table(report.workloads) if report.workloads else ()), *worth_it, *_notes(report)]


def _table(workloads: Sequence[WorkloadReport]) -> Iterator[str]:
    table = [COLUMNS, *map(_row, workloads)]
    widths = [max(len(row[column]) for row in table) for column in range(len(COLUMNS))]
    return ("  ".join(map(str.ljust, row, widths)).rstrip() for row in table)


def _row(report: WorkloadReport) -> tuple[str, ...]:
    assessment, measurement = report.assessment, report.assessment.measurement
    speedup = report.verdicts["speedup"]
    return (
        assessment.workload.name,
        _identical(assessment),
        _valid(report),
        _rate(report),
        decimal(measurement.mean_acceptance_length, 2),
        scattered(speedup.now, speedup.low, speedup.high),
        _smallest_falls(report),
        report.verdict,
    )


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" if total else ABSENT


def _identical(assessment: Assessment) -> str:
    """Near ties stand beside it: they pass, and are not identical."""
    text, count = _of(assessment.num_identical, assessment.num_greedy), len(assessment.near_ties)
    return f"{text} ({count} near {'tie' if count == 1 else 'ties'})" if count else text


def _valid(report: WorkloadReport) -> str:
    """On the speculative engine; the baseline engine's count stands beside it where it differs
    from all, for then the model fails some prompts by itself."""
    counts, total = report.assessment.num_valid, report.assessment.num_checked
    text = _of(counts["speculative"], total)
    if counts["baseline"] != total:
        text += f" (baseline {counts['baseline']})"
    return text


def _rate(report: WorkloadReport) -> str:
    if report.rate is None:
        return ABSENT
    figures = (report.rate.now, report.rate.stored, report.rate.floor)
    return " / ".join(decimal(each, 3) for each in figures)


def _smallest_falls(report: WorkloadReport) -> str:
    """Of acceptance and of the speedup, below stored: what this run would have failed for."""
    drops = [verdict.smallest_drop for verdict in report.verdicts.values()]
    return " / ".join(ABSENT if drop is None else percent(drop) for drop in drops)


def _notes(report: ProfileReport) -> Iterator[str]:
    yield from _versions(report)
    if report.is_changed:
        yield "the profile's settings are not those that the numbers were stored with"
    starts = ", ".join(f"{role} {count}" for role, count in report.num_starts.items())
    loads = ", ".join(f"{role} {facts.load_s:.1f} s" for role, facts in report.engines.items())
    yield f"engines started: {starts}; loaded in: {loads or ABSENT}"
    if report.config_differences:
        differences = "; ".join(
            f"{key} {first} / {second}"
            for key, (first, second) in report.config_differences.items()
        )
        yield f"engines differ in (baseline / speculative): {differences}"
    yield from _known_defects(report)
    for each in report.workloads:
        for disturbance in each.disturbances:
            yield f"{each.assessment.workload.name}: while it was timed, {disturbance}"
    if report.unused:
        yield "stored, but no test asked for: " + ", ".join(report.unused)
    for defect in report.untested:
        yield f"known defect that no test is about: `{defect.check}` of `{defect.workload}`"
    yield from _update(report)
    hints = {
        verdict.hint
        for each in report.workloads
        if not each.is_stored_now
        for verdict in each.gated_verdicts
        if verdict.kind in ("no stored baseline", "incomparable") and verdict.hint
    }
    yield from (f"hint: {hint}" for hint in sorted(hints))


def _known_defects(report: ProfileReport) -> Iterator[str]:
    """Never silent: what is known to be broken, and how often it was seen, or that it was not."""
    for each in report.workloads:
        name = each.assessment.workload.name
        for defect in dict.fromkeys(each.known.values()):
            count = sum(other is defect for other in each.known.values())
            yield f"{name}: {defect.check}: {defect} (seen: {count})"
        for defect in each.unseen:
            yield f"{name}: {defect.check}: unexpected pass: {defect}"


def _versions(report: ProfileReport) -> Iterator[str]:
    """Names what was upgraded since the numbers were stored."""
    now = {name: report.versions.get(name) or ABSENT for name in report.stored_versions}
    changed = [
        f"{name} {' and '.join(stored)} -> {now[name]}"
        for name, stored in report.stored_versions.items()
        if list(stored) != [now[name]]
    ]
    if changed:
        yield "changed since the numbers were stored: " + ", ".join(changed)
        yield from _moves(report.workloads)


def _moves(workloads: Sequence[WorkloadReport]) -> Iterator[str]:
    """What moved with the upgrade, a line a workload."""
    for each in workloads:
        moved = [
            f"{verdict.metric} {number(verdict.stored)} -> {number(verdict.now)}"
            for verdict in each.verdicts.values()
            if verdict.stored is not None and verdict.now is not None
        ]
        if moved:
            yield f"  {each.assessment.workload.name}: {', '.join(moved)}"


def _update(report: ProfileReport) -> Iterator[str]:
    if report.update is None:
        for each in report.workloads:
            if each.not_stored:
                yield f"{each.assessment.workload.name}: not stored: {'; '.join(each.not_stored)}"
        return
    for row in report.update.rows:
        old, new = (ABSENT if each is None else number(each) for each in (row.old, row.new))
        yield f"{row.workload}: {row.metric} {old} -> {new}"
    for name, reasons in report.update.refused.items():
        yield f"{name}: not stored: {'; '.join(reasons)}"
    path = report.update.path
    yield "stored baselines unchanged" if path is None else f"stored baselines written: {path}"
