"""Results of `vllm bench serve --save-result`, and the flat `spec_decode_*` names of `report.flat`.

One object a run: a file holds one, one a line (`--append-result`), or a list of them. The
acceptance rate is in percent there, the rates per position are shares of 0 to 1
(`vllm/benchmarks/serve.py` of 0.32.0). A run without speculation has none of these keys and is
imported without acceptance. Floor 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import Fields
from pytest_specdec.imports.imported import ImportedMeasurement, Latency, completed

# AIPerf has keys of such names too, with a table under each.
SPECULATIVE = (
    "spec_decode_acceptance_rate",
    "spec_decode_acceptance_length",
    "spec_decode_num_drafts",
    "spec_decode_draft_tokens",
    "spec_decode_accepted_tokens",
    "spec_decode_per_position_acceptance_rates",
)
OF_A_RUN = ("duration", "completed", "request_throughput")


def fits(document: Document) -> bool:
    """Whether one of its objects is such a run."""
    return any(_is_run(table) for table in document.tables)


def _is_run(table: Mapping[str, Any]) -> bool:
    if all(isinstance(table.get(key), int | float) for key in OF_A_RUN):
        return True
    return any(key in table and not isinstance(table[key], dict) for key in SPECULATIVE)


def read(document: Document) -> tuple[ImportedMeasurement, ...]:
    """A measurement for each run."""
    runs = document.tables
    return tuple(
        _run(
            Fields(file=document.name, at=f"run {number}" if len(runs) > 1 else "", table=table),
            label=_label(table, document, number=number, is_one=len(runs) == 1),
        )
        for number, table in enumerate(runs, 1)
    )


def _label(table: Mapping[str, Any], document: Document, *, number: int, is_one: bool) -> str:
    if isinstance(table.get("label"), str) and table["label"]:
        return str(table["label"])
    return document.label if is_one else f"{document.label} {number}"


def _run(fields: Fields, *, label: str) -> ImportedMeasurement:
    if not _is_run(fields.table):
        raise fields.error(
            "is no result of `vllm bench serve`", hint="keep other results in another file"
        )
    drafts = fields.count("spec_decode_num_drafts")
    is_drafted = drafts != 0
    told = ImportedMeasurement(
        label=label,
        num_drafts=drafts,
        num_draft_tokens=fields.count("spec_decode_draft_tokens"),
        num_accepted_tokens=fields.count("spec_decode_accepted_tokens"),
        acceptance_rate=fields.number("spec_decode_acceptance_rate", per=100),
        # vLLM writes 0 there when nothing was drafted.
        mean_acceptance_length=fields.number("spec_decode_acceptance_length")
        if is_drafted
        else None,
        acceptance_rate_per_pos=fields.numbers("spec_decode_per_position_acceptance_rates"),
        num_output_tokens=fields.count("total_output_tokens"),
        num_requests=fields.count("completed"),
        concurrency=fields.count("max_concurrency"),
        duration_s=fields.number("duration"),
        output_tokens_per_s=fields.number("output_throughput"),
        ttft=latency(fields, "ttft"),
        tpot=latency(fields, "tpot"),
        itl=latency(fields, "itl"),
        speedup=fields.number("speedup"),
    )
    return completed(told, fields)


def latency(fields: Fields, name: str) -> Latency:
    """One of vLLM's times, in its names: `mean_ttft_ms` and so on."""
    return Latency(
        mean_ms=fields.number(f"mean_{name}_ms"),
        median_ms=fields.number(f"median_{name}_ms"),
        p99_ms=fields.number(f"p99_{name}_ms"),
    )
