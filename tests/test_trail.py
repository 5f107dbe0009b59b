from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_specdec.trail import NO_PREFIX, CommonPrefix, common_prefix, trail_of

TEN = tuple(range(10))


def test_a_trail_names_tokens_and_steps_at_each_checkpoint() -> None:
    trail = trail_of(TEN, (1, 4, 4, 1))
    marks = [mark.split(":")[:2] for mark in trail.split()]
    # The third step gave tokens 6 to 9: it had begun by the eighth.
    assert marks == [["8", "3"], ["10", "4"]]


@pytest.mark.parametrize(("token_ids", "num_marks"), [((), 0), ((1,), 1), (range(8), 1), (TEN, 2)])
def test_the_last_checkpoint_is_the_end(token_ids: range | tuple[int, ...], num_marks: int) -> None:
    trail = trail_of(tuple(token_ids), (1,) * len(token_ids))
    assert len(trail.split()) == num_marks


def test_the_same_answer_is_common_whole() -> None:
    old, new = trail_of(TEN, (1,) * 10), trail_of(TEN, (1, 4, 5))
    assert common_prefix(old, new) == CommonPrefix(num_tokens=10, old_steps=10, new_steps=3)


def test_answers_that_part_are_common_to_the_checkpoint_before() -> None:
    long = tuple(range(20))
    other = (*long[:12], 99, *long[13:])
    found = common_prefix(trail_of(long, (1,) * 20), trail_of(other, (2,) * 10))
    assert found == CommonPrefix(num_tokens=8, old_steps=8, new_steps=4)


def test_an_answer_that_goes_on_is_common_to_the_last_shared_checkpoint() -> None:
    found = common_prefix(trail_of(TEN, (1,) * 10), trail_of((*TEN, 11), (1,) * 11))
    assert found == CommonPrefix(num_tokens=8, old_steps=8, new_steps=8)


@pytest.mark.parametrize("other", ["", trail_of((7, 7, 7), (1, 1, 1))])
def test_nothing_may_be_common(other: str) -> None:
    assert common_prefix(trail_of((1, 2, 3), (1, 1, 1)), other) == NO_PREFIX


def test_prefixes_add_up() -> None:
    one = CommonPrefix(num_tokens=8, old_steps=4, new_steps=5)
    assert one + one == CommonPrefix(num_tokens=16, old_steps=8, new_steps=10)


def test_digests_know_where_a_token_ends() -> None:
    """1, 23 and 12, 3 are other answers."""
    assert common_prefix(trail_of((1, 23), (1, 1)), trail_of((12, 3), (1, 1))) == NO_PREFIX


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=30),
    st.integers(0, 60),
    st.lists(st.integers(1, 5), min_size=60, max_size=60),
)
def test_steps_of_a_beginning_do_not_know_what_came_after(
    steps: list[int], shared: int, others: list[int]
) -> None:
    """Two runs with the same steps up to some token, and any after it."""
    ends = list(accumulate(steps))
    same = [step for step, end in zip(steps, ends, strict=True) if end <= shared]
    other_steps = [*same, *others]
    num_shared = sum(same)
    old_ids = tuple(range(sum(steps)))
    new_ids = (*old_ids[:num_shared], *range(1000, 1000 + sum(others)))
    found = common_prefix(trail_of(old_ids, steps), trail_of(new_ids, other_steps))
    assert found.num_tokens <= num_shared or new_ids == old_ids
    assert found.old_steps == found.new_steps
