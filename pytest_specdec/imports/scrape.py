"""One scrape of vLLM's `/metrics`: each counter of speculation, by engine and position.

The text is read by prometheus-client; what it lets pass (a text cut off between two lines, a series
that stands there twice, counts that are none) is refused here. Floor 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import Fields

PREFIX = "vllm:spec_decode_"
DRAFTS = f"{PREFIX}num_drafts"
DRAFT_TOKENS = f"{PREFIX}num_draft_tokens"
ACCEPTED = f"{PREFIX}num_accepted_tokens"
PER_POS = f"{PREFIX}num_accepted_tokens_per_pos"
EMITTED = f"{PREFIX}num_emitted_tokens"  # of V0 alone
OUTPUT_TOKENS = "vllm:generation_tokens"
COUNTERS = (DRAFTS, DRAFT_TOKENS, ACCEPTED, PER_POS, EMITTED, OUTPUT_TOKENS)

# A counter's labels without its position: one engine of one server.
Engine = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One counter of one engine, at one position where it is by position."""

    name: str
    engine: Engine
    position: int | None = None

    def __str__(self) -> str:
        position = () if self.position is None else (("position", str(self.position)),)
        labels = ",".join(f'{key}="{value}"' for key, value in (*self.engine, *position))
        return f"`{self.name}{{{labels}}}`" if labels else f"`{self.name}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """The counters of one scrape.

    Attributes:
        created: when each was made, in seconds since 1970; another time is another server.
    """

    place: Fields
    counts: Mapping[Series, int]
    created: Mapping[Series, float] = field(default_factory=dict)


def scrape_of(document: Document) -> Scrape:
    """All of a file's counters, each once.

    Raises:
        ImportFileError: when it is no whole scrape, or has no counter of speculation.
    """
    place = Fields(file=document.name)
    if not document.text.endswith("\n"):
        raise place.error(
            "is cut off: the last line has no end",
            hint="scrape again; if it is whole, end it with a line feed",
        )
    counts: dict[Series, int] = {}
    created: dict[Series, float] = {}
    for series, value, is_created in _samples(place, document.text):
        if series in (created if is_created else counts):
            raise place.error(f"{series} stands there twice", hint="keep one scrape in a file")
        if is_created:
            created[series] = value
        else:
            counts[series] = place.whole(str(series), value)
    if not any(series.name.startswith(PREFIX) for series in counts):
        raise place.error(
            f"holds no counter `{PREFIX}*`",
            hint="the server ran without speculation, or with log statistics disabled",
        )
    return Scrape(place=place, counts=counts, created=created)


def _samples(place: Fields, text: str) -> Iterator[tuple[Series, float, bool]]:
    """Each sample of ours, and whether it is the time that a counter was made."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        samples = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]
    except (ValueError, IndexError, KeyError) as error:
        raise place.error(f"is no text of Prometheus: {error}", hint="scrape again") from None
    for sample in samples:
        name = sample.name.removesuffix("_total").removesuffix("_created")
        if name in COUNTERS:
            yield (
                _series(place, name, sample.labels),
                sample.value,
                sample.name.endswith("_created"),
            )


def _series(place: Fields, name: str, labels: Mapping[str, str]) -> Series:
    position = position_of(place, labels) if name == PER_POS else None
    engine = tuple(sorted(each for each in labels.items() if each[0] != "position"))
    return Series(name=name, engine=engine, position=position)


def position_of(place: Fields, labels: Mapping[str, Any]) -> int:
    """The label `position` of a series, which must be a small whole number."""
    text = str(labels.get("position", ""))
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise place.error(f"`{PER_POS}` has no whole number as `position`: {text!r}")
    return int(text)
