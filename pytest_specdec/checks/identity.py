"""Greedy identity: both engines must give the same token ids. Floor 2.

A difference is found by comparing token ids alone; what the two tokens meant to the baseline
engine is evidence that is asked for afterwards, and only then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import ROLES, Generation, RunPair, TokenScore

CONTEXT_TOKENS = 8
END = "the end of the answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first difference between two answers to one prompt.

    Attributes:
        position: 0-based index into the answer's tokens.
        baseline: the baseline engine's answer.
        other: the differing answer: the speculative engine's, or another pass's.
        where: whose answers differ, in words.
    """

    position: int
    baseline: Generation
    other: Generation
    where: str

    @property
    def token_ids(self) -> tuple[int | None, int | None]:
        """The first differing tokens, baseline's first; `None` where an answer has ended."""
        answers = (self.baseline.token_ids, self.other.token_ids)
        first, second = (
            ids[self.position] if self.position < len(ids) else None for ids in answers
        )
        return first, second


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The baseline engine's view of a divergence.

    Attributes:
        context: the tokens before it, as text.
        candidates: the baseline's own token and the other one, scored after the same tokens;
            `None` for an answer that has ended.
    """

    context: str
    candidates: tuple[TokenScore | None, TokenScore | None]

    @property
    def margin_nats(self) -> float | None:
        """How much likelier the baseline's own token is, in nats."""
        own, other = self.candidates
        return None if own is None or other is None else own.logprob - other.logprob


def find_divergence(runs: RunPair, prompt_id: str) -> Divergence | None:
    """The first difference between the engines on one prompt, in any pass.

    A pass that differs from the same engine's first pass is told as that: the engine does not
    repeat itself, with or without speculation.
    """
    own, other = (runs.run(role).passes[0].generation(prompt_id) for role in ROLES)
    return find_unrepeated(runs, prompt_id) or _compare(own, other, where="the engines")


def find_unrepeated(runs: RunPair, prompt_id: str) -> Divergence | None:
    """The first difference between one engine's first pass and another pass of the same engine."""
    for role in ROLES:
        first, *others = (each.generation(prompt_id) for each in runs.run(role).passes)
        for number, other in enumerate(others, start=2):
            found = _compare(first, other, where=f"the {role} engine's passes 1 and {number}")
            if found is not None:
                return found
    return None


def first_difference(first: Sequence[int], second: Sequence[int]) -> int | None:
    """The position of the first token that differs, be it that one answer has ended."""
    for position, (own, other) in enumerate(zip_longest(first, second)):
        if own != other:
            return position
    return None


def divergence_finding(
    divergence: Divergence, prompt_line: int, evidence: Evidence | None
) -> Finding:
    """The finding, with the evidence where there is some.

    Args:
        prompt_line: where the prompt stands in its workload file.
        evidence: `None` when the baseline engine could not be asked.
    """
    own, other = divergence.token_ids
    lengths = f"{len(divergence.baseline.token_ids)} and {len(divergence.other.token_ids)} tokens"
    facts = [
        f"prompt on line {prompt_line} of its workload; {divergence.where} differ first at token "
        f"{divergence.position} (answers of {lengths})"
    ]
    if evidence is None:
        facts += [f"first: {_token(own, None)}", f"second: {_token(other, None)}"]
    else:
        facts += [
            f"after: {evidence.context!r}",
            f"first: {_token(own, evidence.candidates[0])}",
            f"second: {_token(other, evidence.candidates[1])}",
        ]
    if evidence is not None and evidence.margin_nats is not None:
        facts.append(f"margin: {evidence.margin_nats:.4f} nats, by the baseline engine")
    if divergence.where == "the engines":
        hint = "greedy speculation must not change a token; a small margin points at numerics"
    else:
        hint = "one engine answers the same prompt differently; look there before speculation"
    return Finding(
        kind="divergence",
        prompt_id=divergence.baseline.prompt_id,
        facts=tuple(facts),
        hint=hint,
    )


def _compare(first: Generation, second: Generation, where: str) -> Divergence | None:
    position = first_difference(first.token_ids, second.token_ids)
    if position is None:
        return None
    return Divergence(position=position, baseline=first, other=second, where=where)


def _token(token_id: int | None, score: TokenScore | None) -> str:
    if token_id is None:
        return END
    if score is None:
        return f"token {token_id}"
    text, logprob, rank = score.text, score.logprob, score.rank
    return f"token {token_id} {text!r}, log-probability {logprob:.4f}, rank {rank}"
