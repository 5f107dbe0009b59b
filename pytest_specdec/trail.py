"""Trails: what is kept of an answer so that a later, diverging one can be compared with it up to
where they part.

Up to there both engines had the same work before them, so steps are compared without noise. A trail
is one line of text, such as `8:5:3fa09c 16:9:b1c7e2`: the first 8 tokens took 5 steps, and the
digest tells those 8 tokens from others. Floor 2; pure.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

CHECKPOINT_TOKENS = 8
DIGEST_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonPrefix:
    """How far two answers to one prompt, or to several, agree.

    Attributes:
        num_tokens: to the last checkpoint that both share.
        old_steps, new_steps: begun up to there. Whole steps: how far the last one went beyond is
            a matter of what came after.
    """

    num_tokens: int
    old_steps: int
    new_steps: int

    def __add__(self, other: CommonPrefix) -> CommonPrefix:
        return CommonPrefix(
            num_tokens=self.num_tokens + other.num_tokens,
            old_steps=self.old_steps + other.old_steps,
            new_steps=self.new_steps + other.new_steps,
        )


NO_PREFIX = CommonPrefix(num_tokens=0, old_steps=0, new_steps=0)


def trail_of(token_ids: Sequence[int], step_tokens: Sequence[int]) -> str:
    """The trail of one answer.

    Args:
        step_tokens: tokens that each step gave, none of them 0, in order.
    """
    ends = [*range(CHECKPOINT_TOKENS, len(token_ids), CHECKPOINT_TOKENS), len(token_ids)]
    digest, start, marks = hashlib.sha256(), 0, []
    reached = list(accumulate(step_tokens))
    for end in ends if token_ids else ():
        digest.update(" ".join(map(str, token_ids[start:end])).encode() + b"\n")
        start = end
        num_steps = bisect_left(reached, end) + 1
        marks.append(f"{end}:{num_steps}:{digest.hexdigest()[:DIGEST_DIGITS]}")
    return " ".join(marks)


def common_prefix(old: str, new: str) -> CommonPrefix:
    """Up to the last checkpoint that two trails share."""
    found = NO_PREFIX
    for (was, old_steps, digest), (now, new_steps, other) in zip(
        _marks(old), _marks(new), strict=False
    ):
        if (was, digest) != (now, other):
            break
        found = CommonPrefix(num_tokens=now, old_steps=old_steps, new_steps=new_steps)
    return found


def _marks(trail: str) -> Iterator[tuple[int, int, str]]:
    for mark in trail.split():
        tokens, steps, digest = mark.split(":")
        yield int(tokens), int(steps), digest
