from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.published import main


def bench(concurrency: int, **metrics: Any) -> dict[str, Any]:
    return {"concurrency": concurrency, "metrics": metrics}


PLAIN = {"total_generated_tokens": 1000, "output_token_throughput_tok_s": 100.0}
SPECULATIVE = {
    "total_generated_tokens": 1000,
    "output_token_throughput_tok_s": 150.0,
    "spec_acceptance_length": 2.5,
}
HEADER = "table,method,num_spec_tokens,workload,concurrency,baseline_value,spec_value,unit,"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bench_json").mkdir()
    (tmp_path / "speedup").mkdir()
    return tmp_path


def test_two_files_of_a_harness_are_taken_apart(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, metrics in (("nomtp_bench", PLAIN), ("mtp2_bench", SPECULATIVE)):
        text = json.dumps([bench(1, **metrics)])
        (folder / "bench_json" / f"one__conv__{name}.json").write_text(text)
    assert main([str(folder)]) == 0
    said = capsys.readouterr().out
    assert "speedup 1.500 = 2.500 tokens per step / 1.667 step cost ratio" in said
    assert "no stored baseline: one pair of passes is not stored" in said


def test_unequal_work_has_no_verdict_here_either(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {**SPECULATIVE, "total_generated_tokens": 1010}
    phases = [
        {"variant": "nomtp", "phase": "chat", "bench": [bench(4, **PLAIN)]},
        {"variant": "mtp", "phase": "chat", "bench": [bench(4, **more)]},
    ]
    (folder / "bench_json" / "two__all.json").write_text(json.dumps({"phases": phases}))
    assert main([str(folder)]) == 0
    said = capsys.readouterr().out
    assert (
        "unmeasured: the passes differ in output tokens (baseline 1000, speculative 1010)" in said
    )


def test_rows_of_a_table_are_compared_one_after_the_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        f"{HEADER}acceptance_length",
        "t,eagle,2,chat,1,8.0,4.0,ms TPOT,2.5",
        "t,eagle,4,chat,1,8.0,5.0,ms TPOT,2.6",
        "t,eagle,8,chat,1,,5.0,ms TPOT,2.6",
    ]
    (folder / "speedup" / "rows.csv").write_text("\n".join(rows))
    (folder / "speedup" / "other.csv").write_text("hardware,overall\nx,1\n")
    assert main([str(folder)]) == 0
    said = capsys.readouterr().out
    assert said.count("speedup ") == 3
    assert (
        "the step cost ratio: the speculative step costs more (speedup 23.1% lower by it)" in said
    )


def test_without_a_folder_it_tells_its_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main(["/nowhere"]) == 2
    assert "usage: published.py FOLDER" in capsys.readouterr().out
