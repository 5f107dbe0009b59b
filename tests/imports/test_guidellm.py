"""GuideLLM's benchmarks: times of requests that succeeded, and no acceptance."""

from __future__ import annotations

from typing import Any

from pytest_specdec.imports.guidellm import NOTE
from pytest_specdec.imports.imported import Latency
from tests.imports.reading import of_json, read_all, refused


def spread(mean: float, **more: Any) -> dict[str, Any]:
    return {"successful": {"mean": mean, **more}, "incomplete": {"mean": 0.0}, "errored": None}


def benchmark(**strategy: Any) -> dict[str, Any]:
    return {
        "type_": "generative_benchmark",
        "config": {"strategy": strategy},
        "duration": 30.5,
        "metrics": {
            "request_totals": {"successful": 95, "incomplete": 2, "errored": 5, "total": 102},
            "output_token_count": spread(100.0, total_sum=9500.0),
            "output_tokens_per_second": spread(310.5),
            "time_to_first_token_ms": spread(55.0, median=50.0, percentiles={"p99": 120.0}),
            "time_per_output_token_ms": spread(9.0, median=8.9),
            "inter_token_latency_ms": spread(8.0, median=7.5, percentiles={"p99": 11.0}),
        },
    }


def report(*benchmarks: Any) -> dict[str, Any]:
    return {"metadata": {"version": 1, "guidellm_version": "0.5.0"}, "benchmarks": [*benchmarks]}


def test_benchmarks() -> None:
    data = report(benchmark(type_="concurrent", streams=4), benchmark(kind="synchronous"))
    one, two = read_all(of_json(data, name="benchmarks.json"))
    assert (one.label, two.label) == ("benchmarks concurrent 4", "benchmarks synchronous")
    assert (one.num_requests, one.num_output_tokens, one.duration_s) == (95, 9500, 30.5)
    assert one.output_tokens_per_s == 310.5
    assert one.ttft == Latency(mean_ms=55.0, median_ms=50.0, p99_ms=120.0)
    assert one.tpot == Latency(mean_ms=8.0, median_ms=7.5, p99_ms=11.0)
    assert one.itl == Latency()
    assert (one.acceptance_rate, one.num_drafts, one.notes) == (None, None, (NOTE,))


def test_a_benchmark_without_a_strategy() -> None:
    (run,) = read_all(of_json(report({**benchmark(), "config": None})))
    assert run.label == "run 1"


def test_what_is_no_benchmark() -> None:
    message = refused(of_json(report(benchmark(), {"metrics": {}})))
    assert message.startswith("`run.json`: benchmark 2: is no benchmark of GuideLLM\nhint: ")
    wrong = benchmark()
    wrong["metrics"]["time_to_first_token_ms"] = spread(float("nan"))
    assert "`successful`: `mean` is not a finite number" in refused(of_json(report(wrong)))
    assert "no measurement in a known format" in refused(of_json(report()))
