"""Timed passes as pytest-benchmark's entries: one for each workload and engine. Floor 4.

Knows what pytest-benchmark reads of a benchmark, and imports nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_specdec.generation import ROLES, Role
from pytest_specdec.measurement import output_tokens_per_s
from pytest_specdec.report.facts import WorkloadReport


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkEntry:
    """One engine's timed passes over one workload; the attributes are those of pytest-benchmark's
    own fixture, after `seconds`.

    Attributes:
        seconds: of each pass.
        name: such as `sql[my-model-speculative]`.
        fullname: the same after the test's node id; unique, and what runs are compared by.
        group: the workload, so that its two engines stand together.
    """

    seconds: tuple[float, ...]
    name: str
    fullname: str
    group: str
    param: str
    params: Mapping[str, str]
    extra_info: Mapping[str, str | int | float | None]
    cprofile_stats: None = field(default=None, init=False)
    has_error: bool = field(default=False, init=False)


def benchmark_entries(
    report: WorkloadReport, *, profile: str, nodeid: str
) -> tuple[BenchmarkEntry, ...]:
    """Both engines' entries for one workload that was timed."""
    return tuple(_entry(report, role, profile=profile, nodeid=nodeid) for role in ROLES)


def _entry(report: WorkloadReport, role: Role, *, profile: str, nodeid: str) -> BenchmarkEntry:
    workload, run = report.assessment.workload.name, report.assessment.runs.run(role)
    param = f"{profile}-{role}"
    return BenchmarkEntry(
        seconds=tuple(each.wall_s for each in run.passes),
        name=f"{workload}[{param}]",
        fullname=f"{nodeid}[{param}]",
        group=workload,
        param=param,
        params={"profile": profile, "engine": role},
        extra_info={
            "output_tokens_per_s": output_tokens_per_s(run),
            "num_output_tokens": run.passes[0].num_output_tokens,
            **(_of_speculation(report) if role == "speculative" else {}),
        },
    )


def _of_speculation(report: WorkloadReport) -> Mapping[str, str | float | None]:
    measurement, speedup = report.assessment.measurement, report.verdicts["speedup"]
    return {
        "acceptance_rate": measurement.acceptance_rate,
        "mean_acceptance_length": measurement.mean_acceptance_length,
        "tokens_per_step": measurement.tokens_per_step,
        "speedup": speedup.now,
        "verdict": report.word("speedup"),
    }
