"""Seeded answers repeat themselves, each engine by itself."""

from __future__ import annotations

import pytest

from pytest_specdec.checks.replay import check_replay
from tests.said import generation, pair, walk

Ids = tuple[int, ...]


@pytest.mark.parametrize(
    ("baseline", "speculative", "facts"),
    [
        pytest.param([(1, 2)], [(3, 4)], None, id="one pass; engines may differ"),
        pytest.param([(1, 2)] * 3, [(3, 4)] * 3, None, id="repeated"),
        pytest.param(
            [(1, 2)] * 3,
            [(3, 4), (3, 4), (3, 5)],
            (
                "the speculative engine's passes 1 and 3 differ first at token 1",
                "token 4; then: token 5",
            ),
            id="speculative",
        ),
        pytest.param(
            [(1, 2), (1,)],
            [(3, 4)] * 2,
            (
                "the baseline engine's passes 1 and 2 differ first at token 1",
                "the end of the answer",
            ),
            id="baseline",
        ),
    ],
)
def test_passes(baseline: list[Ids], speculative: list[Ids], facts: tuple[str, str] | None) -> None:
    runs = pair(
        [walk(generation("one", ids)) for ids in baseline],
        [walk(generation("one", ids)) for ids in speculative],
    )
    found = check_replay(runs, "one")
    if facts is None:
        assert found is None
    else:
        assert found is not None
        assert (found.kind, found.prompt_id) == ("not repeated", "one")
        assert all(fact in told for fact, told in zip(facts, found.facts, strict=True))
