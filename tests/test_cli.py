"""The command `pytest-specdec`: what it prints where, and its exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_specdec.cli import main
from pytest_specdec.report.json_file import report_data, report_json
from tests.imports.test_prometheus import EARLY, LATE
from tests.report.reported import profile_report

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def scrapes(tmp_path: Path) -> tuple[str, str]:
    before, after = tmp_path / "before.prom", tmp_path / "after.prom"
    before.write_text(EARLY)
    after.write_text(LATE)
    return str(before), str(after)


@pytest.fixture
def report(tmp_path: Path) -> str:
    path = tmp_path / "report.json"
    path.write_text(report_json(report_data([profile_report()])))
    return str(path)


def test_import(scrapes: tuple[str, str], capsys: Capture) -> None:
    before, after = scrapes
    assert main(["import", after, "--before", before]) == 0
    out, err = capsys.readouterr()
    (run,) = json.loads(out)
    assert (run["label"], run["num_drafts"], run["mean_acceptance_length"]) == ("after", 100, 2.3)
    assert (run["num_requests"], err) == (None, "")


def test_import_to_other_formats(scrapes: tuple[str, str], capsys: Capture) -> None:
    for arguments, key in (
        (["--to", "flat"], "spec_decode_acceptance_length"),
        (["--to", "github-action-benchmark"], "unit"),
        (["--to", "json", "--format", "prometheus"], "num_drafts"),
    ):
        assert main(["import", scrapes[0], *arguments]) == 0
        out, err = capsys.readouterr()
        assert key in json.loads(out)[0]
        assert err == (
            "note: counted since the server started; `--before` takes an earlier scrape off\n"
        )


def test_export(report: str, capsys: Capture) -> None:
    assert main(["export", report, "--to", "flat"]) == 0
    (flat,) = json.loads(capsys.readouterr().out)
    assert (flat["label"], flat["spec_decode_acceptance_rate"]) == ("fast/sql", 50.0)
    assert main(["export", report, "--to", "github-action-benchmark"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "fast/sql: acceptance rate"
    arguments = ["--to", "github-action-benchmark", "--better", "smaller"]
    assert main(["export", report, *arguments]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "fast/sql: median TTFT"


def test_bad_input_is_one_error(tmp_path: Path, scrapes: tuple[str, str], capsys: Capture) -> None:
    missing = str(tmp_path / "none.json")
    for arguments in (
        ["import", missing],
        ["import", scrapes[0], "--before", scrapes[1]],
        ["import", scrapes[0], "--format", "none"],
        ["export", scrapes[0], "--to", "flat"],
        ["import", scrapes[0], "--better", "smaller"],
        ["export", scrapes[0], "--to", "flat", "--better", "bigger"],
    ):
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("pytest-specdec: error: `")
        assert err.count("\nhint: ") == 1


@pytest.mark.parametrize(
    "arguments",
    [[], ["guess"], ["import"], ["export", "report.json"], ["import", "f", "--to", "xml"]],
)
def test_wrong_arguments(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: pytest-specdec" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["import"], ["export"]])
def test_help(command: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    assert "usage: pytest-specdec" in capsys.readouterr().out


def test_it_loads_no_engine_and_no_pytest() -> None:
    program = (
        "import sys, pytest_specdec.cli as cli\n"
        "heavy = {'pytest', 'vllm', 'torch', 'scipy', 'sqlglot', 'prometheus_client'}\n"
        "assert heavy & set(sys.modules) == set(), heavy & set(sys.modules)\n"
        "sys.exit(cli.main(['import', 'no such file']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)  # noqa: PLW1510
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "`no such file` cannot be read: No such file or directory" in done.stderr
