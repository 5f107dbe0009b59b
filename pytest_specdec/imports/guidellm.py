"""GuideLLM's `benchmarks.json`: one benchmark for each rate or concurrency.

It counts no drafts, so its runs have times and no acceptance. Its inter token latency is what is
called TPOT here; its time per output token counts the first token too and is left out. Only
requests that succeeded are read. Written from GuideLLM's source (0.5 to 0.8: `benchmark/schemas`,
`schemas/request_stats.py`), not from a real file. Floor 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import Fields
from pytest_specdec.imports.imported import ImportedMeasurement, Latency, completed

OF_A_BENCHMARK = ("time_to_first_token_ms", "output_tokens_per_second", "request_totals")
NOTE = (
    "GuideLLM counts no drafts; take acceptance from the server's `/metrics`, scraped before and "
    "after"
)


def fits(document: Document) -> bool:
    """Whether it is a list of its benchmarks."""
    return any(_is_benchmark(each) for each in _benchmarks(document))


def _benchmarks(document: Document) -> list[Any]:
    benchmarks = document.table.get("benchmarks")
    return benchmarks if isinstance(benchmarks, list) else []


def _is_benchmark(each: object) -> bool:
    metrics = each.get("metrics") if isinstance(each, Mapping) else None
    return isinstance(metrics, dict) and any(key in metrics for key in OF_A_BENCHMARK)


def read(document: Document) -> tuple[ImportedMeasurement, ...]:
    """A measurement for each benchmark."""
    runs = []
    for number, table in enumerate(_benchmarks(document), 1):
        at = f"benchmark {number}"
        if not _is_benchmark(table):
            raise Fields(file=document.name, at=at).error("is no benchmark of GuideLLM")
        fields = Fields(file=document.name, at=at, table=table)
        runs.append(_run(fields, label=f"{document.label} {_strategy(fields) or number}"))
    return tuple(runs)


def _strategy(fields: Fields) -> str:
    """How requests were sent, such as `concurrent 4`; empty where that is not told."""
    strategy = fields.inside("config").inside("strategy").table
    kind = strategy.get("type_") or strategy.get("kind")
    sizes = (strategy.get(key) for key in ("streams", "max_concurrency", "rate"))
    size = next((each for each in sizes if each is not None), None)
    return " ".join(str(each) for each in (kind, size) if each is not None)


def _run(fields: Fields, *, label: str) -> ImportedMeasurement:
    metrics = fields.inside("metrics")
    told = ImportedMeasurement(
        label=label,
        num_output_tokens=_successful(metrics, "output_token_count").count("total_sum"),
        num_requests=metrics.inside("request_totals").count("successful"),
        duration_s=fields.number("duration"),
        output_tokens_per_s=_successful(metrics, "output_tokens_per_second").number("mean"),
        ttft=_latency(_successful(metrics, "time_to_first_token_ms")),
        tpot=_latency(_successful(metrics, "inter_token_latency_ms")),
        notes=(NOTE,),
    )
    return completed(told, metrics)


def _successful(metrics: Fields, name: str) -> Fields:
    return metrics.inside(name).inside("successful")


def _latency(spread: Fields) -> Latency:
    return Latency(
        mean_ms=spread.number("mean"),
        median_ms=spread.number("median"),
        p99_ms=spread.inside("percentiles").number("p99"),
    )
