from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec.counters import DraftCounters
from pytest_specdec.engines.step_costs import StepCosts
from pytest_specdec.expected_gain import expected_gain, expected_gains
from pytest_specdec.measurement import Measurement
from tests.measured import counters, measurement, speedup


@pytest.mark.parametrize(
    ("alpha", "k", "c", "gain"),
    [
        # The first three are of the paper's Table 1, for drafts that cost nothing.
        pytest.param(0.6, 2, 0.0, 1.96, id="0.6 and 2"),
        pytest.param(0.8, 5, 0.0, 3.69, id="0.8 and 5"),
        pytest.param(0.9, 10, 0.0, 6.86, id="0.9 and 10"),
        pytest.param(0.8, 5, 0.1, 2.46, id="drafts at a tenth of a step"),
        pytest.param(0.0, 5, 0.1, 1 / 1.5, id="nothing accepted"),
    ],
)
def test_it_is_the_formula_of_the_paper(alpha: float, k: int, c: float, gain: float) -> None:
    tokens = sum(alpha**at for at in range(k + 1))
    assert tokens == pytest.approx((1 - alpha ** (k + 1)) / (1 - alpha))
    found = expected_gain(tokens, draft_ratio=c, num_speculative_tokens=k)
    assert found == pytest.approx(gain, abs=0.005)


def test_a_verification_that_costs_more_stands_in_the_place_of_the_plain_step() -> None:
    found = expected_gain(3.0, draft_ratio=0.1, num_speculative_tokens=4, verification_ratio=1.6)
    assert found == pytest.approx(3.0 / (1.6 + 4 * 0.1))


def test_steps_without_a_draft_are_plain_steps() -> None:
    found = expected_gain(
        1.5, draft_ratio=0.5, num_speculative_tokens=4, verification_ratio=2.0, draft_share=0.25
    )
    assert found == pytest.approx(1.5 / (0.75 * 1 + 0.25 * (2.0 + 4 * 0.5)))


def test_a_shorter_draft_asks_for_less_to_be_verified_and_as_much_drafting() -> None:
    found = expected_gain(
        2.0, draft_ratio=0.1, num_speculative_tokens=4, verification_ratio=1.8, draft_fill=0.5
    )
    assert found == pytest.approx(2.0 / (1.4 + 4 * 0.1))


cost = st.floats(min_value=0, max_value=3)
share = st.floats(min_value=0, max_value=1)


@settings(deadline=None)
@given(c=cost, more=cost, v=cost, s=share, f=share)
def test_what_costs_more_gains_no_more(c: float, more: float, v: float, s: float, f: float) -> None:
    def gain(draft_ratio: float, verification_ratio: float) -> float:
        return expected_gain(
            2.0,
            draft_ratio=draft_ratio,
            num_speculative_tokens=3,
            verification_ratio=1 + verification_ratio,
            draft_share=s,
            draft_fill=f,
        )

    assert gain(c + more, v) <= gain(c, v)
    assert gain(c, v + more) <= gain(c, v)
    assert gain(c, v) <= 2.0


near: Any = pytest.approx
COSTS = StepCosts(draft_ratio=0.25, verification_ratio=1.5)
# Of 60 steps 30 had a draft, of 3 tokens of 4 on the mean.
HALF = measurement(
    drafts=counters(45, num_drafts=30, num_draft_tokens=90),
    speedup=speedup(1.5, 1.5, tokens_per_step=1.75),
)


def test_both_gains_of_a_measurement() -> None:
    assert expected_gains(HALF, 4, COSTS) == (
        near(1.75 / (1 + 0.5 * 1.0)),
        near(1.75 / (1 + 0.5 * (0.75 * 0.5 + 1.0))),
    )


def test_a_method_without_a_draft_model_costs_nothing_by_the_textbook() -> None:
    free = StepCosts(draft_ratio=0.0, verification_ratio=None)
    assert expected_gains(HALF, 4, free) == (near(1.75), None)


def test_no_more_than_every_step_has_a_draft() -> None:
    many = replace(HALF, drafts=counters(100, num_drafts=61, num_draft_tokens=244))
    assert expected_gains(many, 4, COSTS)[0] == pytest.approx(1.75 / 2)


@pytest.mark.parametrize(
    ("measured", "k", "costs"),
    [
        pytest.param(HALF, 4, None, id="no costs"),
        pytest.param(
            HALF, 4, StepCosts(draft_ratio=None, verification_ratio=1.5), id="no cost of a draft"
        ),
        pytest.param(HALF, None, COSTS, id="k not known"),
        pytest.param(replace(HALF, speedup=None), 4, COSTS, id="no speedup"),
        pytest.param(replace(HALF, drafts=None), 4, COSTS, id="drafts not counted"),
        pytest.param(replace(HALF, drafts=DraftCounters()), 4, COSTS, id="no drafts"),
        pytest.param(
            replace(HALF, speculative=replace(HALF.speculative, num_steps=0)),
            4,
            COSTS,
            id="no steps",
        ),
    ],
)
def test_nothing_is_expected_without(
    measured: Measurement, k: int | None, costs: StepCosts | None
) -> None:
    assert expected_gains(measured, k, costs) == (None, None)
