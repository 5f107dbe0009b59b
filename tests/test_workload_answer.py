from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_specdec.workload_answer import workload_answer
from pytest_specdec.worth_it import Answer, PointGain, WorkloadAnswer
from tests.gained import gained, point


def answered(points: Sequence[PointGain]) -> WorkloadAnswer:
    return workload_answer(points, min_gain=1.0)


UNSURE = gained(2, 1.01)
OTHER = gained(2, answer="not identical")
MISSING = gained(2, None)


@pytest.mark.parametrize(
    ("points", "answer", "text"),
    [
        pytest.param([gained(1), gained(4)], "worth it", "worth it", id="all gain"),
        pytest.param([gained(1), UNSURE, MISSING], "worth it", "worth it", id="all decided gain"),
        pytest.param([gained(1, 0.8), gained(4, 0.7)], "not worth it", "not worth it", id="none"),
        pytest.param([gained(1, 0.8), UNSURE], "not worth it", "not worth it", id="none decided"),
        pytest.param([UNSURE], "undecided", "undecided", id="undecided"),
        pytest.param([MISSING], "undecided", "undecided", id="unmeasured"),
        pytest.param([OTHER, gained(1, 1.01)], "not worth it", "not worth it", id="other answers"),
        pytest.param(
            [gained(1), gained(4, 0.8)], "only for", "only for 1 in flight", id="one gains"
        ),
        pytest.param([gained(1), OTHER], "only for", "only for 1 in flight", id="one is identical"),
        pytest.param(
            [gained(1), UNSURE, gained(4), gained(8, 0.8)],
            "only for",
            "only for up to 4 in flight",
            id="an undecided one between",
        ),
        pytest.param(
            [gained(1), UNSURE, gained(4, 0.8)],
            "only for",
            "only for 1 in flight",
            id="an undecided one at the edge",
        ),
        pytest.param(
            [gained(1, 0.8), gained(1)], "worth it", "worth it", id="the later of two at one point"
        ),
        pytest.param(
            [gained(1), gained(4, 0.5, changes={"k": 1})], "worth it", "worth it", id="a variant"
        ),
    ],
)
def test_answers(points: Sequence[PointGain], answer: Answer, text: str) -> None:
    found = answered(points)
    assert (found.workload, found.answer, found.text) == ("sql", answer, text)


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        pytest.param([gained(1, reason="that is why")], "that is why", id="one point"),
        pytest.param(
            [gained(2, 1.2, reason="b"), gained(1, 1.6, reason="a"), gained(4, 1.4)],
            "most at in_flight=1 (1.6): a; least at in_flight=2 (1.2): b",
            id="the ends",
        ),
        pytest.param(
            [gained(1, 1.6, reason="a"), gained(2, 1.01, reason="too near 1")],
            "most at in_flight=1 (1.6): a; undecided at in_flight=2: too near 1",
            id="one decided",
        ),
        pytest.param(
            [
                *(gained(load, 1.01, reason="near") for load in (1, 2, 4, 8, 16)),
                gained(32, answer="not identical", reason="differ"),
                gained(64, None, reason="nothing drafted"),
            ],
            "not identical at in_flight=32: differ; "
            "undecided at in_flight=1 and in_flight=2 and in_flight=4 and 2 more: near; "
            "unmeasured at in_flight=64: nothing drafted",
            id="none decided",
        ),
        pytest.param(
            [gained(1, changes={"k": 1})],
            "nothing was measured of the profile itself",
            id="a variant alone",
        ),
        pytest.param(
            [gained(1, 1.2, reason="a"), gained(1, 1.6, changes={"k": 1})],
            "a; best with `k` = 1 (1.6)",
            id="another way is better",
        ),
    ],
)
def test_reasons(points: Sequence[PointGain], reason: str) -> None:
    assert answered(points).reason == reason


def test_break_even_by_context() -> None:
    gains = {(1, 128): 2.0, (4, 128): 1.5, (1, 512): 2.0, (4, 512): 0.5, (1, 1024): 0.9}
    found = answered([gained(point(*at), gain) for at, gain in gains.items()]).break_even
    assert [*found] == [128, 512]
    assert found[128].text == "over 4"
    assert found[512].value == pytest.approx(2)


def test_break_even_of_a_workload_without_context() -> None:
    found = answered([gained(1, 2.0, width=1.0), gained(4, 0.5, width=1.0)]).break_even
    assert {context: each.text for context, each in found.items()} == {None: "about 2 (2 to 2)"}


def test_break_even_is_at_the_lowest_temperature_and_says_so() -> None:
    points = [
        gained(point(load, None, temperature), gain)
        for load, temperature, gain in ((1, 1, 0.5), (4, 1, 0.4), (4, 0, 1.5), (1, 0, 2.0))
    ]
    assert answered(points).break_even[None].text == "over 4 at temperature 0"


def test_break_even_takes_right_answers_of_the_profile_itself() -> None:
    points = [
        gained(1, 2.0),
        gained(2, 0.1, answer="not identical"),
        gained(4, 1.5),
        gained(4, 0.1, changes={"k": 1}),
    ]
    assert answered(points).break_even[None].text == "over 4"
