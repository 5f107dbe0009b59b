"""Measurements for github-action-benchmark: arrays of its `customBiggerIsBetter` and
`customSmallerIsBetter`.

An entry is `name`, `unit`, `value` and `extra` (its `src/extract.ts`). A file is of one direction,
so there are two: `bigger` and `smaller`. What was not measured has no entry. Floor 4.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pytest_specdec.imports.imported import ImportedMeasurement

Better = Literal["bigger", "smaller"]


def action_benchmark_json(measurements: Sequence[ImportedMeasurement], *, better: Better) -> str:
    """The file's text."""
    figures = _bigger if better == "bigger" else _smaller
    entries = [
        _entry(each, name=name, unit=unit, value=value)
        for each in measurements
        for name, unit, value in figures(each)
        if value is not None
    ]
    return json.dumps(entries, indent=2, allow_nan=False) + "\n"


def _bigger(each: ImportedMeasurement) -> Iterator[tuple[str, str, float | None]]:
    rate = each.acceptance_rate
    yield "acceptance rate", "%", None if rate is None else 100 * rate
    yield "mean acceptance length", "tokens", each.mean_acceptance_length
    yield "output tokens per second", "tokens/s", each.output_tokens_per_s
    yield "speedup", "x", each.speedup


def _smaller(each: ImportedMeasurement) -> Iterator[tuple[str, str, float | None]]:
    for name, latency in (("TTFT", each.ttft), ("TPOT", each.tpot), ("ITL", each.itl)):
        yield f"mean {name}", "ms", latency.mean_ms
        yield f"median {name}", "ms", latency.median_ms
        yield f"p99 {name}", "ms", latency.p99_ms


def _entry(each: ImportedMeasurement, *, name: str, unit: str, value: float) -> dict[str, Any]:
    entry = {"name": f"{each.label}: {name}", "unit": unit, "value": value}
    if name == "acceptance rate" and each.num_draft_tokens is not None:
        entry["extra"] = f"{each.num_accepted_tokens} of {each.num_draft_tokens} draft tokens"
    return entry
