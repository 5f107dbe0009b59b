"""Answers cut around the place that counts, and what cannot be seen made visible."""

from __future__ import annotations

import pytest

from pytest_specdec.report.excerpt import MAX_AFTER, MAX_BEFORE, excerpt, visible


@pytest.mark.parametrize(
    ("text", "position", "parts"),
    [
        ("one two three", 4, ("one ", "two", " three")),
        ("one two three", 3, ("one", " two", " three")),
        ("one", 3, ("one", "", "")),
        ("one", 9, ("one", "", "")),
        ("", 0, ("", "", "")),
        ("one", None, ("one", "", "")),
        ("x" * 40, 10, ("x" * 10, "x" * 24, "x" * 6)),
    ],
)
def test_the_place_is_marked(text: str, position: int | None, parts: tuple[str, str, str]) -> None:
    found = excerpt(text, position)
    assert (found.before, found.marked, found.after) == parts
    assert (found.num_cut_before, found.num_cut_after) == (0, 0)


@pytest.mark.parametrize("position", [None, 0, 700, 4000, 9999])
def test_a_long_text_is_cut_and_nothing_is_lost_in_silence(position: int | None) -> None:
    text = "".join(f"{number:04} " for number in range(2000))
    found = excerpt(text, position)
    shown = found.before + found.marked + found.after
    assert found.num_cut_before + len(shown) + found.num_cut_after == len(text)
    assert text[found.num_cut_before :].startswith(shown)
    assert len(shown) <= MAX_BEFORE + MAX_AFTER + 30


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc é 漢 👩‍👩‍👧", "a\tb\nc é 漢 👩‍👩‍👧"),
        ("a\x00b\x1b[31m\r", "a\\u0000b\\u001b[31m\\u000d"),
        ("\u202eabc\u2066\ufeff\u200b", "\\u202eabc\\u2066\\ufeff\\u200b"),
        ("\ud800 \U000e0041", "\\ud800 \\ue0041"),
    ],
)
def test_what_cannot_be_seen(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(text).encode()
