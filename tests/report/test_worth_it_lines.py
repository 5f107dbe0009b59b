"""Whether speculation is worth it, as a terminal shows it."""

from __future__ import annotations

import re

import pytest

from pytest_specdec.report.summary import summary_lines
from pytest_specdec.report.worth_it_lines import WIDTH, worth_it_lines
from pytest_specdec.worth_it import BreakEven, Cost, EngineCost, WorthIt
from tests.measured_gains import EMPTY, all_of, answered, cost, gained, sweep, with_nothing
from tests.report.hostile import HOSTILE
from tests.report.reported import profile_report, workload_report


def of(*points: object, **facts: object) -> WorthIt:
    return WorthIt(**{"points": points, "answers": (), "cost": None, **facts})  # type: ignore[arg-type]


def test_a_row_a_point() -> None:
    lines = worth_it_lines(of(gained(), gained(in_flight=8, gain=0.9, low=0.8, high=1.05)))
    assert lines[:4] == [
        "workload  in      accept-  tokens  step  gain                 TTFT  TPOT  answer",
        "          flight  ance     a step  cost",
        "sql       1       0.625    2.50    1.25  2.00 (1.80 to 2.20)  1.10  0.50  gains",
        "sql       8       0.625    2.50    1.25  0.90 (0.80 to 1.05)  1.10  0.50  gains",
    ]


def test_columns_of_axes_that_are_swept() -> None:
    head = " ".join(worth_it_lines(of(gained(context_tokens=64, temperature=0.0)))[0].split())
    assert head.startswith("workload context in temp. accept-")
    assert "context" not in worth_it_lines(of(gained()))[0]


def test_an_interval_without_an_end_says_so() -> None:
    assert "2.00 (1.80 or more)" in worth_it_lines(of(gained(high=None)))[2]


def test_names_stand_above_their_rows_where_the_columns_need_the_room() -> None:
    name = "a_workload_with_a_name_of_forty_letters_"
    lines = worth_it_lines(of(gained(name), gained(name, in_flight=2), gained()))
    assert lines[2] == name
    assert [line[:3] for line in lines[3:5]] == ["  1", "  2"]
    assert lines[5] == "sql"


def test_ways_to_speculate_stand_in_order_of_their_drafts_and_the_best_is_marked() -> None:
    lines = worth_it_lines(
        of(
            gained(expected=4.0, expected_verified=2.5),
            gained(changes={"num_speculative_tokens": 1}, num_speculative_tokens=1),
            gained(
                changes={"method": "ngram", "num_speculative_tokens": 5}, num_speculative_tokens=5
            ),
            gained("story"),
            answers=[answered(best={"num_speculative_tokens": 1})],
        )
    )
    start = lines.index("") + 1
    # Of the profile itself alone: two lines of titles, a row each, and the empty line.
    assert [line.split()[0] for line in lines[2 : start - 1]] == ["sql", "story"]
    rows = [line.split("  ") for line in lines[start : lines.index("", start)]][-3:]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [row[:3] for row in cells] == [
        ["sql[in_flight=1]", "1", "-"],
        ["sql[in_flight=1]", "3", "-"],
        ["sql[in_flight=1]", "5", "method ngram"],
    ]
    assert [row[-1] for row in cells] == ["yes", "-", "-"]
    assert cells[1][-3:-1] == ["4.00 (-50%)", "2.50 (-20%)"]
    assert "best: num_speculative_tokens 1" in lines[-1]


def test_a_gain_that_was_expected_to_be_none_has_no_distance() -> None:
    lines = worth_it_lines(of(gained(expected=0.0)))
    assert lines[-2].split()[-1] == "0.00"


def test_the_profile_s_own_way_may_be_the_best() -> None:
    variant = gained(changes={"num_speculative_tokens": 1}, num_speculative_tokens=1)
    lines = worth_it_lines(of(gained(), variant, answers=[answered(best={})]))
    assert lines[-1] == "sql: worth it; it gains; best: as the profile has it"
    assert [line.split()[-1] for line in lines[-4:-2]] == ["-", "yes"]


