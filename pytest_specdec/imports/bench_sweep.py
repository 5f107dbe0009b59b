"""Several runs of `vllm bench serve`, collected by a harness from what each printed.

    [{"concurrency": 1, "ok": true, "command": [...], "metrics": {"spec_drafts": ..., ...}}, ...]

or such lists in the `bench` of `phases`. All shares are in percent there. Seen in the harness
`vllm-ds4-sm120-harness`. Floor 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_specdec.imports.bench_json import latency
from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import Fields
from pytest_specdec.imports.imported import ImportedMeasurement, completed

Entry = Mapping[str, Any]


def fits(document: Document) -> bool:
    """Whether it is such a list, or has such lists in phases."""
    return any(_is_entry(entry) for _, _, entry in _entries(document))


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("metrics"), dict) and "ok" in entry


def read(document: Document) -> tuple[ImportedMeasurement, ...]:
    """A measurement for each run that went well."""
    runs = [
        _run(Fields(file=document.name, at=at, table=entry), label=label)
        for label, at, entry in _entries(document)
        if entry.get("ok") is True
    ]
    if not runs:
        raise Fields(file=document.name).error(
            "no run of it went well: none has `ok` true", hint="run the benchmark again"
        )
    return tuple(runs)


def _entries(document: Document) -> Iterator[tuple[str, str, Entry]]:
    """Each run with its label and where it is."""
    phases = document.table.get("phases")
    if isinstance(phases, list):
        for number, phase in enumerate(phases, 1):
            if isinstance(phase, dict):
                names = [phase[key] for key in ("variant", "phase") if key in phase]
                label = " ".join([document.label, *map(str, names)])
                yield from _of_list(phase.get("bench"), label=label, at=f"phase {number}, ")
    elif document.rows and isinstance(document.rows[0], list):
        yield from _of_list(document.rows[0], label=document.label, at="")


def _of_list(entries: object, *, label: str, at: str) -> Iterator[tuple[str, str, Entry]]:
    if not isinstance(entries, Sequence):
        return
    for number, entry in enumerate(entries, 1):
        if _is_entry(entry):
            yield f"{label} concurrency {entry.get('concurrency')}", f"{at}run {number}", entry


def _run(entry: Fields, *, label: str) -> ImportedMeasurement:
    metrics = entry.inside("metrics")
    told = ImportedMeasurement(
        label=label,
        num_drafts=metrics.count("spec_drafts"),
        num_draft_tokens=metrics.count("spec_draft_tokens"),
        num_accepted_tokens=metrics.count("spec_accepted_tokens"),
        acceptance_rate=metrics.number("spec_acceptance_rate_percent", per=100),
        mean_acceptance_length=metrics.number("spec_acceptance_length"),
        acceptance_rate_per_pos=metrics.numbers("spec_per_position_acceptance_percent", per=100),
        num_output_tokens=metrics.count("total_generated_tokens"),
        num_requests=metrics.count("successful_requests"),
        concurrency=entry.count("concurrency"),
        duration_s=metrics.number("benchmark_duration_s"),
        output_tokens_per_s=metrics.number("output_token_throughput_tok_s"),
        ttft=latency(metrics, "ttft"),
        tpot=latency(metrics, "tpot"),
        itl=latency(metrics, "itl"),
    )
    return completed(told, metrics)
