"""The run over recorded pairs: one of each kind, written here, and a table that disagrees."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.triage import main

COLUMNS = ("ref", "cand", "prompt", "identical", "diverge_at")
GAPS = ("ref_gap_nats", "cand_gap_nats", "ref_rank_of_cand")


def answer(run: str, prompt: str, token: str, likely: dict[str, float]) -> dict[str, Any]:
    return {
        "run": run,
        "prompt_name": prompt,
        "prompt_token_ids": [1],
        "tokens": ["The", token],
        "text": f"The{token}",
        "finish_reason": "length",
        "top_logprobs": [{"The": -0.1}, likely],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    answers = [
        answer("plain", "same", " cat", {" cat": -0.5, " dog": -0.6}),
        answer("draft", "same", " cat", {" cat": -0.5, " dog": -0.6}),
        answer("plain", "near", " cat", {" cat": -0.5, " dog": -0.75}),
        answer("draft", "near", " dog", {" dog": -0.5, " cow": -0.6, " cat": -1.5}),
    ]
    text = "\n".join(map(json.dumps, answers)) + "\n"
    (tmp_path / "completions.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def compared(folder: Path, *, position: int, gap: float) -> None:
    rows = [
        ("plain", "draft", "same", True, "", "", "", ""),
        ("plain", "draft", "near", False, position, gap, 1.0, 2),
    ]
    with (folder / "comparisons.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([(*COLUMNS, *GAPS), *rows])


def test_all_kinds_as_the_table_implies(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compared(folder, position=1, gap=0.25)
    assert main([str(folder)]) == 0
    printed = capsys.readouterr().out.splitlines()
    text = "\n".join(printed)
    assert [text.count(kind) for kind in ("identical ", "near tie ", "divergence ")] == [2, 1, 1]
    assert printed[-1] == "4 of 4 calls as the comparisons imply"


@pytest.mark.parametrize(("position", "gap"), [(0, 0.25), (1, 0.5), (1, 0.1)])
def test_a_table_that_says_otherwise_fails(folder: Path, position: int, gap: float) -> None:
    compared(folder, position=position, gap=gap)
    assert main([str(folder)]) == 1
