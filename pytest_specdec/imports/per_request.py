"""What vLLM tells of each request: responses, one a line, with `metrics.speculative_decoding`.

vLLM answers so with `--per-request-spec-decode-metrics` (0.28 and later). AIPerf's
`profile_export.jsonl` carries the same figures of each request as `spec_decode_acceptance` (written
from its documentation at 0.14, not from a real file). All requests of a file are one run. Floor 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import Fields
from pytest_specdec.imports.imported import ImportedMeasurement, completed


def fits(document: Document) -> bool:
    """Whether one of its objects tells of a request's speculation."""
    return any(_told_by(table) is not None for table in document.tables)


def _told_by(table: Mapping[str, Any]) -> Mapping[str, Any] | None:
    metrics = table.get("metrics")
    of_vllm = metrics.get("speculative_decoding") if isinstance(metrics, dict) else None
    for told in (of_vllm, table.get("spec_decode_acceptance")):
        if isinstance(told, dict):
            return told
    return None


def read(document: Document) -> tuple[ImportedMeasurement, ...]:
    """One measurement: all requests together."""
    tables = document.tables
    told = [
        Fields(file=document.name, at=f"request {number}", table=table)
        for number, each in enumerate(tables, 1)
        if (table := _told_by(each)) is not None
    ]
    requests = [_request(fields) for fields in told]
    _check_same_run(told)
    whole = Fields(file=document.name)
    num_silent = len(tables) - len(told)
    notes = (f"{num_silent} of {len(tables)} requests tell nothing of speculation",)
    return (
        completed(
            ImportedMeasurement(
                label=document.label,
                num_drafts=_sum([each.num_drafts for each in requests]),
                num_draft_tokens=_sum([each.num_draft_tokens for each in requests]),
                num_accepted_tokens=_sum([each.num_accepted_tokens for each in requests]),
                num_accepted_tokens_per_pos=_sums(
                    [each.num_accepted_tokens_per_pos for each in requests]
                ),
                num_output_tokens=_output_tokens(document),
                num_requests=len(tables),
                notes=notes if num_silent else (),
            ),
            whole,
        ),
    )


def _request(fields: Fields) -> ImportedMeasurement:
    num_drafts = fields.count("num_spec_steps")
    num_accepted = fields.count("num_accepted_draft_tokens")
    told = ImportedMeasurement(
        label="",
        num_drafts=num_drafts,
        num_draft_tokens=fields.count("num_draft_tokens"),
        num_accepted_tokens=num_accepted,
        acceptance_rate=fields.number("draft_acceptance_rate"),
        mean_acceptance_length=fields.number("mean_acceptance_length"),
        num_accepted_tokens_per_pos=per_pos_of(
            fields, "acceptance_histogram", num_drafts=num_drafts, num_accepted=num_accepted
        ),
    )
    return completed(told, fields)


def per_pos_of(
    fields: Fields, key: str, *, num_drafts: int | None, num_accepted: int | None
) -> tuple[int, ...] | None:
    """Accepted tokens by position, of a histogram of drafts by how many tokens of each were.

    It is a list from none accepted on, or a table by that number.
    """
    value = fields.table.get(key)
    if value is None:
        return None
    if isinstance(value, dict):
        value = _filled(fields, key, value)
    if not isinstance(value, list):
        raise fields.error(f"`{key}` is neither a list nor a table: {value!r}")
    drafts = [fields.whole(f"`{key}`", each) for each in value]
    accepted = sum(number * each for number, each in enumerate(drafts))
    for name, told, made in (
        ("drafts", num_drafts, sum(drafts)),
        ("accepted tokens", num_accepted, accepted),
    ):
        if told is not None and told != made:
            raise fields.error(
                f"`{key}` holds {made} {name}, but {told} are told",
                hint="is the file damaged, or of two runs?",
            )
    return tuple(sum(drafts[position + 1 :]) for position in range(len(drafts) - 1))


def _filled(fields: Fields, key: str, table: Mapping[str, Any]) -> Sequence[Any]:
    """A table by number as a list; what is not in it is 0."""
    for name in table:
        if not (name.isascii() and name.isdigit() and len(name) < 4):
            raise fields.error(f"`{key}` has a key that is no number of tokens: {name!r}")
    by_number = {int(name): value for name, value in table.items()}
    return [by_number.get(number, 0) for number in range(max(by_number, default=0) + 1)]


def _check_same_run(told: Sequence[Fields]) -> None:
    sizes = {size for each in told if (size := each.count("num_spec_tokens")) is not None}
    if len(sizes) > 1:
        raise Fields(file=told[0].file).error(
            f"its requests differ in `num_spec_tokens`: {', '.join(map(str, sorted(sizes)))}",
            hint="keep the requests of one run in one file",
        )


def _output_tokens(document: Document) -> int | None:
    """Of all requests, where each tells."""
    counts = [
        Fields(file=document.name, at=f"request {number}", table=table)
        .inside("usage")
        .count("completion_tokens")
        for number, table in enumerate(document.tables, 1)
    ]
    return _sum(counts)


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [each for each in counts if each is not None]
    return sum(known) if len(known) == len(counts) else None


def _sums(vectors: Sequence[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    """By position; a shorter vector has 0 behind its end."""
    known = [each for each in vectors if each is not None]
    if len(known) != len(vectors):
        return None
    length = max(map(len, known))
    return tuple(
        sum(each[position] for each in known if position < len(each)) for position in range(length)
    )
