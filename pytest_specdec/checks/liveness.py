"""Whether a workload exercised speculation at all, so that sameness means something. Floor 2."""

from __future__ import annotations

from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import RunPair
from pytest_specdec.workload import Workload


def check_exercised(
    workload: Workload, runs: RunPair, *, num_speculative_tokens: int | None
) -> Finding | None:
    raise NotImplementedError
