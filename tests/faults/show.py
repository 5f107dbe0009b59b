"""`make faults`: every fault in a real engine, the checks that must fail, and those that did.

    python -m tests.faults.show [PART OF A ROW'S NAME ...]

Exits 1 where a fault went unseen, a check failed that should not have, or a harmless change did not
pass.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.faults.bench import Bench, Judged
from tests.faults.rows import FAULTS, HARMLESS, ROWS, Row

SEPARATOR = "  "


def main() -> int:
    parts = sys.argv[1:]
    rows = [row for row in ROWS if not parts or any(part in row.name for part in parts)]
    widths = [max(len(line[column]) for line in map(_head, rows)) for column in range(3)]
    seen: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        try:
            bench.load()
            for row in rows:
                start = time.monotonic()
                judged = bench.judged(row)
                seen[row.name] = judged.failed == row.fails
                cells = map(str.ljust, _head(row), widths)
                print(
                    SEPARATOR.join(cells),
                    _told(row, judged),
                    f"{time.monotonic() - start:.0f} s",
                    flush=True,
                )
        finally:
            bench.close()
    _summary([row for row in rows if row in FAULTS], seen, "faults found by just their checks")
    _summary([row for row in rows if row in HARMLESS], seen, "harmless changes passed")
    return 0 if all(seen.values()) else 1


def _head(row: Row) -> tuple[str, str, str]:
    return row.fault or "(no fault)", row.name.partition("-on-")[2], _names(row.fails)


def _names(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "(none)"


def _told(row: Row, judged: Judged) -> str:
    if judged.failed == row.fails:
        return "as it must"
    messages = "".join(f"\n    {each}" for each in "\n".join(judged.messages.values()).splitlines())
    return f"FAILED INSTEAD: {_names(judged.failed)}{messages}\n"


def _summary(rows: list[Row], seen: dict[str, bool], what: str) -> None:
    if rows:
        print(f"{what}: {sum(seen[row.name] for row in rows)} of {len(rows)}")


if __name__ == "__main__":
    sys.exit(main())
