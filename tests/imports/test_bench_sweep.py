"""Runs of `vllm bench serve` that a harness collected: alone, in phases, gone wrong."""

from __future__ import annotations

from typing import Any

from tests.imports.reading import of_json, read_all, refused

METRICS: dict[str, Any] = {
    "successful_requests": 80,
    "benchmark_duration_s": 108.35,
    "total_generated_tokens": 14869,
    "output_token_throughput_tok_s": 137.23,
    "mean_ttft_ms": 201.63,
    "median_tpot_ms": 6.25,
    "p99_itl_ms": 18.64,
    "spec_acceptance_rate_percent": 67.5,
    "spec_acceptance_length": 2.35,
    "spec_drafts": 200,
    "spec_draft_tokens": 400,
    "spec_accepted_tokens": 270,
    "spec_per_position_acceptance_percent": [80.0, 55.0],
}


def entry(concurrency: int, **facts: Any) -> dict[str, Any]:
    return {"concurrency": concurrency, "ok": True, "metrics": METRICS, "command": [], **facts}


def test_a_list_of_runs() -> None:
    one, two = read_all(of_json([entry(1), entry(2)], name="mtp.json"))
    assert (one.label, two.label) == ("mtp concurrency 1", "mtp concurrency 2")
    assert (one.num_drafts, one.num_draft_tokens, one.num_accepted_tokens) == (200, 400, 270)
    assert (one.acceptance_rate, one.mean_acceptance_length) == (0.675, 2.35)
    assert one.acceptance_rate_per_pos == (0.8, 0.55)
    assert (two.concurrency, two.num_requests, two.num_output_tokens) == (2, 80, 14869)
    assert (one.duration_s, one.output_tokens_per_s) == (108.35, 137.23)
    assert (one.ttft.mean_ms, one.tpot.median_ms, one.itl.p99_ms) == (201.63, 6.25, 18.64)
    assert one.ttft.median_ms is None


def test_phases() -> None:
    plain = {key: value for key, value in METRICS.items() if not key.startswith("spec_")}
    phases = [
        {"variant": "nomtp", "phase": "mt_bench", "bench": [entry(1, metrics=plain)]},
        {"variant": "mtp", "phase": "mt_bench", "bench": [entry(1)]},
    ]
    plain_run, run = read_all(of_json({"source": "primary", "phases": phases}, name="b.json"))
    assert plain_run.label == "b nomtp mt_bench concurrency 1"
    assert (plain_run.acceptance_rate, run.acceptance_rate) == (None, 0.675)


def test_runs_that_went_wrong_are_left_out() -> None:
    (run,) = read_all(of_json([entry(1, ok=False), entry(2)]))
    assert run.concurrency == 2
    assert "no run of it went well" in refused(of_json([entry(1, ok=False)]))


def test_a_wrong_figure_is_named_with_its_run() -> None:
    message = refused(of_json([entry(1), entry(2, metrics={**METRICS, "spec_drafts": "x"})]))
    assert message.startswith("`run.json`: run 2, `metrics`: `spec_drafts` is not a number: 'x'")
