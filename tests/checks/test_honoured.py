"""Requests honoured: each thing that may be asked, kept and broken."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.honoured import check_honoured, declares_anything, judge_honoured
from tests.said import completion as further
from tests.said import generation, prompt

WINDOW = 64
WARM = {"temperature": 1}
IDS = tuple(range(10, 20))
STOP = {"finish_reason": "stop", "stop_reason": None}
LENGTH: dict[str, Any] = {"finish_reason": "length", "stop_reason": None}


def found(
    request: dict[str, Any],
    said: dict[str, Any],
    *,
    token_ids: tuple[int, ...] = IDS,
    window: int | None = WINDOW,
) -> Finding | None:
    answer = generation("one", token_ids, **{"text": "red, green", **said})
    return check_honoured(prompt(**request), answer, max_model_len=window)


KEPT: list[Any] = [
    pytest.param({}, STOP, id="nothing asked"),
    pytest.param({"stop": [";", "x"]}, {**STOP, "stop_reason": ";"}, id="stop string"),
    pytest.param({"stop": ";"}, STOP, id="ended before the stop string"),
    pytest.param({"stop": ";"}, {"stop_reason": ";", "text": ""}, id="nothing before it"),
    pytest.param(
        {"stop": "red", "min_tokens": 4}, STOP, id="a stop string before min_tokens is text"
    ),
    pytest.param({"stop_token_ids": [19]}, {**STOP, "stop_reason": 19}, id="stop token"),
    pytest.param({"stop_token_ids": [19]}, STOP, id="stop token that is the end token"),
    pytest.param(
        {"stop_token_ids": [19], "ignore_eos": True},
        {**STOP, "stop_reason": 19},
        id="the end token is a stop token all the same",
    ),
    pytest.param(
        {"stop_token_ids": [19], "min_tokens": 9}, {**STOP, "stop_reason": 19}, id="past min_tokens"
    ),
    pytest.param({"stop_token_ids": [5]}, {**STOP, "stop_reason": 19}, id="the model's, too"),
    pytest.param({"stop_token_ids": [5], "max_tokens": 10}, LENGTH, id="no stop token"),
    pytest.param({}, {**STOP, "stop_reason": 19}, id="another end token of the model's"),
    pytest.param({"max_tokens": 10}, LENGTH, id="max_tokens"),
    pytest.param({"max_tokens": 10}, STOP, id="ended at max_tokens by itself"),
    pytest.param(
        {"min_tokens": 12}, {**LENGTH, "prompt_token_ids": (1,) * 54}, id="cut by the window"
    ),
    pytest.param({"min_tokens": 9}, STOP, id="min_tokens, and one that ends it"),
    pytest.param({"min_tokens": 10, "max_tokens": 10}, LENGTH, id="min_tokens"),
    pytest.param(
        {"min_tokens": 12, "structured_outputs": {"regex": "red, green"}},
        STOP,
        id="a constraint that leaves nothing but the end",
    ),
    pytest.param({"ignore_eos": True, "max_tokens": 10}, LENGTH, id="ignore_eos"),
    pytest.param({"ignore_eos": True, "stop": ";"}, {"stop_reason": ";"}, id="stop, ignore_eos"),
    pytest.param({"allowed_token_ids": [*IDS, 3]}, STOP, id="allowed"),
    pytest.param(
        {"bad_words": ["green", "x"]},
        {**STOP, "bad_words_token_ids": ((12, 14), (18, 19, 20), (9, 10), (20,))},
        id="bad word spelt by other tokens",
    ),
    pytest.param({"n": 3, **WARM}, {**STOP, "others": (further(), further((1, 2)))}, id="n"),
    pytest.param(
        {"n": 2, "stop": ";", "min_tokens": 2, "max_tokens": 11, **WARM},
        {**STOP, "others": (further((1, 2, 3), stop_reason=";"),)},
        id="each answer ends by itself",
    ),
    pytest.param(
        {"context_left": 10}, {**LENGTH, "prompt_token_ids": (1,) * 54}, id="window filled"
    ),
]


@pytest.mark.parametrize(("request_fields", "said"), KEPT)
def test_kept(request_fields: dict[str, Any], said: dict[str, Any]) -> None:
    assert found(request_fields, said) is None


BROKEN: list[Any] = [
    pytest.param(
        {"stop": ","}, {**STOP, "stop_reason": ","}, "text after stop", "character 3", id="stop"
    ),
    pytest.param({"stop": ["n"]}, LENGTH, "text after stop", "'n'", id="stop passed over"),
    pytest.param(
        {"stop": ";"}, {"stop_reason": "x"}, "wrong stop", "not in `stop`", id="another string"
    ),
    pytest.param(
        {"stop": ";"},
        {"stop_reason": ";", "finish_reason": "length"},
        "wrong stop",
        "where it must be stop",
        id="stop string, said to be length",
    ),
    pytest.param(
        {"stop_token_ids": [12]}, STOP, "token after stop", "after it: 7 tokens", id="token"
    ),
    pytest.param(
        {"stop_token_ids": [12]},
        {**STOP, "stop_reason": 12},
        "token after stop",
        "token 2 is 12",
        id="token, not cut",
    ),
    pytest.param(
        {}, {**STOP, "stop_reason": 7}, "wrong stop", "7, but the last token: 19", id="reason"
    ),
    pytest.param(
        {"stop_token_ids": [19], "max_tokens": 10},
        LENGTH,
        "wrong stop",
        "`finish_reason`: length",
        id="stop token, said to be length",
    ),
    pytest.param(
        {"max_tokens": 10},
        {**LENGTH, "stop_reason": 19},
        "wrong stop",
        "where it must be stop",
        id="end token, said to be length",
    ),
    pytest.param(
        {"stop_token_ids": [19], "ignore_eos": True},
        STOP,
        "wrong stop",
        "`stop_reason`: None, where it must be 19",
        id="stop token, taken for the end token",
    ),
    pytest.param(
        {"stop_token_ids": [12], "min_tokens": 3},
        {**STOP, "stop_reason": None},
        "token after stop",
        "`min_tokens`: 3, which bars it there",
        id="stop token before min_tokens",
    ),
    pytest.param({"max_tokens": 9}, LENGTH, "too many tokens", "tokens: 10", id="max_tokens"),
    pytest.param(
        {"max_tokens": 10, "n": 2, **WARM},
        {**LENGTH, "others": (further((1,) * 11, **LENGTH),)},
        "too many tokens",
        "answer 2 of 2\ntokens: 11",
        id="max_tokens of another answer",
    ),
    pytest.param(
        {},
        {**LENGTH, "prompt_token_ids": (1,) * 55},
        "too many tokens",
        "prompt and answer: 65",
        id="window",
    ),
    pytest.param(
        {"max_tokens": 11}, LENGTH, "ended early", "10 of 11 tokens", id="length before it"
    ),
    pytest.param(
        {"context_left": 11},
        {**LENGTH, "prompt_token_ids": (1,) * 53},
        "ended early",
        "prompt and answer: 63",
        id="length before the window's end",
    ),
    pytest.param(
        {"min_tokens": 10},
        STOP,
        "too few tokens",
        "tokens before the one that ends it: 9, `min_tokens`: 10",
        id="min_tokens",
    ),
    pytest.param(
        {"min_tokens": 10, "stop": ";"},
        {"stop_reason": ";"},
        "too few tokens",
        "tokens before the one that ends it: 9, `min_tokens`: 10",
        id="stop string before min_tokens",
    ),
    pytest.param(
        {"min_tokens": 11, "max_tokens": 10}, LENGTH, "too few tokens", "tokens: 10", id="too short"
    ),
    pytest.param({"ignore_eos": True}, STOP, "ended early", "an end token", id="ignore_eos"),
    pytest.param(
        {"ignore_eos": True, "stop_token_ids": [5]},
        {**STOP, "stop_reason": 19},
        "ended early",
        "an end token ended the answer after 10 tokens, with `ignore_eos`: 19",
        id="another end token, ignore_eos",
    ),
    pytest.param(
        {"allowed_token_ids": [10, 11, 12]},
        STOP,
        "token not allowed",
        "token 3 is 13",
        id="allowed",
    ),
    pytest.param(
        {"allowed_token_ids": [*IDS], "n": 2, **WARM},
        {**STOP, "others": (further((10, 9)),)},
        "token not allowed",
        "token 1 is 9",
        id="allowed in another answer",
    ),
    pytest.param(
        {"bad_words": ["x", "y"]},
        {**STOP, "bad_words_token_ids": ((12, 14), (18, 19))},
        "bad word",
        "tokens from 8 on are 18, 19, which are barred for `bad_words`: 'x', 'y'",
        id="bad word",
    ),
    pytest.param(
        {"bad_words": ["x"]},
        {**STOP, "bad_words_token_ids": ((10,),)},
        "bad word",
        "tokens from 0 on are 10, which",
        id="bad word of one token, at once",
    ),
    pytest.param(
        {"bad_words": ["x"], "n": 2, **WARM},
        {**STOP, "bad_words_token_ids": ((5, 6),), "others": (further((4, 5, 6)),)},
        "bad word",
        "answer 2 of 2\ntokens from 1 on are 5, 6",
        id="bad word in another answer",
    ),
    pytest.param(
        {"bad_words": ["red"]}, STOP, "not judged", "which tokens are barred", id="bad word unknown"
    ),
    pytest.param(
        {"stop": ",", "n": 3, **WARM},
        {"text": "red", "stop_reason": ",", "others": (further(text="red"), further(text="a, b"))},
        "text after stop",
        "answer 3 of 3\nthe text holds ','",
        id="stop in another answer",
    ),
    pytest.param(
        {"stop_token_ids": [2], "n": 2, **WARM},
        {**STOP, "others": (further((1, 2, 3)),)},
        "token after stop",
        "answer 2 of 2\ntoken 1 is 2",
        id="stop token in another answer",
    ),
    pytest.param(
        {"min_tokens": 3, "n": 2, **WARM},
        {**STOP, "others": (further((1, 2)),)},
        "too few tokens",
        "answer 2 of 2\ntokens before the one that ends it: 1, `min_tokens`: 3",
        id="min_tokens of another answer",
    ),
    pytest.param(
        {"max_tokens": 11, "n": 2, **WARM},
        {**STOP, "others": (further((1, 2), **LENGTH),)},
        "ended early",
        "answer 2 of 2\n`finish_reason`: length, after 2 of 11 tokens",
        id="another answer ends before it must",
    ),
    pytest.param(
        {"n": 2, **WARM},
        {**STOP, "others": (further(finish_reason="error"),)},
        "ended early",
        "answer 2 of 2\nthe engine gave the request up",
        id="error in another answer",
    ),
    pytest.param(
        {"n": 3, **WARM},
        {**STOP, "others": (further(),)},
        "answers missing",
        "answers: 2, `n`: 3",
        id="n",
    ),
    pytest.param(
        {},
        {**STOP, "others": (further(),)},
        "too many answers",
        "answers: 2, `n`: 1",
        id="one asked",
    ),
    pytest.param({}, {"finish_reason": "abort"}, "ended early", "abort", id="aborted"),
    pytest.param({}, {"finish_reason": "error"}, "ended early", "error", id="error"),
]


@pytest.mark.parametrize(("request_fields", "said", "kind", "fact"), BROKEN)
def test_broken(request_fields: dict[str, Any], said: dict[str, Any], kind: str, fact: str) -> None:
    defect = found(request_fields, said)
    assert defect is not None
    assert (defect.kind, defect.prompt_id) == (kind, "one")
    assert fact in "\n".join(defect.facts)
    assert defect.hint


@pytest.mark.parametrize(
    ("request_fields", "said"),
    [({"max_tokens": 11}, LENGTH), ({"min_tokens": 11}, LENGTH)],
)
def test_what_an_unknown_window_may_have_cut(
    request_fields: dict[str, Any], said: dict[str, Any]
) -> None:
    assert found(request_fields, said) is not None
    assert found(request_fields, said, window=None) is None


def test_too_few_tokens_whatever_the_window() -> None:
    assert found({"min_tokens": 11}, STOP, window=None) is not None


@pytest.mark.parametrize(
    ("baseline", "speculative", "told"),
    [
        ("red", "red", None),
        (
            "red",
            "red; green",
            "on the speculative engine; the baseline engine's answer is as asked",
        ),
        (
            "red; green",
            "red",
            "on the baseline engine; the speculative engine's answer is as asked",
        ),
        ("red; green", "red; green", "on both engines; of the speculative one's answer:"),
        ("blue", "red; green", "on the speculative engine; the baseline engine's answer: bad word"),
        ("blue", "red", "on the baseline engine; the speculative engine's answer is as asked"),
        ("red", "blue", "on the speculative engine; the baseline engine's answer is as asked"),
        ("blue", "blue", "on both engines; of the speculative one's answer:"),
    ],
)
def test_whose_it_is(baseline: str, speculative: str, told: str | None) -> None:
    asked = prompt(stop=";", bad_words=["blue"])
    told_too = {"bad_words_token_ids": ((ord("b"), ord("l")),)}
    own, other = (
        generation("one", tuple(map(ord, text)), text=text, **told_too)
        for text in (baseline, speculative)
    )
    judged = judge_honoured(asked, baseline=own, speculative=other, max_model_len=None)
    assert (judged and judged.facts[0]) == told


@pytest.mark.parametrize(
    ("request_fields", "says"),
    [
        ({}, False),
        ({"max_tokens": 3, "temperature": 1, "logprobs": 2, "seed": 1}, False),
        *(
            ({field: value}, True)
            for field, value in {
                "stop": "x",
                "stop_token_ids": [1],
                "min_tokens": 1,
                "ignore_eos": True,
                "allowed_token_ids": [1],
                "bad_words": ["x"],
                "n": 2,
                "context_left": 4,
            }.items()
        ),
    ],
)
def test_declares_anything(request_fields: dict[str, Any], says: bool) -> None:
    assert declares_anything(prompt(**request_fields)) is says


def test_the_text() -> None:
    defect = found({"stop_token_ids": [12]}, STOP)
    assert str(defect) == (
        "token after stop: `one`\n"
        "  token 2 is 12 of `stop_token_ids`; after it: 7 tokens\n"
        "hint: tokens accepted in one step must be cut after the one that stops"
    )
