"""Greedy identity: both engines must give the same token ids. Floor 2.

A difference is found by comparing token ids alone. What it is, a violation, a near tie or an engine
that does not repeat itself, is told by `triage`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pytest_specdec.generation import ROLES, Generation, Role, RunPair


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first difference between two answers to one prompt.

    Attributes:
        position: 0-based index into the answer's tokens.
        baseline: the baseline engine's answer; where one engine's passes differ, the first pass's.
        other: the differing answer: the speculative engine's, or another pass's.
        where: whose answers differ, in words.
        unrepeated: the engine whose own passes differ; `None` where the engines do.
    """

    position: int
    baseline: Generation
    other: Generation
    where: str
    unrepeated: Role | None = None

    @property
    def token_ids(self) -> tuple[int | None, int | None]:
        """The first differing tokens, baseline's first; `None` where an answer has ended."""
        answers = (self.baseline.token_ids, self.other.token_ids)
        first, second = (
            ids[self.position] if self.position < len(ids) else None for ids in answers
        )
        return first, second

    @property
    def is_cut_short(self) -> bool:
        """Whether one answer is the beginning of the other. An end token is a token: an answer
        that ended by one differs at it, and is none of these."""
        return None in self.token_ids


def find_divergence(runs: RunPair, prompt_id: str) -> Divergence | None:
    """The first difference between the engines on one prompt, in any pass.

    A pass that differs from the same engine's first pass is told as that: the engine does not
    repeat itself, with or without speculation.
    """
    own, other = (runs.run(role).passes[0].generation(prompt_id) for role in ROLES)
    return find_unrepeated(runs, prompt_id) or compare(own, other)


def find_unrepeated(runs: RunPair, prompt_id: str) -> Divergence | None:
    """The first difference between one engine's first pass and another pass of the same engine."""
    for role in ROLES:
        first, *others = (each.generation(prompt_id) for each in runs.run(role).passes)
        for number, other in enumerate(others, start=2):
            where = f"the {role} engine's passes 1 and {number}"
            found = compare(first, other, where=where, unrepeated=role)
            if found is not None:
                return found
    return None


def first_difference(first: Sequence[int], second: Sequence[int]) -> int | None:
    """The position of the first token that differs, be it that one answer has ended."""
    for position, (own, other) in enumerate(zip_longest(first, second)):
        if own != other:
            return position
    return None


def compare(
    first: Generation,
    second: Generation,
    *,
    where: str = "the engines",
    unrepeated: Role | None = None,
) -> Divergence | None:
    """The first difference between two answers, or between the further ones that `n` asked for;
    `None` where there is none."""
    for own, other in zip(first.answers, second.answers, strict=False):
        position = first_difference(own.token_ids, other.token_ids)
        if position is not None:
            return Divergence(
                position=position, baseline=own, other=other, where=where, unrepeated=unrepeated
            )
    return None


def distinct_answers(runs: RunPair, role: Role, prompt_id: str) -> tuple[Generation, ...]:
    """One engine's answers to one prompt in all its passes, each once."""
    answers: dict[tuple[int, ...], Generation] = {}
    for each in runs.run(role).passes:
        answer = each.generation(prompt_id)
        answers.setdefault(answer.token_ids, answer)
    return tuple(answers.values())
