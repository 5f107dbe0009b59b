"""Whether answers hold under another circumstance. Floor 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.validity import Check, checks_for
from pytest_specdec.generation import Retake, RunPair
from pytest_specdec.workload import Prompt, Workload


def check_again(
    workload: Workload,
    runs: RunPair,
    retake: Retake,
    *,
    acceptance_rate_drop: float,
    validity: Callable[[Prompt], Mapping[str, Check]] = checks_for,
) -> Finding | None:
    raise NotImplementedError
