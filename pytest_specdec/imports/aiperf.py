"""AIPerf's exports: `profile_export_aiperf.json` and `server_metrics_export.json`.

The first has each metric as a table with its unit, and acceptance as totals of all requests where
the server told each request's. The second has the growth of the server's counters, `stats.total` of
each series. AIPerf's inter token latency is what is called TPOT here, and its inter chunk latency
ITL. Written from AIPerf's source and documentation (schema 1.5, version 0.14: `export_models.py`,
`spec_decode_metrics.py`, `speed_bench_report.py`), not from a real file. Floor 1.
"""

from __future__ import annotations

from collections import defaultdict

from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import Fields, in_order
from pytest_specdec.imports.imported import ImportedMeasurement, Latency, completed
from pytest_specdec.imports.per_request import per_pos_of
from pytest_specdec.imports.scrape import (
    ACCEPTED,
    DRAFT_TOKENS,
    DRAFTS,
    OUTPUT_TOKENS,
    PER_POS,
    position_of,
)

# How many of a unit make one of ours.
PER_MS = {"ms": 1.0, "us": 1e3, "ns": 1e6, "s": 1e-3, "sec": 1e-3, "seconds": 1e-3}
PER_WHOLE = {"%": 100.0, "percent": 100.0, "ratio": 1.0}
OF_A_PROFILE = ("request_throughput", "request_latency", "output_token_throughput")
HISTOGRAM = "pooled_spec_decode_acceptance_histogram"


def fits_profile(document: Document) -> bool:
    """Whether it is a `profile_export_aiperf.json`."""
    values = [document.table.get(key) for key in OF_A_PROFILE]
    return any(isinstance(value, dict) and "unit" in value for value in values)


def read_profile(document: Document) -> tuple[ImportedMeasurement, ...]:
    """The run of a profile."""
    fields = Fields(file=document.name, table=document.table)
    num_drafts = _total(fields, "total_spec_decode_steps")
    num_accepted = _total(fields, "total_accepted_draft_tokens")
    rate = fields.inside("spec_decode_overall_draft_acceptance_rate")
    told = ImportedMeasurement(
        label=document.label,
        num_drafts=num_drafts,
        num_draft_tokens=_total(fields, "total_draft_tokens"),
        num_accepted_tokens=num_accepted,
        acceptance_rate=_in_unit(rate, PER_WHOLE, "avg"),
        mean_acceptance_length=fields.inside("spec_decode_token_weighted_acceptance_length").number(
            "avg"
        ),
        num_accepted_tokens_per_pos=per_pos_of(
            fields, HISTOGRAM, num_drafts=num_drafts, num_accepted=num_accepted
        ),
        num_output_tokens=_total(fields, "total_osl"),
        num_requests=_total(fields, "request_count"),
        duration_s=_seconds(fields.inside("benchmark_duration")),
        output_tokens_per_s=fields.inside("output_token_throughput").number("avg"),
        ttft=_latency(fields.inside("time_to_first_token")),
        tpot=_latency(fields.inside("inter_token_latency")),
        itl=_latency(fields.inside("inter_chunk_latency")),
    )
    return (completed(told, fields),)


def _total(fields: Fields, name: str) -> int | None:
    """The one value of a metric that has no distribution."""
    return fields.inside(name).count("avg")


def _latency(metric: Fields) -> Latency:
    return Latency(
        mean_ms=_in_unit(metric, PER_MS, "avg"),
        median_ms=_in_unit(metric, PER_MS, "p50"),
        p99_ms=_in_unit(metric, PER_MS, "p99"),
    )


def _seconds(metric: Fields) -> float | None:
    told_ms = _in_unit(metric, PER_MS, "avg")
    return None if told_ms is None else told_ms / 1e3


def _in_unit(metric: Fields, units: dict[str, float], key: str) -> float | None:
    """A value in the unit that `units` leads to from the metric's own."""
    if metric.table.get(key) is None:
        return None
    unit = metric.table.get("unit")
    if not isinstance(unit, str) or unit not in units:
        raise metric.error(f"has an unknown unit: {unit!r}", hint=f"known here: {', '.join(units)}")
    return metric.number(key, per=units[unit])


def fits_server_metrics(document: Document) -> bool:
    """Whether it is a `server_metrics_export.json`."""
    metrics = document.table.get("metrics")
    return isinstance(metrics, dict) and any(
        isinstance(metric, dict) and isinstance(metric.get("series"), list)
        for metric in metrics.values()
    )


def read_server_metrics(document: Document) -> tuple[ImportedMeasurement, ...]:
    """What the server counted while the profile was taken."""
    metrics = Fields(file=document.name, table=document.table).inside("metrics")
    sums = {name: _growth(metrics, name) for name in (DRAFTS, DRAFT_TOKENS, ACCEPTED, PER_POS)}
    if not any(sums.values()):
        raise metrics.error(
            f"holds no counter `{DRAFTS}` and none of its kind",
            hint="the server ran without speculation, or is not vLLM",
        )
    per_pos = in_order(
        metrics, {key: each for key, each in sums[PER_POS].items() if key is not None}
    )
    told = ImportedMeasurement(
        label=document.label,
        num_drafts=sums[DRAFTS].get(None),
        num_draft_tokens=sums[DRAFT_TOKENS].get(None),
        num_accepted_tokens=sums[ACCEPTED].get(None),
        num_accepted_tokens_per_pos=None if per_pos is None else tuple(map(int, per_pos)),
        num_output_tokens=_growth(metrics, OUTPUT_TOKENS).get(None),
    )
    return (completed(told, metrics),)


def _growth(metrics: Fields, name: str) -> dict[int | None, int]:
    """Of one counter over all its series, by position where it has one."""
    key = name if name in metrics.table else f"{name}_total"
    metric = metrics.inside(key)
    growth: dict[int | None, int] = defaultdict(int)
    for series in metric.items("series"):
        total = series.inside("stats").count("total")
        if total is not None:
            labels = series.inside("labels")
            position = position_of(labels, labels.table) if name == PER_POS else None
            growth[position] += total
    return dict(growth)
