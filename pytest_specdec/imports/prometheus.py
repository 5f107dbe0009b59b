"""Scrapes of vLLM's `/metrics`: one since the start of the server, or the growth between two.

Counters grow for as long as a server lives, so a run is what they grew by from a scrape before it
to one after. They are summed over engines (data parallel); those by position are a vector, and
`_created` is the time that a counter was made, not one. Floor 1.
"""

from __future__ import annotations

import re
from collections import defaultdict

from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import in_order
from pytest_specdec.imports.imported import ImportedMeasurement, completed
from pytest_specdec.imports.scrape import (
    ACCEPTED,
    DRAFT_TOKENS,
    DRAFTS,
    EMITTED,
    OUTPUT_TOKENS,
    Engine,
    Scrape,
    Series,
    scrape_of,
)

FITS = re.compile(r"^(# (HELP|TYPE) \S|vllm:\w+[{ ])", re.MULTILINE)
SINCE_START = "counted since the server started; `--before` takes an earlier scrape off"
V0_NOTE = (
    "of vLLM's V0 engine, which counted tokens after the first rejection as accepted too: not "
    "comparable with later versions"
)
ONE_LIFE = "take both scrapes in one life of the same server, the earlier one as `--before`"


def fits(document: Document) -> bool:
    """Whether a line of it is of that format."""
    return document.rows is None and FITS.search(document.text) is not None


def read(document: Document) -> tuple[ImportedMeasurement, ...]:
    """All since the start of the server."""
    return (_measurement(scrape_of(document), label=document.label, notes=(SINCE_START,)),)


def subtract(after: Document, before: Document) -> tuple[ImportedMeasurement, ...]:
    """The growth from one scrape to the next."""
    late, early = scrape_of(after), scrape_of(before)
    for series in late.counts:
        _check_same_life(series, late=late, early=early)
    for series in early.counts:
        if series not in late.counts:
            raise late.place.error(f"lacks {series}, which `{before.name}` has", hint=ONE_LIFE)
    growth = {series: count - early.counts[series] for series, count in late.counts.items()}
    scrape = Scrape(place=late.place, counts=growth)
    return (_measurement(scrape, label=after.label, notes=()),)


def _check_same_life(series: Series, *, late: Scrape, early: Scrape) -> None:
    """Raises ImportFileError when no one server can have been scraped so."""
    if series not in early.counts:
        raise early.place.error(f"lacks {series}, which `{late.place.file}` has", hint=ONE_LIFE)
    if late.counts[series] < early.counts[series]:
        raise late.place.error(
            f"{series} fell from {early.counts[series]} to {late.counts[series]}: the server was "
            "restarted in between, or the scrapes are swapped",
            hint=ONE_LIFE,
        )
    made = early.created.get(series), late.created.get(series)
    if None not in made and made[0] != made[1]:
        raise late.place.error(
            f"{series} was made anew in between: the server was restarted", hint=ONE_LIFE
        )


def _measurement(scrape: Scrape, *, label: str, notes: tuple[str, ...]) -> ImportedMeasurement:
    """Summed over engines."""
    _check_engines(scrape)
    sums: dict[str, int] = defaultdict(int)
    positions: dict[int, int] = defaultdict(int)
    for series, count in scrape.counts.items():
        if series.position is None:
            sums[series.name] += count
        else:
            positions[series.position] += count
    per_pos = in_order(scrape.place, positions)
    told = ImportedMeasurement(
        label=label,
        num_drafts=sums.get(DRAFTS),
        num_draft_tokens=sums.get(DRAFT_TOKENS),
        num_accepted_tokens=sums.get(ACCEPTED),
        num_accepted_tokens_per_pos=None if per_pos is None else tuple(map(int, per_pos)),
        num_output_tokens=sums.get(OUTPUT_TOKENS),
        notes=(*notes, V0_NOTE) if EMITTED in sums else notes,
    )
    return completed(told, scrape.place)


def _check_engines(scrape: Scrape) -> None:
    """Sums over different engines have no ratio."""
    speculative = [series for series in scrape.counts if series.name != OUTPUT_TOKENS]
    engines: dict[tuple[str, int | None], set[Engine]] = defaultdict(set)
    for series in speculative:
        engines[series.name, series.position].add(series.engine)
    every = {series.engine for series in speculative}
    for (name, position), those in engines.items():
        lacking = min(every - those, default=None)
        if lacking is not None:
            missing = Series(name=name, engine=lacking, position=position)
            raise scrape.place.error(
                f"lacks {missing}, while other counters of that engine are there",
                hint="the scrape is not whole; scrape again",
            )
