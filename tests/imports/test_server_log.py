"""Lines of vLLM's log in all forms that they have had, added up over time and processes."""

from __future__ import annotations

import pytest

from pytest_specdec.imports.prometheus import V0_NOTE
from tests.imports.reading import document, of_json, of_lines, read, refused

V0 = (
    "INFO metrics.py:489] Speculative metrics: Draft acceptance rate: 0.600, System efficiency: "
    "0.510, Number of speculative tokens: 4, Number of accepted tokens: {accepted}, Number of "
    "draft tokens: {drafted}, Number of emitted tokens: 34.\n"
)
# 100 drafts of 3 tokens; 75, 50 and 25 of them accepted.
NEWEST = (
    "(APIServer pid=1) INFO 04-09 11:17:53 [metrics.py:101] SpecDecoding metrics: Mean acceptance "
    "length: 2.50, Accepted throughput: 15.00 tokens/s, Drafted throughput: 30.00 tokens/s, "
    "Accepted: 150 tokens, Drafted: 300 tokens, Per-position acceptance rate: 0.750, 0.500, 0.250, "
    "Avg Draft acceptance rate: 50.0%\n"
)
# 40 drafts of 3 tokens; 38, 32 and 26 of them accepted.
OTHER = (
    "(APIServer pid=2) INFO 04-09 11:17:59 [metrics.py:101] SpecDecoding metrics: Mean acceptance "
    "length: 3.40, Accepted throughput: 9.60 tokens/s, Drafted throughput: 12.00 tokens/s, "
    "Accepted: 96 tokens, Drafted: 120 tokens, Per-position acceptance rate: 0.950, 0.800, 0.650, "
    "Avg Draft acceptance rate: 80.0%\n"
)
OF_0_9 = (
    "INFO 06-06 14:20:34 [metrics.py:86] SpecDecoding metrics: Draft acceptance rate: 50.0%, Mean "
    "acceptance length: 2.50, Accepted: 150 tokens, Drafted: 300 tokens, Per-position acceptance "
    "rate: 0.750, 0.500, 0.250\n"
)
OF_0_10_2 = OF_0_9.replace(
    "Accepted: 150",
    "Accepted throughput: 4.37 tokens/s, Drafted throughput: 4.92 tokens/s, Accepted: 150",
)
IN_0_8_3 = (
    "INFO 04-01 [metrics.py:70] SpecDecoding metrics: Draft acceptance rate: 50.0%, Accepted: 150 "
    "tokens, Drafted: 300 tokens\n"
)
FIRST_V1 = (
    "INFO 03-20 [metrics.py:60] Speculative metrics: Draft acceptance rate: 0.500, Number of "
    "accepted tokens: 150, Number of draft tokens: 300, \n"
)
BESIDE = (
    "INFO 10-26 [loggers.py:127] Engine 000: Avg generation throughput: 47.4 tokens/s\n"
    "=== Last 3 SpecDecoding metrics ===\n"
)


@pytest.mark.parametrize("line", [NEWEST, OF_0_10_2, OF_0_9])
def test_a_line_with_positions_gives_the_drafts_back(line: str) -> None:
    run = read(document(BESIDE + line, name="server.log"))
    assert (run.label, run.notes) == ("server", ())
    assert (run.num_drafts, run.num_draft_tokens, run.num_accepted_tokens) == (100, 300, 150)
    assert (run.acceptance_rate, run.mean_acceptance_length) == (0.5, 2.5)
    assert run.num_accepted_tokens_per_pos == (75, 50, 25)
    assert run.acceptance_rate_per_pos == (0.75, 0.5, 0.25)


@pytest.mark.parametrize("line", [IN_0_8_3, FIRST_V1])
def test_a_line_without_lengths(line: str) -> None:
    run = read(document(line))
    assert (run.num_draft_tokens, run.num_accepted_tokens) == (300, 150)
    assert (run.acceptance_rate, run.mean_acceptance_length, run.num_drafts) == (0.5, None, None)


def test_lines_are_added_up_in_tokens() -> None:
    run = read(document(NEWEST + BESIDE + OTHER))
    assert (run.num_drafts, run.num_draft_tokens, run.num_accepted_tokens) == (140, 420, 246)
    assert run.acceptance_rate == 246 / 420  # and not the mean of 0.5 and 0.8
    assert run.mean_acceptance_length == 1 + 246 / 140
    assert run.num_accepted_tokens_per_pos == (113, 82, 51)
    assert run.notes == ("the sum of 2 lines of the log",)


def test_colours_and_json_lines() -> None:
    coloured = document("\x1b[1;36m(APIServer pid=1)\x1b[0;0m " + NEWEST)
    lines = of_lines([{"message": NEWEST.strip()}, {"message": OTHER.strip()}])
    assert read(coloured).num_drafts == 100
    assert read(lines).num_drafts == 140
    assert "no measurement in a known format" in refused(of_json({"message": NEWEST}))


