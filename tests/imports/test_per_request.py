"""What vLLM and AIPerf tell of each request, added up over a run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.imports.reading import of_json, of_lines, read, refused

FIRST = {
    "mean_acceptance_length": 1.2,
    "draft_acceptance_rate": 0.0667,
    "acceptance_histogram": [36, 2, 0, 2],
    "num_spec_steps": 40,
    "num_accepted_draft_tokens": 8,
    "num_draft_tokens": 120,
    "num_spec_tokens": 3,
}
SECOND = {
    "acceptance_histogram": {"0": 4, "3": 6},
    "num_spec_steps": 10,
    "num_accepted_draft_tokens": 18,
    "num_draft_tokens": 30,
    "num_spec_tokens": 3,
}


def response(told: Any, **facts: Any) -> dict[str, Any]:
    return {"id": "r", "metrics": {"speculative_decoding": told}, **facts}


def test_one_response() -> None:
    run = read(of_json(response(FIRST, usage={"completion_tokens": 48})))
    assert (run.num_drafts, run.num_draft_tokens, run.num_accepted_tokens) == (40, 120, 8)
    assert (run.acceptance_rate, run.mean_acceptance_length) == (8 / 120, 1.2)
    assert run.num_accepted_tokens_per_pos == (4, 2, 2)
    assert (run.num_requests, run.num_output_tokens, run.notes) == (1, 48, ())


def test_requests_are_added_up() -> None:
    silent = response(None)
    run = read(of_lines([response(FIRST), response(SECOND), silent]))
    assert (run.num_drafts, run.num_draft_tokens, run.num_accepted_tokens) == (50, 150, 26)
    assert run.num_accepted_tokens_per_pos == (10, 8, 8)
    assert (run.num_requests, run.num_output_tokens) == (3, None)
    assert run.notes == ("1 of 3 requests tell nothing of speculation",)


def test_aiperf_s_records() -> None:
    record = {"metadata": {}, "metrics": {}, "spec_decode_acceptance": {"engine": "vllm", **SECOND}}
    run = read(of_lines([record, record]))
    assert (run.num_drafts, run.num_accepted_tokens_per_pos) == (20, (12, 12, 12))
    assert run.mean_acceptance_length == 2.8


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"num_spec_steps": 41}, "`acceptance_histogram` holds 40 drafts, but 41 are told"),
        ({"num_accepted_draft_tokens": 9}, "holds 8 accepted tokens, but 9 are told"),
        ({"acceptance_histogram": 7}, "`acceptance_histogram` is neither a list nor a table: 7"),
        ({"acceptance_histogram": {"x": 1}}, "has a key that is no number of tokens: 'x'"),
        ({"acceptance_histogram": {"9999": 1}}, "has a key that is no number of tokens: '9999'"),
        ({"acceptance_histogram": [-1]}, "`acceptance_histogram` is below 0: -1"),
        ({"draft_acceptance_rate": 8.33}, "acceptance rate is told as 8.33"),
        ({"num_draft_tokens": None, "draft_acceptance_rate": 1.5}, "acceptance rate is 1.5"),
        ({"num_spec_tokens": 7}, "`run.jsonl`: its requests differ in `num_spec_tokens`: 3, 7"),
    ],
)
def test_requests_that_cannot_be(change: dict[str, Any], fact: str) -> None:
    message = refused(of_lines([response(SECOND), response({**FIRST, **change})]))
    assert fact in message
