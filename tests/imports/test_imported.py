"""What follows from counts, and what counts and told figures may not say."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.errors import ImportFileError
from pytest_specdec.imports.fields import Fields
from pytest_specdec.imports.imported import ImportedMeasurement, completed

COUNTS = {"num_drafts": 50, "num_draft_tokens": 200, "num_accepted_tokens": 100}


def complete(**facts: Any) -> ImportedMeasurement:
    return completed(ImportedMeasurement(label="run", **facts), Fields(file="run.json"))


def refused(**facts: Any) -> str:
    with pytest.raises(ImportFileError) as caught:
        complete(**facts)
    return str(caught.value)


def test_counts_make_the_rates() -> None:
    whole = complete(**COUNTS, num_accepted_tokens_per_pos=(45, 35, 15, 5))
    assert (whole.acceptance_rate, whole.mean_acceptance_length) == (0.5, 3.0)
    assert whole.acceptance_rate_per_pos == (0.9, 0.7, 0.3, 0.1)


def test_counts_win_over_rounded_figures() -> None:
    whole = complete(
        num_drafts=6318,
        num_draft_tokens=12636,
        num_accepted_tokens=8540,
        acceptance_rate=0.6758,
        mean_acceptance_length=2.35,
    )
    assert whole.acceptance_rate == 8540 / 12636
    assert whole.mean_acceptance_length == 1 + 8540 / 6318


def test_what_is_not_told_stays_unknown() -> None:
    assert complete() == ImportedMeasurement(label="run")
    drafts = complete(num_drafts=188)
    assert (drafts.num_accepted_tokens, drafts.mean_acceptance_length) == (None, None)
    assert complete(acceptance_rate=0.5).acceptance_rate == 0.5
    no_drafts = complete(num_draft_tokens=200, num_accepted_tokens=100)
    assert (no_drafts.acceptance_rate, no_drafts.mean_acceptance_length) == (0.5, None)


def test_nothing_drafted_has_no_rate() -> None:
    none = {"num_drafts": 0, "num_draft_tokens": 0, "num_accepted_tokens": 0}
    whole = complete(**none, acceptance_rate=0.0, mean_acceptance_length=1.0)
    assert (whole.acceptance_rate, whole.mean_acceptance_length) == (None, None)
    assert (whole.num_drafts, whole.notes) == (0, ("nothing was drafted",))
    assert "7 tokens were accepted where nothing was drafted" in refused(
        num_drafts=0, num_accepted_tokens=7
    )


@pytest.mark.parametrize(
    ("facts", "fact"),
    [
        (
            {**COUNTS, "acceptance_rate": 50.0},
            "acceptance rate is told as 50, and the counts make 0.5",
        ),
        (
            {**COUNTS, "mean_acceptance_length": 2.0},
            "mean acceptance length is told as 2, and the counts make 3",
        ),
        ({**COUNTS, "num_accepted_tokens": 201}, "acceptance rate is 1.005, more than all"),
        ({"mean_acceptance_length": 0.0}, "mean acceptance length is 0, below the 1 of plain"),
        ({"acceptance_rate_per_pos": (85.2, 51.7)}, "at a position is 85.2, more than all drafts"),
        ({"acceptance_rate_per_pos": (0.5, 0.6)}, "rates rise with the position: 0.5, 0.6"),
        (
            {**COUNTS, "num_accepted_tokens_per_pos": (45, 35, 15, 1)},
            "per position sum to 1.92, but 2 tokens",
        ),
        ({**COUNTS, "acceptance_rate_per_pos": (0.9, 0.9, 0.9)}, "sum to 2.7, but 2 tokens"),
    ],
)
def test_what_cannot_be(facts: dict[str, Any], fact: str) -> None:
    message = refused(**facts)
    assert message.startswith("`run.json`: ")
    assert fact in message
    assert "\nhint: " in message


def test_rates_of_some_positions_only() -> None:
    rates = (0.9, 0.7)  # of four
    assert complete(**COUNTS, acceptance_rate_per_pos=rates).acceptance_rate_per_pos == rates
