"""Annotations as GitHub's workflow commands, which a runner reads in a job's output. Floor 4.

    ::error file=suites/sql.jsonl,line=3,title=sql%3A identical[a] (my-model)::divergence: `a`%0A...

GitHub shows ten of each level for a step and drops the rest without a word. So the last of them
says how many more there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning", "notice"]
LEVELS: tuple[Level, ...] = ("error", "warning", "notice")
WHAT = {"error": "failed", "warning": "undecided", "notice": "showing a known defect"}
MAX_SHOWN = 10
MAX_CHARS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One remark on a file.

    Attributes:
        file: relative to the repository's root.
        line: 1-based; `None` for the whole file.
        title: the test.
        message: what there is to say; the first line is the most.
    """

    level: Level
    file: str
    line: int | None
    title: str
    message: str


def annotation_lines(annotations: Sequence[Annotation]) -> list[str]:
    """The commands, a line each: at most ten of a level, of which the last counts the rest.

    Args:
        annotations: the worst first.
    """
    return [line for level in LEVELS for line in _of_level(level, annotations)]


def _of_level(level: Level, annotations: Sequence[Annotation]) -> Iterator[str]:
    own = [each for each in annotations if each.level == level]
    first: dict[tuple[str, str], Annotation] = {}
    for each in own:  # an engine that dies fails many tests for one reason
        first.setdefault((each.file, each.message), each)
    is_all_shown = len(first) == len(own) <= MAX_SHOWN
    shown = [*first.values()][: None if is_all_shown else MAX_SHOWN - 1]
    yield from map(_command, shown)
    if num_more := len(own) - len(shown):
        tests = "test" if num_more == 1 else "tests"
        yield f"::{level}::and {num_more} more {tests} {WHAT[level]}: the job's log has all"


def _command(each: Annotation) -> str:
    line = "" if each.line is None else f",line={each.line}"
    place = f"file={_property(each.file)}{line},title={_property(each.title)}"
    message = _visible(each.message)
    cut = f"{message[:MAX_CHARS]}..." if len(message) > MAX_CHARS else message
    return f"::{each.level} {place}::{_data(cut)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(_visible(text)).replace(":", "%3A").replace(",", "%2C")


def _visible(text: str) -> str:
    """Escapes for what would act on a terminal or has no encoding: answers may hold anything."""
    return "".join(
        each if each.isprintable() or each in "\t\r\n" else each.encode("unicode_escape").decode()
        for each in text
    )
