"""The page of faults: its tables are those of the code, and what is written by hand stays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.faults.rows import ERROR, ROWS
from tools import fault_table
from tools.fault_table import BEGINNING, PAGE, main, page


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text)


def test_every_row_is_told() -> None:
    by_hand, tables = page(f"By hand.\n\n{BEGINNING}").split(BEGINNING)
    assert by_hand == "By hand.\n\n"
    for row in ROWS:
        lines = [line for line in tables.splitlines() if row.workload in line]
        named = [line for line in lines if not row.fault or f"| `{row.fault}` |" in line]
        assert [line for line in named if all(_shown(name) in line for name in row.fails)], row.name


def _shown(name: str) -> str:
    return "engine error" if name == ERROR else f"`{name}`"


def test_a_page_that_lost_its_tables_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"faults\.md has lost the line"):
        page("By hand.\n")


def test_a_fault_that_says_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kit.py").write_text("def crash(): ...\n", encoding="utf-8")
    monkeypatch.setattr(fault_table, "KIT", tmp_path)
    with pytest.raises(SystemExit, match="no docstring of the fault kit says what"):
        page(BEGINNING)


def test_an_old_page_is_told_and_made_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "faults.md"
    path.write_text(f"By hand.\n\n{BEGINNING}old\n", encoding="utf-8")
    monkeypatch.setattr(fault_table, "PAGE", path)
    monkeypatch.setattr(sys, "argv", ["fault_table.py", "--check"])
    assert main() == 1
    assert capsys.readouterr().err == (
        "docs/concepts/faults.md is out of date\nhint: python tools/fault_table.py\n"
    )
    monkeypatch.setattr(sys, "argv", ["fault_table.py"])
    assert main() == 0
    assert path.read_text(encoding="utf-8") == page(f"By hand.\n\n{BEGINNING}")
