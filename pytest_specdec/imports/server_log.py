"""Lines of vLLM's log that tell of speculation, in all forms that they have had.

    until 0.8, V0   Speculative metrics: Draft acceptance rate: 0.607, System efficiency: 0.510, ...
    0.8, V1         Speculative metrics: Draft acceptance rate: 1.000, Number of accepted ...
    0.8.3           SpecDecoding metrics: Draft acceptance rate: 100.0%, Accepted: 66 tokens, ...
    0.9             ... Mean acceptance length: 2.16, ... Per-position acceptance rate: 0.543, 0.357
    0.10.2          ... Accepted throughput: 4.37 tokens/s, Drafted throughput: 4.92 tokens/s, ...
    0.11            the rate last, as `Avg Draft acceptance rate: 96.6%`

V1 tells each line what happened since the last one, so lines are added up, whichever process wrote
them; V0 tells the sum since the start, so the last line is all. Read from vLLM's history:
`vllm/engine/metrics.py`, `vllm/v1/spec_decode/metrics.py`, pull requests 15902, 16665 and 24127.
Floor 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pytest_specdec.errors import ImportFileError
from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import Fields
from pytest_specdec.imports.imported import ImportedMeasurement, completed
from pytest_specdec.imports.log_windows import Window, drafts_of, together
from pytest_specdec.imports.prometheus import V0_NOTE

MARK = re.compile(r"(?:SpecDecoding metrics|Speculative metrics): (?P<told>.*)")
NUMBER = r"([\d.]+|nan)"
RATE = re.compile(rf"[Dd]raft acceptance rate: {NUMBER}(%?)(?![\d.%])")
LENGTH = re.compile(rf"Mean acceptance length: {NUMBER}(?=,|$)")
ACCEPTED = re.compile(r"(?:Number of accepted tokens: (\d+)(?=,)|Accepted: (\d+) tokens)")
DRAFTED = re.compile(r"(?:Number of draft tokens(?: tokens)?: (\d+)(?=,)|Drafted: (\d+) tokens)")
PER_POS = re.compile(
    r"Per-position acceptance (?:rate|probabilities): "
    r"(\d\.\d{3}(?:, \d\.\d{3})*)(?=, Avg|[^\d.,]|$)"
)
V0 = "System efficiency"


def fits(document: Document) -> bool:
    """Whether such a line is in it; JSON lines may be a log too."""
    is_log = document.rows is None or len(document.rows) > 1
    return is_log and MARK.search(document.text) is not None


def read(document: Document) -> tuple[ImportedMeasurement, ...]:
    """One measurement: all lines together."""
    lines = list(_lines(document))
    are_v0 = {V0 in told for _, told in lines}
    if len(are_v0) > 1:
        raise Fields(file=document.name).error(
            "holds lines of vLLM's V0 and V1 engines, which count differently",
            hint="keep the log of one server in one file",
        )
    windows = [_window(place, told) for place, told in lines]
    place = lines[-1][0]
    if True in are_v0:
        return (completed(_of_v0(document, windows, place), place),)
    whole = together(windows, label=document.label)
    return (completed(whole, Fields(file=document.name)),)


def _lines(document: Document) -> Iterator[tuple[Fields, str]]:
    for number, line in enumerate(document.text.splitlines(), 1):
        found = MARK.search(line)
        if found is not None:
            yield Fields(file=document.name, at=f"line {number}"), found["told"]


def _window(place: Fields, told: str) -> Window:
    """The figures of one line."""
    accepted, drafted, rate = (each.search(told) for each in (ACCEPTED, DRAFTED, RATE))
    if accepted is None or drafted is None or rate is None:
        raise _cut_off(place, told)
    length, per_pos = LENGTH.search(told), PER_POS.search(told)
    if (length is None) != (per_pos is None):
        raise _cut_off(place, told)
    window = Window(
        num_accepted_tokens=_count(place, accepted),
        num_draft_tokens=_count(place, drafted),
        acceptance_rate=_share(place, rate),
        mean_acceptance_length=None if length is None else _number(place, length[1]),
        acceptance_rate_per_pos=()
        if per_pos is None
        else tuple(_number(place, each) for each in per_pos[1].split(", ")),
    )
    _check(place, window)
    return window


def _cut_off(place: Fields, told: str) -> ImportFileError:
    return place.error(
        f"is no whole line of vLLM's metrics: {told[:80]!r}",
        hint="was the log cut off? remove that line",
    )


def _check(place: Fields, window: Window) -> None:
    """What the line tells of itself must agree."""
    completed(
        ImportedMeasurement(
            label="",
            num_draft_tokens=window.num_draft_tokens,
            num_accepted_tokens=window.num_accepted_tokens,
            acceptance_rate=window.acceptance_rate,
            mean_acceptance_length=window.mean_acceptance_length,
            acceptance_rate_per_pos=window.acceptance_rate_per_pos or None,
        ),
        place,
    )
    is_told = window.num_draft_tokens and window.mean_acceptance_length is not None
    if is_told and drafts_of(window) is None:
        raise place.error(
            "its figures contradict each other: no number of drafts makes them all",
            hint="was the line cut off or edited? remove it",
        )


def _count(place: Fields, found: re.Match[str]) -> int:
    text = found[1] or found[2]
    return place.whole("a number of tokens", float(text))


def _share(place: Fields, found: re.Match[str]) -> float | None:
    if found[1] == "nan":
        return None  # nothing was drafted
    return _number(place, found[1]) / (100 if found[2] else 1)


def _number(place: Fields, text: str) -> float:
    try:
        return place.checked("a figure", float(text))
    except ValueError:
        raise place.error(
            f"has no number where one should be: {text!r}",
            hint="was the line edited? remove it",
        ) from None


def _of_v0(document: Document, windows: Sequence[Window], place: Fields) -> ImportedMeasurement:
    """The last line, if they only grow."""
    for earlier, later in pairwise(windows):
        if later.num_draft_tokens < earlier.num_draft_tokens:
            raise place.error(
                f"draft tokens fell from {earlier.num_draft_tokens} to {later.num_draft_tokens} "
                "between two lines: the server was restarted",
                hint="keep the log of one life of a server in one file",
            )
    last = windows[-1]
    return ImportedMeasurement(
        label=document.label,
        num_draft_tokens=last.num_draft_tokens,
        num_accepted_tokens=last.num_accepted_tokens,
        acceptance_rate=last.acceptance_rate,
        notes=(V0_NOTE,),
    )
