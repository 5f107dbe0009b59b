"""Results of `vllm bench serve`: percent and shares, one run or several, with or without drafts."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.imports.imported import Latency
from tests.imports.reading import of_json, of_lines, read, read_all, refused

PLAIN: dict[str, Any] = {
    "duration": 10.5,
    "completed": 80,
    "total_input_tokens": 5535,
    "total_output_tokens": 14869,
    "request_throughput": 7.6,
    "output_throughput": 137.23,
    "max_concurrency": 4,
    "request_rate": "inf",
    "mean_ttft_ms": 201.63,
    "median_ttft_ms": 59.42,
    "std_ttft_ms": 1.0,
    "p99_ttft_ms": 1191.45,
    "mean_tpot_ms": 6.42,
    "median_tpot_ms": 6.25,
    "p99_tpot_ms": 11.72,
    "mean_itl_ms": 14.59,
    "median_itl_ms": 14.45,
    "p99_itl_ms": 18.64,
}
DRAFTED: dict[str, Any] = {
    "spec_decode_acceptance_rate": 67.5,
    "spec_decode_acceptance_length": 2.35,
    "spec_decode_num_drafts": 200,
    "spec_decode_draft_tokens": 400,
    "spec_decode_accepted_tokens": 270,
    "spec_decode_per_position_acceptance_rates": [0.8, 0.55],
}


def test_a_run_with_speculation() -> None:
    run = read(of_json({**PLAIN, **DRAFTED}, name="out/bench.json"))
    assert run.label == "bench"
    assert (run.num_drafts, run.num_draft_tokens, run.num_accepted_tokens) == (200, 400, 270)
    assert (run.acceptance_rate, run.mean_acceptance_length) == (0.675, 2.35)
    assert run.acceptance_rate_per_pos == (0.8, 0.55)
    assert (run.num_requests, run.num_output_tokens, run.concurrency) == (80, 14869, 4)
    assert (run.duration_s, run.output_tokens_per_s) == (10.5, 137.23)
    assert run.ttft == Latency(mean_ms=201.63, median_ms=59.42, p99_ms=1191.45)
    assert run.tpot == Latency(mean_ms=6.42, median_ms=6.25, p99_ms=11.72)
    assert run.itl == Latency(mean_ms=14.59, median_ms=14.45, p99_ms=18.64)


def test_a_run_without_speculation_has_no_acceptance() -> None:
    run = read(of_json({**PLAIN, "max_concurrency": None}))
    assert (run.acceptance_rate, run.mean_acceptance_length, run.num_drafts) == (None, None, None)
    assert (run.concurrency, run.num_requests) == (None, 80)


@pytest.mark.parametrize("make", [of_json, of_lines])
def test_several_runs(make: Any) -> None:
    runs = read_all(make([PLAIN, {**PLAIN, **DRAFTED}], name="bench.json"))
    assert [run.label for run in runs] == ["bench 1", "bench 2"]
    assert [run.acceptance_rate for run in runs] == [None, 0.675]


def test_nothing_drafted() -> None:
    nothing: dict[str, Any] = dict.fromkeys(DRAFTED, 0)
    nothing["spec_decode_per_position_acceptance_rates"] = []
    run = read(of_json({**PLAIN, **nothing}))
    assert (run.acceptance_rate, run.mean_acceptance_length) == (None, None)
    assert run.notes == ("nothing was drafted",)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"spec_decode_acceptance_rate": 0.675}, "told as 0.00675, and the counts make 0.675"),
        ({"spec_decode_num_drafts": -3}, "`spec_decode_num_drafts` is below 0: -3"),
        ({"mean_tpot_ms": float("nan")}, "`mean_tpot_ms` is not a finite number: nan"),
        ({"spec_decode_draft_tokens": 1e40}, "`spec_decode_draft_tokens` is too large: 1e+40"),
        ({"spec_decode_per_position_acceptance_rates": [0.8, "x"]}, "number 2 is not a number"),
    ],
)
def test_wrong_figures(change: dict[str, Any], fact: str) -> None:
    assert fact in refused(of_json({**PLAIN, **DRAFTED, **change}))


def test_a_line_of_something_else() -> None:
    message = refused(of_lines([PLAIN, {"other": 1}]))
    assert "`run.jsonl`: run 2: is no result of `vllm bench serve`" in message