def test_a_line_for_each_workload_with_answer_reason_and_break_even() -> None:
    answer = answered(
        text="only for up to 8 in flight",
        reason="why",
        break_even={512: BreakEven(text="over 16"), 128: BreakEven(text="about 11 (8 to 16)")},
    )
    plain = answered("story", reason="", break_even={None: BreakEven(text="over 4")})
    lines = worth_it_lines(of(answers=[answer, plain]))
    assert " ".join(each.strip() for each in lines[:-1]) == (
        "sql: only for up to 8 in flight; why; breaks even at requests in flight: about 11 (8 to "
        "16) behind 128 tokens, over 16 behind 512 tokens"
    )
    assert lines[-1] == "story: worth it; breaks even at requests in flight: over 4"


def test_costs() -> None:
    assert worth_it_lines(of(cost=cost())) == [
        "cost: draft model's weights: 100.0 MiB",
        "cost: weights held: 1.10 GiB, baseline 1.00 GiB: +100.0 MiB (+9.8%)",
        "cost: KV cache blocks: 1,200, baseline 1,500: -300 (-20.0%)",
        "cost: KV cache tokens: 19,200, baseline 24,000: -4,800 (-20.0%)",
        "cost: peak memory: 3.50 GiB, baseline 3.00 GiB: +512.0 MiB (+16.7%)",
        "cost: start-up: 12.5 s, baseline 8.0 s: +4.5 s (+56.2%)",
    ]


def test_costs_of_one_engine_alone() -> None:
    one = Cost(
        baseline=EngineCost(kv_cache_blocks=0, load_s=1.0),
        speculative=EngineCost(kv_cache_blocks=2),
    )
    assert worth_it_lines(of(cost=one)) == [
        "cost: KV cache blocks: 2, baseline 0: +2",
        "cost: start-up: -, baseline 1.0 s",
    ]


def test_points_without_a_gain_and_gains_that_must_be_are_told() -> None:
    points = [
        gained(answer="not identical", reason="`a` differs"),
        gained(answer="unmeasured", reason="", changes={"method": "ngram"}, in_flight=2),
    ]
    lines = worth_it_lines(of(*points, unmet=("`sql` at 4 in flight: why",)))
    assert lines[-3:] == [
        "sql[in_flight=1]: not identical: `a` differs",
        "sql[in_flight=2]: method ngram: unmeasured",
        "unmet: `sql` at 4 in flight: why",
    ]


@pytest.mark.parametrize(
    "worth_it",
    [
        sweep(),
        with_nothing(),
        EMPTY,
        all_of(HOSTILE, range(1, 61)),
        all_of("a\x1b[31m\nb\u202e" + "x" * 500),
        of(gained(gain=float("nan"), low=0.0, high=float("inf"), expected=0.0)),
    ],
)
def test_whatever_there_is_fits_a_terminal(worth_it: WorthIt) -> None:
    lines = worth_it_lines(worth_it)
    assert max((len(line) for line in lines), default=0) <= WIDTH
    assert not re.search("[\x00-\x1f\x7f\u202e]", "".join(lines))
    assert not any(line.endswith(" ") for line in lines)
    assert "nan" not in " ".join(lines)


def test_the_ordinary_table_is_there_where_workloads_were_gated_alone() -> None:
    assert summary_lines(profile_report(workloads=(), worth_it=EMPTY)) == []
    told = summary_lines(profile_report(workloads=(), worth_it=of(gained())))
    assert not any("identical" in line for line in told)
    assert told[-1].startswith("engines started: ")
    both = summary_lines(profile_report(workloads=(workload_report(),), worth_it=of(gained())))
    assert both[1].startswith("sql")
    assert both[2:-1] == told[:-1]
