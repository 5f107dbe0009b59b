"""Counters of an offline run, as vLLM's example `spec_decode.py` reads and prints them.

    num_drafts: 4816
    num_draft_tokens: 33712
    ...
    acceptance at token 0: 0.78

or the same names in JSON, an object a run; there the rates may be a list `per_pos`. Floor 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import Fields, in_order
from pytest_specdec.imports.imported import ImportedMeasurement, completed

COUNTERS = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
LINE = re.compile(
    r"^(?P<name>total_num_output_tokens|num_\w+|mean acceptance length|acceptance at token \d+): ?"
    r"(?P<value>[\d.]+)\s*$"
)
AT_TOKEN = re.compile(r"^acceptance at token (\d+)$")


def fits(document: Document) -> bool:
    """Whether its lines, or one of its objects, have the counters."""
    if document.rows is not None:
        return any(_is_run(table) for table in document.tables)
    return set(COUNTERS) <= {name for _, name, _ in _lines(document)}


def _is_run(table: Mapping[str, Any]) -> bool:
    return all(name in table for name in COUNTERS) and "label" not in table


def read(document: Document) -> tuple[ImportedMeasurement, ...]:
    """A measurement for each run."""
    runs = list(_runs(document))
    return tuple(
        _run(fields, label=document.label if len(runs) == 1 else f"{document.label} {number}")
        for number, fields in enumerate(runs, 1)
    )


def _runs(document: Document) -> Iterator[Fields]:
    if document.rows is None:
        yield _of_text(document)
        return
    for number, table in enumerate(document.tables, 1):
        fields = Fields(file=document.name, at=f"run {number}", table=table)
        if not _is_run(table):
            raise fields.error(
                "lacks one of " + ", ".join(f"`{name}`" for name in COUNTERS),
                hint="keep other results in another file",
            )
        yield fields


def _lines(document: Document) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(document.text.splitlines(), 1):
        found = LINE.match(line)
        if found is not None:
            yield number, found["name"], found["value"]


def _of_text(document: Document) -> Fields:
    """All its lines as one table."""
    table: dict[str, float] = {}
    for number, name, text in _lines(document):
        place = Fields(file=document.name, at=f"line {number}")
        if name in table:
            raise place.error(f"`{name}` stands there twice", hint="keep one run in a file")
        try:
            table[name] = float(text)
        except ValueError:
            raise place.error(f"`{name}` is not a number: {text!r}") from None
    return Fields(file=document.name, table=table)


def _run(fields: Fields, *, label: str) -> ImportedMeasurement:
    positions = in_order(
        fields,
        {
            int(found[1]): fields.checked(name, value)
            for name, value in fields.table.items()
            if (found := AT_TOKEN.match(name)) is not None
        },
    )
    length = fields.number("mean_acceptance_length")
    if length is None:
        length = fields.number("mean acceptance length")
    told = ImportedMeasurement(
        label=label,
        num_drafts=fields.count("num_drafts"),
        num_draft_tokens=fields.count("num_draft_tokens"),
        num_accepted_tokens=fields.count("num_accepted_tokens"),
        mean_acceptance_length=length,
        acceptance_rate_per_pos=positions or fields.numbers("per_pos"),
        num_output_tokens=fields.count("total_num_output_tokens"),
    )
    return completed(told, fields)
