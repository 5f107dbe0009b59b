"""Whether what speculation cannot do is refused. Floor 2."""

from __future__ import annotations

from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import RunPair
from pytest_specdec.workload import Prompt


def check_refused(prompt: Prompt, runs: RunPair) -> Finding | None:
    raise NotImplementedError