def test_drafts_of_varying_length() -> None:
    line = (
        "SpecDecoding metrics: Mean acceptance length: 1.90, Accepted throughput: 9.00 tokens/s, "
        "Drafted throughput: 11.00 tokens/s, Accepted: 90 tokens, Drafted: 110 tokens, "
        "Per-position acceptance rate: 0.500, 0.300, 0.100, 0.000, "
        "Avg Draft acceptance rate: 81.8%\n"
    )
    run = read(document(line))
    assert (run.num_drafts, run.num_accepted_tokens_per_pos) == (100, (50, 30, 10, 0))


def test_figures_that_leave_several_numbers_of_drafts() -> None:
    line = (
        "SpecDecoding metrics: Mean acceptance length: 1.03, Accepted throughput: 0.57 tokens/s, "
        "Drafted throughput: 18.50 tokens/s, Accepted: 23 tokens, Drafted: 740 tokens, "
        "Per-position acceptance rate: 0.031, Avg Draft acceptance rate: 3.1%\n"
    )
    run = read(document(line))
    assert (run.num_drafts, run.num_accepted_tokens_per_pos) == (None, None)
    assert run.mean_acceptance_length == pytest.approx(1.03, abs=0.005)
    assert run.acceptance_rate_per_pos == (0.031,)
    assert run.notes == ("the log leaves 740 or more drafts possible",)


def test_nothing_accepted_and_nothing_drafted() -> None:
    zeros = "0.000, 0.000, 0.000"
    none = NEWEST.replace("0.750, 0.500, 0.250", zeros).replace("150 tokens", "0 tokens")
    none = none.replace("50.0%", "0.0%").replace("2.50", "1.00")
    run = read(document(none))
    assert (run.acceptance_rate, run.mean_acceptance_length, run.num_drafts) == (0.0, 1.0, None)
    assert run.notes == ("the log leaves 100 or more drafts possible",)
    undrafted = none.replace("300 tokens", "0 tokens").replace("0.0%", "nan%")
    run = read(document(undrafted))
    assert (run.acceptance_rate, run.mean_acceptance_length) == (None, None)
    assert run.notes == ("nothing was drafted",)


def test_a_length_that_lines_leave_open_is_not_made_up() -> None:
    none = (
        "SpecDecoding metrics: Mean acceptance length: 1.00, Accepted throughput: 0.00 tokens/s, "
        "Drafted throughput: 12.00 tokens/s, Accepted: 0 tokens, Drafted: 120 tokens, "
        "Per-position acceptance rate: 0.000, 0.000, 0.000, Avg Draft acceptance rate: 0.0%\n"
    )
    run = read(document(NEWEST + none))
    assert (run.num_draft_tokens, run.num_accepted_tokens) == (420, 150)
    assert run.acceptance_rate == 150 / 420
    assert (run.num_drafts, run.mean_acceptance_length) == (None, None)
    assert run.acceptance_rate_per_pos is None
    assert run.notes[1] == (
        "the log leaves between 140 and 220 drafts possible, and so a mean acceptance length "
        "between 1.68 and 2.07"
    )


def test_v0_tells_the_sum_since_the_start() -> None:
    lines = V0.format(accepted=60, drafted=100) + V0.format(accepted=120, drafted=200)
    run = read(document(lines))
    assert (run.num_draft_tokens, run.num_accepted_tokens) == (200, 120)
    assert (run.acceptance_rate, run.mean_acceptance_length, run.notes) == (0.6, None, (V0_NOTE,))
    oldest = V0.replace("draft tokens:", "draft tokens tokens:")
    assert read(document(oldest.format(accepted=60, drafted=100))).num_draft_tokens == 100


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (
            V0.format(accepted=120, drafted=200) + V0.format(accepted=60, drafted=100),
            "`run.txt`: line 2: draft tokens fell from 200 to 100 between two lines",
        ),
        (NEWEST + V0.format(accepted=6, drafted=10), "`run.txt`: holds lines of vLLM's V0 and V1"),
        (NEWEST.replace("Drafted: 300", "Drafted: 3e2"), "line 1: is no whole line of vLLM's"),
        (NEWEST + NEWEST[:150], "line 2: is no whole line of vLLM's metrics: 'Mean acceptance"),
        (OF_0_9[:-5], "line 1: is no whole line of vLLM's metrics"),
        (OF_0_9[:-8], "line 1: its figures contradict each other"),
        (NEWEST.replace("2.50", "2.5.0"), "line 1: has no number where one should be: '2.5.0'"),
        (NEWEST.replace("50.0%", "75.0%"), "acceptance rate is told as 0.75, and the counts make"),
        (NEWEST.replace("150 tokens", "900 tokens"), "told as 0.5, and the counts make 3"),
        (NEWEST.replace("300 tokens", "9" * 400 + " tokens"), "a number of tokens is"),
        (NEWEST.replace("0.250", "0.450"), "line 1: "),
    ],
)
def test_lines_that_cannot_be(text: str, fact: str) -> None:
    message = refused(document(text))
    assert fact in message
    assert "\nhint: " in message
