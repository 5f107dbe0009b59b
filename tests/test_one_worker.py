"""Which tests start real engines: those that the distribution knows by their folder, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.one_worker import ENGINES, EnginesOnOneWorker

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("place", ENGINES)
def test_the_places_are_there(place: str) -> None:
    assert (ROOT / place).exists()


def test_engines_are_one_unit_and_all_else_is_alone() -> None:
    unit = EnginesOnOneWorker._split_scope
    alone = "tests/faults/test_rows.py::test_a[b]"
    assert {unit(None, f"tests/real/test_gate.py::test_{each}") for each in "abc"} == {"engines"}
    assert unit(None, "tests/faults/test_faults.py::test_fault[a]") == "engines"
    assert unit(None, alone) == alone
