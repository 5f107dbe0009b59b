"""The speedup of one prompt: of equal work alone, over all passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_specdec.generation import Pass
from pytest_specdec.prompt_speedup import prompt_times
from tests.said import generation, pair, walk


def passes(*answers: dict[str, Any]) -> Sequence[Pass]:
    return [walk(generation(**{"token_ids": (5, 6, 7), **each})) for each in answers]


def test_arrival_to_last_token() -> None:
    times = prompt_times(
        pair(
            passes({"ttft_ms": 20.0, "tpot_ms": 10.0}, {"ttft_ms": 20.0, "tpot_ms": 70.0}),
            passes({"ttft_ms": 20.0, "tpot_ms": 5.0}, {"ttft_ms": 30.0, "tpot_ms": 0.0}),
        ),
        "one",
    )
    assert times is not None
    assert times.baseline_ms == pytest.approx((40.0 * 160.0) ** 0.5)
    assert times.speculative_ms == pytest.approx(30.0)
    assert times.speedup == pytest.approx(80.0 / 30.0)


def test_an_answer_of_one_token_has_its_first_token_s_time() -> None:
    one = {"token_ids": (5,), "tpot_ms": None}
    times = prompt_times(
        pair(passes({**one, "ttft_ms": 8.0}), passes({**one, "ttft_ms": 4.0})), "one"
    )
    assert times is not None
    assert times.speedup == pytest.approx(2.0)


@pytest.mark.parametrize("other", [{"token_ids": (5, 6)}, {"ttft_ms": 0.0, "tpot_ms": 0.0}])
def test_unequal_work_and_no_time_have_none(other: dict[str, Any]) -> None:
    assert prompt_times(pair(passes({}), passes(other)), "one") is None
    assert prompt_times(pair(passes({}, other), passes({}, {})), "one") is None
