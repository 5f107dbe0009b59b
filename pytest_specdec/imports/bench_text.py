"""What `vllm bench serve` prints: blocks of `Label:   value` between two rules.

All shares are in percent there, those of positions too (`vllm/benchmarks/serve.py` of 0.32.0; since
the section `Speculative Decoding` came, its labels are the same). Blocks of older versions, and of
runs without speculation, lack that section. Floor 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import Fields, in_order
from pytest_specdec.imports.imported import ImportedMeasurement, Latency, completed

HEAD = re.compile(r"^=+ Serving Benchmark Result =+\s*$")
END = re.compile(r"^=+\s*$")
LINE = re.compile(r"^\s*(?P<label>[^:]+?):\s+(?P<value>\S+)\s*$")
POSITION = re.compile(r"^Position (\d+)$")


def fits(document: Document) -> bool:
    """Whether a block begins in it."""
    return document.rows is None and any(HEAD.match(line) for line in document.text.splitlines())


def read(document: Document) -> tuple[ImportedMeasurement, ...]:
    """A measurement for each block."""
    blocks = list(_blocks(document))
    return tuple(
        _measurement(
            block, label=document.label if len(blocks) == 1 else f"{document.label} {number}"
        )
        for number, block in enumerate(blocks, 1)
    )


def _blocks(document: Document) -> Iterator[Fields]:
    """The numbers of each block by their labels."""
    numbers: dict[str, float] | None = None
    at = ""
    for line_number, line in enumerate(document.text.splitlines(), 1):
        if HEAD.match(line):
            if numbers is not None:
                break
            numbers, at = {}, f"block at line {line_number}"
        elif numbers is None:
            continue
        elif END.match(line):
            yield Fields(file=document.name, at=at, table=numbers)
            numbers = None
        elif (found := LINE.match(line)) is not None:
            number = _number(found["value"])
            if number is not None:
                numbers[found["label"]] = number
    if numbers is not None:
        raise Fields(file=document.name, at=at).error(
            "is cut off: no rule of `=` ends it", hint="keep all that `vllm bench serve` printed"
        )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None  # such as the name of a backend


def _measurement(block: Fields, *, label: str) -> ImportedMeasurement:
    told = ImportedMeasurement(
        label=label,
        num_drafts=block.count("Drafts"),
        num_draft_tokens=block.count("Draft tokens"),
        num_accepted_tokens=block.count("Accepted tokens"),
        acceptance_rate=block.number("Acceptance rate (%)", per=100),
        mean_acceptance_length=None
        if block.count("Drafts") == 0
        else block.number("Acceptance length"),
        acceptance_rate_per_pos=_positions(block),
        num_output_tokens=block.count("Total generated tokens"),
        num_requests=block.count("Successful requests"),
        concurrency=block.count("Maximum request concurrency"),
        duration_s=block.number("Benchmark duration (s)"),
        output_tokens_per_s=block.number("Output token throughput (tok/s)"),
        ttft=_latency(block, "TTFT"),
        tpot=_latency(block, "TPOT"),
        itl=_latency(block, "ITL"),
    )
    return completed(told, block)


def _latency(block: Fields, name: str) -> Latency:
    return Latency(
        mean_ms=block.number(f"Mean {name} (ms)"),
        median_ms=block.number(f"Median {name} (ms)"),
        p99_ms=block.number(f"P99 {name} (ms)"),
    )


def _positions(block: Fields) -> tuple[float, ...] | None:
    """Shares by position, which must be numbered from 0 without a gap."""
    return in_order(
        block,
        {
            int(found[1]): block.checked(label, value) / 100
            for label, value in block.table.items()
            if (found := POSITION.match(label)) is not None
        },
    )
