"""Counters of an offline run, as text that vLLM's example prints and as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from tests.imports.reading import document, of_json, of_lines, read, read_all, refused

RULE = "-" * 50 + "\n"
TEXT = (
    "Processed prompts: 100%\n"
    + RULE
    + """\
total_num_output_tokens: 400
num_drafts: 100
num_draft_tokens: 300
num_accepted_tokens: 150
mean acceptance length: 2.50
"""
    + RULE
    + """\
acceptance at token 0: 0.75
acceptance at token 1:0.50
acceptance at token 2: 0.25
"""
)
ROW: dict[str, Any] = {
    "method": "eagle3",
    "total_num_output_tokens": 400,
    "num_drafts": 100,
    "num_draft_tokens": 300,
    "num_accepted_tokens": 150,
    "mean_acceptance_length": 2.5,
    "per_pos": [0.75, 0.5, 0.25],
}


@pytest.mark.parametrize("source", [document(TEXT), of_json(ROW)], ids=["text", "json"])
def test_a_run(source: Any) -> None:
    run = read(source)
    assert (run.num_drafts, run.num_draft_tokens, run.num_accepted_tokens) == (100, 300, 150)
    assert (run.acceptance_rate, run.mean_acceptance_length) == (0.5, 2.5)
    assert run.acceptance_rate_per_pos == (0.75, 0.5, 0.25)
    assert (run.label, run.num_output_tokens) == ("run", 400)


def test_several_runs() -> None:
    runs = read_all(of_lines([ROW, {**ROW, "per_pos": None}], name="offline.jsonl"))
    assert [run.label for run in runs] == ["offline 1", "offline 2"]
    assert runs[1].acceptance_rate_per_pos is None


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (TEXT + TEXT, "line 14: `total_num_output_tokens` stands there twice"),
        (TEXT.replace("2.50", "1.75"), "mean acceptance length is told as 1.75, and the counts"),
        (TEXT.replace("token 1", "token 4"), "lacks position 1"),
        (
            TEXT.replace("2.50", "2.5.0"),
            "line 7: `mean acceptance length` is not a number: '2.5.0'",
        ),
        (TEXT.replace("num_accepted_tokens: 150\n", ""), "no measurement in a known format"),
    ],
)
def test_text_that_cannot_be(text: str, fact: str) -> None:
    assert fact in refused(document(text))


def test_a_row_of_something_else() -> None:
    message = refused(of_lines([ROW, {"num_drafts": 1}]))
    assert message.startswith("`run.jsonl`: run 2: lacks one of `num_drafts`, ")
