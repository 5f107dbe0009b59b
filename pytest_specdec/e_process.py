"""Evidence against "each sampled token was drawn from the baseline engine's distribution", one
token at a time, good whenever one looks.

Let `p` be the baseline engine's distribution after the tokens so far, and `q` another one that the
tokens so far determine as well. Where each token `x` is drawn from `p`, the expected `q(x) / p(x)`
is 1, so the product of these ratios over all tokens is a martingale that begins at 1, and so is any
weighted mean of such products. Ville's inequality bounds it at all times at once:

    P(it ever reaches 1 / level) <= level

That is an e-process: how many tokens there will be need not be known beforehand, and one may stop
at any of them (Ville 1939; Grünwald, de Heide and Koolen, "Safe Testing"; Ramdas, Grünwald, Vovk
and Shafer, "Game-Theoretic Statistics and Safe Anytime-Valid Inference"). Here every `q` of
`ALTERNATIVES` has the same weight, and all is held as logarithms. Floor 3; pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pytest_specdec.generation import TokenScore

# Of what the top log-probabilities leave to all other tokens, float32 tells no less than this apart
# from nothing. Taking it for more than it is lowers the evidence, never raises it.
LEAST_REST = 1e-6
# A token outside the top ones is about this probable, against the least of them. What it is decides
# how much is seen, not how often the test is wrong.
TYPICAL_REST = 0.25


class Alternative(Protocol):
    """A distribution that the tokens may follow instead."""

    @property
    def meaning(self) -> str:
        """What it would mean, in words."""
        ...

    def log_ratio(self, score: TokenScore, vocab_size: int) -> float:
        """The log of the token's probability under it over that under the baseline engine."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Contaminated:
    """Some tokens are drawn from the whole vocabulary evenly: `q = (1 - share) p + share / V`."""

    share: float

    @property
    def meaning(self) -> str:
        return "tokens that the baseline engine finds all but impossible"

    def log_ratio(self, score: TokenScore, vocab_size: int) -> float:
        even = math.log(self.share / vocab_size) - score.logprob
        return _log_sum_exp((math.log1p(-self.share), even))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgmaxTilted:
    """The odds of the most likely token are `factor` times as high; the others share the rest as
    they do in `p`."""

    factor: float

    @property
    def meaning(self) -> str:
        return f"too {'often' if self.factor > 1 else 'seldom'} the likeliest token"

    def log_ratio(self, score: TokenScore, vocab_size: int) -> float:  # noqa: ARG002
        top = math.exp(score.argmax_logprob)
        own = math.log(self.factor) if score.token_id == score.argmax_token_id else 0.0
        return own - math.log1p((self.factor - 1) * top)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tempered:
    """Another temperature than 1: `q` in proportion to `p ** (1 / temperature)`.

    Each of the most likely tokens is a cell by itself, all others are one. These are taken to be
    as probable as `TYPICAL_REST` of the least of the top ones, each, and share as they do in `p`.

    Only tokens above the least of the top log-probabilities are cells: a tie with that one would
    leave open on which side of it a token lies.
    """

    temperature: float

    @property
    def meaning(self) -> str:
        return f"as if the temperature were {'higher' if self.temperature > 1 else 'lower'}"

    def log_ratio(self, score: TokenScore, vocab_size: int) -> float:  # noqa: ARG002
        if not score.top_logprobs:
            return 0.0
        least, tilt = score.top_logprobs[-1], 1 / self.temperature
        cells = [each for each in score.top_logprobs if each > least]
        rest = math.log(max(LEAST_REST, 1 - math.fsum(map(math.exp, cells))))
        typical = math.log(TYPICAL_REST) + max(least, math.log(LEAST_REST))
        total = _log_sum_exp([*(tilt * each for each in cells), rest + (tilt - 1) * typical])
        return (tilt - 1) * (score.logprob if score.logprob > least else typical) - total


ALTERNATIVES: tuple[Alternative, ...] = (
    *(Contaminated(share=share) for share in (0.01, 0.05, 0.2)),
    *(ArgmaxTilted(factor=factor) for factor in (0.25, 0.5, 2.0, 4.0)),
    *(Tempered(temperature=temperature) for temperature in (0.8, 0.9, 1.1, 1.25)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EProcess:
    """How the evidence went.

    Attributes:
        num_tokens: all that were looked at.
        log_e_max: the log of the most evidence there was after any token; at least 0.
        at: tokens after which it was highest.
        crossed_at: tokens after which it first reached what was asked for; `None` if it never did.
        supported: the alternative that most of it came from, where it was highest.
    """

    num_tokens: int
    log_e_max: float
    at: int
    crossed_at: int | None
    supported: Alternative | None


def e_process(
    scores: Iterable[TokenScore],
    *,
    vocab_size: int,
    log_threshold: float,
    alternatives: Sequence[Alternative] = ALTERNATIVES,
) -> EProcess:
    """Follows the evidence over tokens in their order, those of one answer after those of another.

    Answers must have been drawn independently: two requests of the same seed are one draw.
    """
    log_products = [0.0] * len(alternatives)
    log_e_max, at, crossed_at, num_tokens = 0.0, 0, None, 0
    supported: Alternative | None = None
    for num_tokens, score in enumerate(scores, start=1):
        for index, alternative in enumerate(alternatives):
            log_products[index] += alternative.log_ratio(score, vocab_size)
        log_e = _log_sum_exp(log_products) - math.log(len(alternatives))
        if log_e > log_e_max:
            log_e_max, at = log_e, num_tokens
            supported = alternatives[log_products.index(max(log_products))]
        if crossed_at is None and log_e >= log_threshold:
            crossed_at = num_tokens
    return EProcess(
        num_tokens=num_tokens,
        log_e_max=log_e_max,
        at=at,
        crossed_at=crossed_at,
        supported=supported,
    )


def _log_sum_exp(logs: Sequence[float]) -> float:
    most = max(logs)
    if math.isinf(most):
        return most
    return most + math.log(math.fsum(math.exp(each - most) for each in logs))
