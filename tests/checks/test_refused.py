"""What speculation cannot honour is refused; that alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_specdec.checks.refused import check_refused
from pytest_specdec.generation import Refusal, Role
from tests.said import pair, prompt, walk

NOBODY = "not asked"


@pytest.mark.parametrize(
    ("baseline", "speculative", "kind", "fact"),
    [
        (None, "no min_p", None, ""),
        (None, None, "not refused", "the speculative engine answered a request with `min_p`"),
        ("no", None, "not refused", "`min_p`"),
        ("no such field", "no", "refused without speculation", "no such field"),
        (NOBODY, "no", "not asked", "the baseline engine"),
        (None, NOBODY, "not asked", "the speculative engine"),
        (NOBODY, NOBODY, "not asked", "the baseline and the speculative engine"),
    ],
)
def test_refusals(
    baseline: str | None, speculative: str | None, kind: str | None, fact: str
) -> None:
    said: tuple[tuple[Role, str | None], ...] = (
        ("baseline", baseline),
        ("speculative", speculative),
    )
    refusals = tuple(
        Refusal(role=role, prompt_id="one", said=each) for role, each in said if each != NOBODY
    )
    runs = replace(pair([walk()], [walk()]), refusals=refusals)
    found = check_refused(prompt(min_p=0.1, temperature=1), runs)
    assert (found and found.kind) == kind
    if found is not None:
        assert fact in "\n".join(found.facts)
        assert found.prompt_id == "one"


def test_another_prompts_refusal_says_nothing() -> None:
    refusals = (Refusal(role="speculative", prompt_id="two", said="no"),)
    found = check_refused(prompt(min_p=0.1), replace(pair([walk()], [walk()]), refusals=refusals))
    assert found is not None
    assert found.kind == "not asked"


@pytest.mark.parametrize(
    ("baseline", "speculative", "kind"),
    [("no", "no", None), (None, "no", None), ("no", None, "not refused")],
)
def test_a_baseline_engine_that_speculates_may_refuse_as_well(
    baseline: str | None, speculative: str | None, kind: str | None
) -> None:
    refusals = (
        Refusal(role="baseline", prompt_id="one", said=baseline),
        Refusal(role="speculative", prompt_id="one", said=speculative),
    )
    runs = replace(pair([walk()], [walk()]), refusals=refusals)
    found = check_refused(prompt(min_p=0.1), runs, is_against_speculation=True)
    assert (found and found.kind) == kind
