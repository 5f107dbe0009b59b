"""Reference lengths by model, mode and number of speculative tokens."""

from __future__ import annotations

import pytest

from tests.imports.reading import document, read_all, refused

TEXT = """\
# measured somewhere
#
some-model-0.5b:
  thinking_on:  # a comment
    1: 1.84
    2: 2.5
  thinking_off:
    1: 2
other:
  thinking_on:
    8: 3.11
"""


def test_lengths() -> None:
    assert [(each.label, each.mean_acceptance_length) for each in read_all(document(TEXT))] == [
        ("some-model-0.5b thinking_on num_speculative_tokens 1", 1.84),
        ("some-model-0.5b thinking_on num_speculative_tokens 2", 2.5),
        ("some-model-0.5b thinking_off num_speculative_tokens 1", 2.0),
        ("other thinking_on num_speculative_tokens 8", 3.11),
    ]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (TEXT + "    9: x\n", "line 12: is no model, mode or length: '    9: x'"),
        (TEXT + "    8: 3\n", "num_speculative_tokens 8` stands there twice"),
        (TEXT.replace("1.84", "0.84"), "line 5: mean acceptance length is 0.84, below the 1"),
        (TEXT + "third:\n    1: 2\n", "line 13: is no model, mode or length"),
        ("a: 1\n", "no measurement in a known format"),
    ],
)
def test_what_is_none(text: str, fact: str) -> None:
    assert fact in refused(document(text))
