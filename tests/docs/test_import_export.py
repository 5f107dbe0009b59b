"""The guide to import and export: every example does what it says, all formats are there."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

from pytest_specdec.cli import main
from pytest_specdec.imports.formats import FORMATS
from pytest_specdec.imports.imported import ImportedMeasurement
from pytest_specdec.report.flat import flat
from pytest_specdec.report.json_file import report_data, report_json
from tests.docs.test_reference import DOCS, rows
from tests.report.reported import profile_report
from tests.report.test_flat import RUN

PAGE = "guides/import-export.md"
TEXT = (DOCS / PAGE).read_text(encoding="utf-8")
FILES = re.findall(r"<!-- file: (\S+) -->\n```\w*\n(.*?)```", TEXT, re.DOTALL)
EXAMPLES = re.findall(r"```console\n\$ pytest-specdec ([^\n]+)\n(.*?)```", TEXT, re.DOTALL)
IN_CI = re.findall(r"^    pytest-specdec ([^>\n]+)>", TEXT, re.MULTILINE)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the page shows, and a session's report."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES:
        Path(name).write_text(content, encoding="utf-8")
    Path(".specdec").mkdir()
    Path(".specdec/report.json").write_text(
        report_json(report_data([profile_report()])), encoding="utf-8"
    )


def test_the_examples_are_found() -> None:
    assert len(FILES) == TEXT.count("<!-- file:") == 5
    assert len(EXAMPLES) == TEXT.count("```console") == 5
    assert len(IN_CI) == TEXT.count("    pytest-specdec ") == 2


@pytest.mark.parametrize(("command", "said"), EXAMPLES)
def test_an_example(command: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(shlex.split(command))
    out, err = capsys.readouterr()
    assert out + err == said
    assert status == (2 if "error:" in said else 0)


@pytest.mark.parametrize("command", IN_CI)
def test_a_command_of_ci(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out.startswith("[\n  {\n")


def test_every_format_is_told() -> None:
    assert rows(PAGE, "format") == list(FORMATS)


def test_every_figure_is_told() -> None:
    assert rows(PAGE, "figure") == [each.name for each in fields(ImportedMeasurement)]
    table = TEXT[TEXT.index("| figure |") :]
    named = {name for line in table.splitlines() for name in re.findall(r"`(\w+)`", cell(line))}
    assert named >= flat(RUN).keys()


def cell(line: str) -> str:
    """The column of flat names."""
    return line.split("|")[3] if line.startswith("| `") else ""
