"""AIPerf's two exports: totals and times of a profile, growth of the server's counters."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.imports.imported import Latency
from tests.imports.reading import of_json, read, refused


def metric(unit: str, avg: float, **more: float) -> dict[str, Any]:
    return {"unit": unit, "avg": avg, **more}


PROFILE: dict[str, Any] = {
    "schema_version": "1.5",
    "aiperf_version": "0.14.0",
    "request_throughput": metric("requests/sec", 1.45),
    "request_count": metric("requests", 20.0),
    "output_token_throughput": metric("tokens/sec", 118.5),
    "benchmark_duration": metric("sec", 13.8),
    "total_osl": metric("tokens", 1635.0),
    "time_to_first_token": metric("ms", 200.5, p50=180.0, p99=410.0),
    "inter_token_latency": metric("ms", 8.0, p50=7.5, p99=11.0),
    "inter_chunk_latency": metric("us", 19000.0),
    "input_config": {"endpoint": {}},
}
DRAFTED: dict[str, Any] = {
    "spec_decode_acceptance_length": metric("ratio", 2.7, p50=2.6),
    "spec_decode_draft_tokens": metric("tokens", 15.0),
    "spec_decode_overall_draft_acceptance_rate": metric("%", 50.0),
    "spec_decode_token_weighted_acceptance_length": metric("ratio", 2.5),
    "total_spec_decode_steps": metric("count", 100.0),
    "total_accepted_draft_tokens": metric("tokens", 150.0),
    "total_draft_tokens": metric("tokens", 300.0),
    "pooled_spec_decode_acceptance_histogram": {"0": 25, "1": 25, "2": 25, "3": 25},
}


def test_a_profile() -> None:
    run = read(of_json({**PROFILE, **DRAFTED}, name="profile_export_aiperf.json"))
    assert run.label == "profile_export_aiperf"
    assert (run.num_drafts, run.num_draft_tokens, run.num_accepted_tokens) == (100, 300, 150)
    assert (run.acceptance_rate, run.mean_acceptance_length) == (0.5, 2.5)
    assert run.num_accepted_tokens_per_pos == (75, 50, 25)
    assert (run.num_requests, run.num_output_tokens) == (20, 1635)
    assert run.duration_s == pytest.approx(13.8)
    assert run.output_tokens_per_s == 118.5
    assert run.ttft == Latency(mean_ms=200.5, median_ms=180.0, p99_ms=410.0)
    assert run.tpot == Latency(mean_ms=8.0, median_ms=7.5, p99_ms=11.0)
    assert run.itl == Latency(mean_ms=19.0)


def test_a_profile_without_speculation() -> None:
    run = read(of_json(PROFILE))
    assert (run.acceptance_rate, run.mean_acceptance_length, run.num_drafts) == (None, None, None)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"time_to_first_token": metric("furlongs", 1.0)}, "has an unknown unit: 'furlongs'"),
        ({"total_draft_tokens": metric("tokens", -1.0)}, "`total_draft_tokens`: `avg` is below 0"),
        ({"spec_decode_overall_draft_acceptance_rate": metric("ratio", 50.0)}, "told as 50"),
        ({"total_spec_decode_steps": metric("count", 99.0)}, "holds 100 drafts, but 99 are told"),
    ],
)
def test_a_profile_that_cannot_be(change: dict[str, Any], fact: str) -> None:
    assert fact in refused(of_json({**PROFILE, **DRAFTED, **change}))


def series(total: object, **labels: str) -> dict[str, Any]:
    return {"endpoint_url": "http://e/metrics", "labels": labels, "stats": {"total": total}}


def server_metrics(**changed: Any) -> dict[str, Any]:
    counters = {
        "num_drafts": [series(60.0, engine="0"), series(40.0, engine="1")],
        "num_draft_tokens": [series(300.0)],
        "num_accepted_tokens": [series(150.0)],
        "num_accepted_tokens_per_pos": [
            series(75.0, position="0"),
            series(30.0, position="1", engine="0"),
            series(20.0, position="1", engine="1"),
            series(25.0, position="2"),
        ],
        **changed,
    }
    metrics = {
        f"vllm:spec_decode_{name}": {"type": "counter", "series": each}
        for name, each in counters.items()
    }
    return {"schema_version": "1.0", "summary": {}, "metrics": metrics}


def test_server_metrics() -> None:
    run = read(of_json(server_metrics()))
    assert (run.num_drafts, run.num_draft_tokens, run.num_accepted_tokens) == (100, 300, 150)
    assert (run.acceptance_rate, run.mean_acceptance_length) == (0.5, 2.5)
    assert run.num_accepted_tokens_per_pos == (75, 50, 25)


def test_server_metrics_under_their_full_names() -> None:
    data = server_metrics(num_drafts_total=[series(7.0)])
    del data["metrics"]["vllm:spec_decode_num_drafts"]
    data["metrics"]["vllm:spec_decode_num_drafts_total"]["series"] = [series(100.0)]
    data["metrics"]["vllm:generation_tokens"] = {"series": [{"stats": {"total": 900.0}}]}
    run = read(of_json(data))
    assert (run.num_drafts, run.num_output_tokens) == (100, 900)


@pytest.mark.parametrize(
    ("changed", "fact"),
    [
        (
            {"num_drafts": [series(-5.0)]},
            "num_drafts`, `series`, 1, `stats`: `total` is below 0: -5",
        ),
        ({"num_drafts": ["x"]}, "`series`, 1 is not a table: 'x'"),
        ({"num_accepted_tokens_per_pos": [series(1.0)]}, "no whole number as `position`: ''"),
    ],
)
def test_server_metrics_that_cannot_be(changed: dict[str, Any], fact: str) -> None:
    assert fact in refused(of_json(server_metrics(**changed)))


def test_server_metrics_without_speculation() -> None:
    data: dict[str, Any] = {"metrics": {"vllm:num_requests_running": {"series": []}}}
    assert "holds no counter `vllm:spec_decode_num_drafts`" in refused(of_json(data))
