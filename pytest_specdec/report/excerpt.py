"""Answers as evidence: what is unseen made visible, long ones cut around the place that counts.

Floor 4; imports nothing from the package.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_BEFORE = 600
MAX_AFTER = 1200
MAX_MARKED = 24
# Control characters but tab and newline, what reorders or hides text, and halves of a surrogate
# pair, which no file can hold.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_WORD = re.compile(r"\s*\S+|\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A text around one place.

    Attributes:
        num_cut_before, num_cut_after: characters left out at either end.
        marked: what stands at the place; empty where the text has ended.
    """

    num_cut_before: int
    before: str
    marked: str
    after: str
    num_cut_after: int


def excerpt(text: str, position: int | None) -> Excerpt:
    """Around a 0-based character; from the beginning, with nothing marked, where there is none."""
    at = len(text) if position is None else min(position, len(text))
    word = _WORD.match(text, at)
    end = at if word is None else min(word.end(), at + MAX_MARKED)
    start = 0 if position is None else max(0, at - MAX_BEFORE)
    before, after = text[start:at], text[end : end + MAX_AFTER]
    if position is None:
        before = before[: MAX_BEFORE + MAX_AFTER]
    num_cut = len(text) - start - len(before) - (end - at) - len(after)
    return Excerpt(
        num_cut_before=start,
        before=before,
        marked=text[at:end],
        after=after,
        num_cut_after=num_cut,
    )


def visible(text: str) -> str:
    """The text with what cannot be seen, or reorders what can, as escapes."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
