"""Scored tokens, for tests: draws from explicit distributions, as an engine would score them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from pytest_specdec.generation import TokenScore


def score(
    logprob: float, *, argmax_logprob: float = -0.5, is_argmax: bool = False, **facts: object
) -> TokenScore:
    """One token's, by what counts in it."""
    top = facts.get("top_logprobs", ())
    assert isinstance(top, tuple)
    return TokenScore(
        token_id=0,
        text="t",
        logprob=logprob,
        rank=1 if is_argmax else 2,
        argmax_token_id=0 if is_argmax else 1,
        argmax_text="a",
        argmax_logprob=argmax_logprob,
        top_logprobs=top,
    )


def scores_of(probabilities: Sequence[float], *, num_top: int = 16) -> tuple[TokenScore, ...]:
    """Every token of a vocabulary under one distribution; of ties the first is the argmax."""
    logprobs = [math.log(each) if each else -math.inf for each in probabilities]
    falling = sorted(range(len(logprobs)), key=lambda token_id: -logprobs[token_id])
    best = falling[0]
    return tuple(
        TokenScore(
            token_id=token_id,
            text=str(token_id),
            logprob=logprob,
            rank=falling.index(token_id) + 1,
            argmax_token_id=best,
            argmax_text=str(best),
            argmax_logprob=logprobs[best],
            top_logprobs=tuple(logprobs[each] for each in falling[:num_top]),
        )
        for token_id, logprob in enumerate(logprobs)
    )


def normalized(weights: Sequence[float]) -> list[float]:
    """Weights as probabilities."""
    total = math.fsum(weights)
    return [each / total for each in weights]


class Model:
    """A few distributions of the kinds that language models have, sharp and flat, over `SIZE`
    tokens; a session walks through them in turn."""

    SIZE = 20

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.distributions = [
            normalized([math.exp(chance.gauss(0, spread)) for _ in range(self.SIZE)])
            for spread in (1, 2, 3, 4, 6)
        ]
        self._scores = [scores_of(each) for each in self.distributions]

    def session(
        self, seed: int, num_tokens: int, *, drawn: Sequence[Sequence[float]] | None = None
    ) -> list[TokenScore]:
        """Tokens drawn from the distributions, or from others in their place, scored by these."""
        chance = random.Random(seed)
        sources = drawn or self.distributions
        tokens = range(self.SIZE)
        return [
            self._scores[at % len(sources)][
                chance.choices(tokens, weights=sources[at % len(sources)])[0]
            ]
            for at in range(num_tokens)
        ]

    def tempered(self, temperature: float) -> list[list[float]]:
        return [normalized([p ** (1 / temperature) for p in each]) for each in self.distributions]

    def contaminated(self, share: float) -> list[list[float]]:
        return [[(1 - share) * p + share / self.SIZE for p in each] for each in self.distributions]

    def argmax_tilted(self, factor: float) -> list[list[float]]:
        return [
            normalized([p * (factor if p == max(each) else 1) for p in each])
            for each in self.distributions
        ]
