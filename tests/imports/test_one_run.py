"""One run of vLLM 0.32.0 as its benchmark, its `/metrics`, its responses and its log told it.

A server with n-gram speculation on a CPU answered three requests, then `vllm bench serve` sent
four. The texts are what vLLM wrote, less the lines and keys that are not read.
"""

from __future__ import annotations

import json

import pytest

from pytest_specdec.imports.imported import ImportedMeasurement
from pytest_specdec.imports.prometheus import subtract
from tests.imports.reading import document, of_json, of_lines, read
from tests.imports.test_prometheus import scrape

BENCH_JSON = """{"label": null, "request_rate": "inf", "max_concurrency": 2,
"duration": 24.088754088000314, "completed": 4, "total_output_tokens": 192,
"request_throughput": 0.16605258974321876, "request_goodput": null,
"output_throughput": 7.9705243076745, "spec_decode_acceptance_rate": 71.03448275862068,
"spec_decode_acceptance_length": 3.710526315789474, "spec_decode_num_drafts": 38,
"spec_decode_draft_tokens": 145, "spec_decode_accepted_tokens": 103,
"spec_decode_per_position_acceptance_rates": [0.8947368421052632, 0.7894736842105263,
0.5263157894736842, 0.5], "median_ttft_ms": 1054.062658499788}"""
BENCH_TEXT = """\
============ Serving Benchmark Result ============
Successful requests:                     4         \n\
Maximum request concurrency:             2         \n\
Benchmark duration (s):                  24.09     \n\
Total generated tokens:                  192       \n\
Output token throughput (tok/s):         7.97      \n\
---------------Time to First Token----------------
Median TTFT (ms):                        1054.06   \n\
---------------Speculative Decoding---------------
Acceptance rate (%):                     71.03     \n\
Acceptance length:                       3.71      \n\
Drafts:                                  38        \n\
Draft tokens:                            145       \n\
Accepted tokens:                         103       \n\
Per-position acceptance (%):
  Position 0:                            89.47     \n\
  Position 1:                            78.95     \n\
  Position 2:                            52.63     \n\
  Position 3:                            50.00     \n\
==================================================
"""
BEFORE = scrape(drafts="2.0", draft_tokens="8.0", accepted="1.0", per_pos=(1.0, 0.0, 0.0, 0.0))
MIDDLE = scrape(drafts="25.0", draft_tokens="100.0", accepted="5.0", per_pos=(4.0, 1.0, 0.0, 0.0))
AFTER = scrape(
    drafts="63.0", draft_tokens="245.0", accepted="108.0", per_pos=(38.0, 31.0, 20.0, 19.0)
)
LOG = (
    "(APIServer pid=7) INFO 11-30 11:58:44 [metrics.py:120] SpecDecoding metrics: Mean acceptance "
    "length: 1.38, Accepted throughput: 0.60 tokens/s, Drafted throughput: 6.40 tokens/s, "
    "Accepted: 3 tokens, Drafted: 32 tokens, "
    "Per-position acceptance rate: 0.250, 0.125, 0.000, 0.000, "
    "Avg Draft acceptance rate: 9.4%\n"
    "(APIServer pid=7) INFO 11-30 11:59:59 [metrics.py:120] SpecDecoding metrics: Mean acceptance "
    "length: 3.87, Accepted throughput: 8.57 tokens/s, Drafted throughput: 10.57 tokens/s, "
    "Accepted: 43 tokens, Drafted: 53 tokens, "
    "Per-position acceptance rate: 1.000, 0.867, 0.533, 0.467, "
    "Avg Draft acceptance rate: 81.1%\n"
)
COUNTS = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")


def counts(run: ImportedMeasurement) -> list[int | None]:
    return [getattr(run, name) for name in COUNTS]


def growth(after: str, before: str) -> ImportedMeasurement:
    (run,) = subtract(document(after), document(before))
    return run


def test_the_benchmark_and_the_scrapes_around_it() -> None:
    result, text = read(of_json(json.loads(BENCH_JSON))), read(document(BENCH_TEXT))
    grown = growth(AFTER, MIDDLE)
    assert counts(result) == counts(text) == counts(grown) == [38, 145, 103]
    for run in (result, text, grown):
        assert run.acceptance_rate == 103 / 145
        assert run.mean_acceptance_length == 1 + 103 / 38
        assert run.acceptance_rate_per_pos == pytest.approx(
            (34 / 38, 30 / 38, 20 / 38, 19 / 38), abs=0.0001
        )
    assert result.num_output_tokens == text.num_output_tokens == 192
    assert result.ttft.median_ms == pytest.approx(text.ttft.median_ms, abs=0.01)


def test_the_requests_and_the_scrapes_around_them() -> None:
    told = [([0, 0, 0, 0, 0], 0, 0), ([16, 1, 1, 0, 0], 18, 3), ([4, 1, 0, 0, 0], 5, 1)]
    responses = [
        {
            "usage": {"completion_tokens": 25},
            "metrics": {
                "speculative_decoding": {
                    "mean_acceptance_length": 1 + accepted / (drafts or 1),
                    "draft_acceptance_rate": accepted / (4 * drafts or 1),
                    "acceptance_histogram": histogram,
                    "num_spec_steps": drafts,
                    "num_accepted_draft_tokens": accepted,
                    "num_draft_tokens": 4 * drafts,
                    "num_spec_tokens": 4,
                    "per_step_accepted": None,
                }
            },
        }
        for histogram, drafts, accepted in told
    ]
    requests, grown = read(of_lines(responses)), growth(MIDDLE, BEFORE)
    assert counts(requests) == counts(grown) == [23, 92, 4]
    assert requests.num_accepted_tokens_per_pos == grown.num_accepted_tokens_per_pos
    assert requests.num_requests == 3


def test_the_log() -> None:
    run = read(document(LOG))
    assert counts(run) == [8 + 15, 32 + 53, 3 + 43]
    assert run.num_accepted_tokens_per_pos == (2 + 15, 1 + 13, 8, 7)
