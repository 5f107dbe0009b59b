"""Which tests are given out together: those that start real engines, by their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.one_worker import ENGINES, EnginesOnOneWorker

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("place", ENGINES)
def test_the_places_are_there(place: str) -> None:
    assert (ROOT / place).exists()


def test_engines_are_one_unit_and_all_else_is_alone() -> None:
    unit = object.__new__(EnginesOnOneWorker)._split_scope
    alone = "tests/faults/test_rows.py::test_a[b]"
    assert {unit(f"tests/real/test_gate.py::test_{each}") for each in "abc"} == {"engines"}
    assert unit("tests/faults/test_faults.py::test_fault[a]") == "engines"
    assert unit(alone) == alone
