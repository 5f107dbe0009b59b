"""The program that imports public samples: a line a file, comparisons, exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.imports.test_per_request import FIRST, response
from tests.imports.test_prometheus import EARLY, LATE
from tests.imports.test_server_log import NEWEST
from tools.check_imports import main


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def samples(folder: Path, *, drafts: int = 100) -> None:
    expected: dict[str, Any] = {
        "m delta c2-c1": {"drafts": drafts, "per_pos": [0.8, 0.5], "source": "here"},
        "m_after_c1": {"acceptance_length": 2.2},
    }
    write(folder / "prometheus" / "m_after_c1.prom", EARLY)
    write(folder / "prometheus" / "m_after_c2.prom", LATE)
    write(folder / "prometheus" / "EXPECTED.json", json.dumps(expected))
    rows = [
        {"gen": "V1", "line": NEWEST.strip(), "expect": {"acceptance_rate": 0.5, "drafted": 300}},
        {"gen": "none", "line": "INFO Engine 000: Running: 1 reqs", "expect": None},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    write(folder / "log_formats" / "generations.jsonl", lines)
    write(folder / "per_request" / "samples.jsonl", json.dumps(response(FIRST)))
    write(folder / "LICENSE", "a licence\n")


def test_samples_that_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples(tmp_path)
    assert main([str(tmp_path)]) == 0
    one = "measurements: 1, with a mean acceptance length: 1"
    unknown = "holds no measurement in a known format"
    assert capsys.readouterr().out.splitlines() == [
        f"LICENSE: refused: `LICENSE` {unknown}",
        f"log_formats/generations.jsonl: {one}",
        f"per_request/samples.jsonl: {one}",
        f"prometheus/EXPECTED.json: refused: `EXPECTED.json` {unknown}",
        f"prometheus/m_after_c1.prom: {one}",
        f"prometheus/m_after_c2.prom: {one}",
        "prometheus: m delta c2-c1: agrees",
        "prometheus: m_after_c1: agrees",
        "log line 1: V1: agrees",
        "log line 2: none: agrees",
        "request 1: agrees",
    ]


def test_samples_that_disagree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples(tmp_path, drafts=99)
    assert main([str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "prometheus: m delta c2-c1: num_drafts is 100, expected 99\n" in out


def test_a_line_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"gen": "x", "line": "nothing", "expect": {"drafts": 1}}
    write(tmp_path / "log_formats" / "generations.jsonl", json.dumps(row))
    assert main([str(tmp_path)]) == 1
    assert "log line 1: x: is no line of such metrics" in capsys.readouterr().out


def test_an_empty_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "hint: " in capsys.readouterr().out
