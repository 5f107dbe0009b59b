"""What `pytest-specdec import` printed: a list of measurements in this project's own names.

Floor 1.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import Fields
from pytest_specdec.imports.imported import ImportedMeasurement, Latency, completed, counted

NAMES = {"label", "num_drafts", "acceptance_rate_per_pos", "notes"}


def fits(document: Document) -> bool:
    """Whether it is a list of such measurements."""
    return any(table.keys() >= NAMES for table in document.tables)


def read(document: Document) -> tuple[ImportedMeasurement, ...]:
    """The same measurements again."""
    return tuple(
        _measurement(Fields(file=document.name, at=f"measurement {number}", table=table))
        for number, table in enumerate(document.tables, 1)
    )


def _measurement(fields: Fields) -> ImportedMeasurement:
    notes = fields.table.get("notes") or ()
    if not isinstance(notes, list | tuple):
        raise fields.error(f"`notes` is not a list: {notes!r}")
    told = replace(
        counted(fields, label=str(fields.table.get("label"))),
        acceptance_rate=fields.number("acceptance_rate"),
        mean_acceptance_length=fields.number("mean_acceptance_length"),
        acceptance_rate_per_pos=fields.numbers("acceptance_rate_per_pos"),
        num_output_tokens=fields.count("num_output_tokens"),
        num_requests=fields.count("num_requests"),
        concurrency=fields.count("concurrency"),
        duration_s=fields.number("duration_s"),
        output_tokens_per_s=fields.number("output_tokens_per_s"),
        ttft=_latency(fields.inside("ttft")),
        tpot=_latency(fields.inside("tpot")),
        itl=_latency(fields.inside("itl")),
        speedup=fields.number("speedup"),
        notes=tuple(map(str, notes)),
    )
    return completed(told, fields)


def _latency(fields: Fields) -> Latency:
    return Latency(
        mean_ms=fields.number("mean_ms"),
        median_ms=fields.number("median_ms"),
        p99_ms=fields.number("p99_ms"),
    )
