"""Whether acceptance holds from the first passes to the last. Floor 2."""

from __future__ import annotations

from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import RunPair


def check_drift(runs: RunPair, *, acceptance_rate_drop: float) -> Finding | None:
    raise NotImplementedError
