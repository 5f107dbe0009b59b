"""`pytest-specdec report`: the page and the Markdown again, of a saved `report.json`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_specdec.cli import main
from pytest_specdec.report.html import html_page
from pytest_specdec.report.json_file import report_json
from pytest_specdec.report.markdown import markdown
from tests.report.hostile import hostile_data


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(report_json(hostile_data()))
    return path


def command(*arguments: str | Path) -> int:
    """As the program `pytest-specdec` runs it."""
    return main(["report", *map(str, arguments)])


def test_both_are_made_beside_it(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(saved) == 0
    page, text = saved.with_suffix(".html"), saved.with_suffix(".md")
    assert page.read_text() == html_page(hostile_data())
    assert text.read_text() == markdown(hostile_data())
    assert capsys.readouterr().out == f"{page}\n{text}\n"


@pytest.mark.parametrize("option", ["--html", "--markdown"])
def test_one_is_made_where_it_is_asked_for(saved: Path, option: str) -> None:
    target = saved.parent / "new/folder/page"
    assert command(saved, option, target) == 0
    assert target.exists()
    assert {each.name for each in saved.parent.iterdir()} == {"report.json", "new"}


def test_a_path_that_cannot_be_written(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(saved, "--html", saved / "page.html") == 2
    told = f"`{saved}/page.html` cannot be written: File exists\nhint: name a file in a folder"
    assert capsys.readouterr().err.startswith(f"pytest-specdec: error: {told}")


def test_what_is_no_report(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved.write_text("{}")
    assert command(saved) == 2
    assert "cannot be read as a report" in capsys.readouterr().err
    assert not saved.with_suffix(".html").exists()
