"""Faults in a real engine, enough to need every check: just those that must fail for it do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from _pytest.mark import ParameterSet

from tests.faults.bench import Bench
from tests.faults.rows import TESTED, Row


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One pair of engines for all rows."""
    bench = Bench(tmp_path_factory.mktemp("faults"))
    try:
        bench.load()
        yield bench
    finally:
        bench.close()


def asked(row: Row) -> ParameterSet:
    return pytest.param(row, id=row.name, marks=[pytest.mark.alone] if row.is_timed else [])


@pytest.mark.parametrize("row", [asked(row) for row in TESTED])
def test_fault(bench: Bench, row: Row) -> None:
    judged = bench.judged(row)
    assert judged.failed == row.fails, "\n\n".join(judged.messages.values())
