"""Answers that are not what their request asked: the examples of `honoured` and `logprobs`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.honoured import judge_honoured
from pytest_specdec.checks.logprobs import judge_logprobs
from pytest_specdec.generation import Generation
from tests.said import completion, generation, prompt

# SmolLM2's tokens of this text, the end token last.
COLOURS = (455, 28, 2654, 28, 4461, 28, 2382, 28, 2654, 28, 4461, 2)
TEXT = "red, green, blue, red, green, blue"


def given(token_ids: Sequence[int] = COLOURS, text: str = TEXT, **facts: Any) -> Generation:
    return generation("colours", token_ids, text=text, **facts)


def not_honoured(
    asked: dict[str, Any], *, baseline: Generation, speculative: Generation
) -> Callable[[], Finding | None]:
    """What is found in the speculative engine's answer where the baseline engine's is as asked."""
    return lambda: judge_honoured(
        prompt("colours", **asked), baseline=baseline, speculative=speculative, max_model_len=2048
    )


def scored(*speculative: float | None) -> Callable[[], Finding | None]:
    """What is found in these log-probabilities, beside the baseline engine's."""
    ids = COLOURS[:5]
    return lambda: judge_logprobs(
        prompt("colours", logprobs=1),
        baseline=given(ids, logprobs=(-0.31, -0.02, -1.12, -0.01, -0.47)),
        speculative=given(ids, logprobs=speculative),
        tolerance_nats=0.05,
    )


LOGPROBS = {
    "logprobs missing": scored(-0.31, -0.02, None, None, -0.47),
    "logprobs not finite": scored(-0.31, -0.02, math.nan, -0.01, -0.47),
    "logprobs above zero": scored(-0.31, -0.02, 0.75, -0.01, -0.47),
    "logprobs differ": scored(-0.31, -0.02, -2.37, -1.12, -0.47),
}
HONOURED = {
    "text after stop": not_honoured(
        {"stop": ["blue"]},
        baseline=given(COLOURS[:5], "red, green, ", stop_reason="blue"),
        speculative=given(COLOURS[:7], "red, green, blue, red", finish_reason="length"),
    ),
    "token after stop": not_honoured(
        {"stop_token_ids": [4461]},
        baseline=given(COLOURS[:5], "red, green, blue", stop_reason=4461),
        speculative=given(COLOURS[:8], "red, green, blue, red,", stop_reason=4461),
    ),
    "wrong stop": not_honoured(
        {"stop_token_ids": [4461]},
        baseline=given(COLOURS[:5], "red, green, blue", stop_reason=4461),
        speculative=given(COLOURS[:5], "red, green, blue", finish_reason="length"),
    ),
    "too many tokens": not_honoured(
        {"max_tokens": 8, "ignore_eos": True},
        baseline=given(COLOURS[:8], finish_reason="length"),
        speculative=given(COLOURS[:10], finish_reason="length"),
    ),
    "too few tokens": not_honoured(
        {"min_tokens": 10},
        baseline=given(),
        speculative=given((*COLOURS[:7], 2), "red, green, blue, red"),
    ),
    "ended early": not_honoured(
        {"ignore_eos": True},
        baseline=given(COLOURS * 2, TEXT * 2, finish_reason="length"),
        speculative=given(finish_reason="length"),
    ),
    "token not allowed": not_honoured(
        {"allowed_token_ids": [455, 28, 2654, 2]},
        baseline=given((455, 28, 2654, 2), "red, green"),
        speculative=given(COLOURS[:5], "red, green, blue"),
    ),
    "bad word": not_honoured(
        {"bad_words": ["blue"]},
        baseline=given((455, 28, 2654, 2), "red, green", bad_words_token_ids=((4461,),)),
        speculative=given(COLOURS[:5], "red, green, blue", bad_words_token_ids=((4461,),)),
    ),
    "answers missing": not_honoured(
        {"n": 3},
        baseline=given(others=(completion(), completion())),
        speculative=given(others=(completion(),)),
    ),
    "too many answers": not_honoured(
        {"n": 2},
        baseline=given(others=(completion(),)),
        speculative=given(others=(completion(), completion())),
    ),
    "not judged": not_honoured({"bad_words": ["blue"]}, baseline=given(), speculative=given()),
}
