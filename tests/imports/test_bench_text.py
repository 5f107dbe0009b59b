"""What `vllm bench serve` prints, between other output, several times, cut off."""

from __future__ import annotations

import pytest

from tests.imports.reading import document, read, read_all, refused

HEAD = "============ Serving Benchmark Result ============\n"
PLAIN = """\
Backend:                                 vllm
Successful requests:                     1319
Maximum request concurrency:             64
Benchmark duration (s):                  275.18
Total generated tokens:                  453000
Output token throughput (tok/s):         1646.15
---------------Time to First Token----------------
Mean TTFT (ms):                          401.50
Median TTFT (ms):                        363.58
P99 TTFT (ms):                           1437.07
-----Time per Output Token (excl. 1st token)------
Median TPOT (ms):                        37.18
---------------Inter-token Latency----------------
P99 ITL (ms):                            223.44
"""
DRAFTED = """\
---------------Speculative Decoding---------------
Acceptance rate (%):                     62.50
Acceptance length:                       2.25
Drafts:                                  100
Draft tokens:                            200
Accepted tokens:                         125
Per-position acceptance (%):
  Position 0:                            75.00
  Position 1:                            50.00
"""
END = "==================================================\n"


def test_a_block_with_speculation() -> None:
    run = read(document("INFO started\n" + HEAD + PLAIN + DRAFTED + END, name="gsm8k.txt"))
    assert run.label == "gsm8k"
    assert (run.num_drafts, run.num_draft_tokens, run.num_accepted_tokens) == (100, 200, 125)
    assert (run.acceptance_rate, run.mean_acceptance_length) == (0.625, 2.25)
    assert run.acceptance_rate_per_pos == (0.75, 0.5)
    assert (run.num_requests, run.concurrency, run.num_output_tokens) == (1319, 64, 453000)
    assert (run.duration_s, run.output_tokens_per_s) == (275.18, 1646.15)
    assert (run.ttft.mean_ms, run.ttft.median_ms, run.ttft.p99_ms) == (401.5, 363.58, 1437.07)
    assert (run.tpot.median_ms, run.tpot.mean_ms, run.itl.p99_ms) == (37.18, None, 223.44)


def test_several_blocks() -> None:
    block = HEAD + PLAIN + END
    runs = read_all(document(block + "\n" + HEAD + PLAIN + DRAFTED + END))
    assert [run.label for run in runs] == ["run 1", "run 2"]
    assert [run.acceptance_rate for run in runs] == [None, 0.625]


@pytest.mark.parametrize("text", [HEAD + PLAIN, HEAD + PLAIN + HEAD + PLAIN + END])
def test_a_block_that_is_cut_off(text: str) -> None:
    message = refused(document(text))
    assert message.startswith("`run.txt`: block at line 1: is cut off: no rule of `=` ends it")


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ("62.50", "0.625", "acceptance rate is told as 0.00625"),
        ("Drafts:                                  100", "Drafts: -5", "`Drafts` is below 0"),
        ("Position 1:", "Position 2:", "lacks position 1"),
        ("37.18", "nan", "`Median TPOT (ms)` is not a finite number"),
    ],
)
def test_wrong_figures(old: str, new: str, fact: str) -> None:
    text = HEAD + PLAIN + DRAFTED + END
    assert old in text
    assert fact in refused(document(text.replace(old, new)))
