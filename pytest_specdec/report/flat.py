"""Measurements in the flat names of `vllm bench serve`'s results: `spec_decode_*` and its times.

The acceptance rate is in percent, as vLLM has it; what was not measured has no key, as there.
`label` and `speedup` are ours. Floor 4.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pytest_specdec.imports.imported import ImportedMeasurement, Latency


def flat_json(measurements: Sequence[ImportedMeasurement]) -> str:
    """The file's text: a list, an object a measurement."""
    return json.dumps([flat(each) for each in measurements], indent=2, allow_nan=False) + "\n"


def flat(measurement: ImportedMeasurement) -> dict[str, Any]:
    """One measurement's figures."""
    rate = measurement.acceptance_rate
    rates = measurement.acceptance_rate_per_pos
    figures = {
        "label": measurement.label,
        "spec_decode_acceptance_rate": None if rate is None else 100 * rate,
        "spec_decode_acceptance_length": measurement.mean_acceptance_length,
        "spec_decode_num_drafts": measurement.num_drafts,
        "spec_decode_draft_tokens": measurement.num_draft_tokens,
        "spec_decode_accepted_tokens": measurement.num_accepted_tokens,
        "spec_decode_per_position_acceptance_rates": None if rates is None else list(rates),
        "total_output_tokens": measurement.num_output_tokens,
        "completed": measurement.num_requests,
        "max_concurrency": measurement.concurrency,
        "duration": measurement.duration_s,
        "output_throughput": measurement.output_tokens_per_s,
        **_times("ttft", measurement.ttft),
        **_times("tpot", measurement.tpot),
        **_times("itl", measurement.itl),
        "speedup": measurement.speedup,
    }
    return {name: value for name, value in figures.items() if value is not None}


def _times(name: str, latency: Latency) -> dict[str, float | None]:
    return {
        f"mean_{name}_ms": latency.mean_ms,
        f"median_{name}_ms": latency.median_ms,
        f"p99_{name}_ms": latency.p99_ms,
    }
