"""However a window's figures were rounded, the drafts it had are among those found possible."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_specdec.imports.log_windows import Window, drafts_of


@given(
    st.integers(1, 2000).flatmap(
        lambda drafts: st.tuples(
            st.just(drafts), st.lists(st.integers(0, drafts), min_size=1, max_size=8)
        )
    ),
    st.integers(0, 500),
)
def test_the_true_number_is_possible(given: tuple[int, list[int]], num_forbidden: int) -> None:
    num_drafts, counts = given
    per_pos = sorted(counts, reverse=True)
    accepted = sum(per_pos)
    window = Window(
        num_accepted_tokens=accepted,
        num_draft_tokens=max(accepted, num_drafts * len(per_pos) - num_forbidden),
        acceptance_rate=None,
        mean_acceptance_length=float(f"{1 + accepted / num_drafts:.2f}"),
        acceptance_rate_per_pos=tuple(float(f"{each / num_drafts:.3f}") for each in per_pos),
    )
    drafts = drafts_of(window)
    assert drafts is not None
    assert drafts.least <= num_drafts
    assert num_drafts <= drafts.most or not drafts.is_bounded
    if drafts.per_pos is not None:
        assert drafts.per_pos == tuple(per_pos)
