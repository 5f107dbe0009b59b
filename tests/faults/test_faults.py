"""Every fault in a real engine: just the checks that must fail for it do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.bench import Bench
from tests.faults.rows import ROWS, Row


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One pair of engines for all rows."""
    bench = Bench(tmp_path_factory.mktemp("faults"))
    try:
        bench.load()
        yield bench
    finally:
        bench.close()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_fault(bench: Bench, row: Row) -> None:
    judged = bench.judged(row)
    assert judged.failed == row.fails, "\n\n".join(judged.messages.values())
