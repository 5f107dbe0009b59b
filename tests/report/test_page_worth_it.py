"""Whether speculation is worth it, in `report.html`: its charts, and that all is heard."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.report.html import html_page
from pytest_specdec.report.json_file import report_data
from pytest_specdec.report.json_worth_it import worth_it_data
from pytest_specdec.report.page_worth_it import Plot, worth_it_view
from pytest_specdec.worth_it import BreakEven, PointGain, WorthIt
from tests.measured_gains import EMPTY, all_of, answered, cost, gained, sweep, with_nothing
from tests.report import test_html
from tests.report.hostile import HOSTILE
from tests.report.reported import profile_report, workload_report
from tests.report.test_html import Page


def view(*points: PointGain, **facts: Any) -> Any:
    worth_it = WorthIt(**{"points": points, "answers": (), "cost": None, **facts})
    return worth_it_view(worth_it_data(worth_it), "p0")


def plots(*points: PointGain, **facts: Any) -> list[Plot]:
    told: list[Plot] = view(*points, **facts)["plots"]
    return told


def page_of(worth_it: WorthIt) -> Page:
    return Page(html_page(report_data([profile_report(workloads=(), worth_it=worth_it)])))


def test_the_gain_by_load_with_a_line_for_each_workload() -> None:
    points = [
        gained(name, in_flight=in_flight, gain=2.0 / in_flight)
        for in_flight in (4, 1)
        for name in ("sql", "story")
    ]
    even = answered(break_even={None: BreakEven(text="about 2", value=2.0)})
    (plot,) = plots(*points, gained("alone"), answers=[even])
    assert (plot.title, plot.axis) == ("Gain by requests in flight", "requests in flight")
    assert [each.name for each in plot.chart.lines] == ["sql", "story"]
    assert [each.crossing is not None for each in plot.chart.lines] == [True, False]
    assert plot.told == "sql: 2.00 at 1, 0.50 at 4; story: 2.00 at 1, 0.50 at 4"
    assert plot.key.endswith("hollow ring on it: break-even")


def test_a_workload_s_lines_are_told_apart_by_what_else_is_swept() -> None:
    points = [
        gained(in_flight=in_flight, context_tokens=context)
        for in_flight in (1, 2)
        for context in (64, 128)
    ]
    loads, gains, ttft, tpot = plots(*points)
    assert [each.name for each in loads.chart.lines] == [
        "sql, context tokens 64",
        "sql, context tokens 128",
    ]
    assert [each.name for each in gains.chart.lines] == ["sql, in flight 1", "sql, in flight 2"]
    assert {each.axis for each in (gains, ttft, tpot)} == {"context tokens"}
    assert ttft.told == (
        "sql, in flight 1: 1.10 at 64, 1.10 at 128; sql, in flight 2: 1.10 at 64, 1.10 at 128"
    )


def test_acceptance_by_temperature() -> None:
    (plot,) = plots(*(gained(temperature=each, acceptance_rate=0.5 - each / 4) for each in (0, 1)))
    assert plot.title == "Acceptance rate by temperature"
    assert plot.told == "sql: 0.500 at 0, 0.250 at 1"


def test_measured_and_expected_gains_by_length_of_draft() -> None:
    points = [
        gained(
            changes={} if num_tokens == 3 else {"num_speculative_tokens": num_tokens},
            num_speculative_tokens=num_tokens,
            expected=expected,
        )
        for num_tokens, expected in ((3, 2.5), (1, 1.5))
    ]
    other = gained(changes={"method": "ngram"})
    (plot,) = plots(*points, other)
    assert plot.title == "Gain by num_speculative_tokens, sql[in_flight=1]"
    assert plot.told == "measured: 2.00 at 1, 2.00 at 3; expected: 1.50 at 1, 2.50 at 3"


def test_what_was_measured_at_one_place_alone_or_not_at_all_has_no_chart() -> None:
    assert plots(gained(), gained("story", in_flight=2)) == []
    assert plots(gained(gain=None), gained(in_flight=2, gain=None)) == []
    assert plots(gained(), gained(in_flight=2, gain=None)) == []


def test_more_lines_than_can_be_told_apart_are_in_several_charts() -> None:
    points = [gained(f"w{at}", in_flight=load) for at in range(8) for load in (1, 2)]
    assert [len(each.chart.lines) for each in plots(*points)] == [6, 2]


def test_answers_and_costs_are_told() -> None:
    told = view(
        gained(),
        answers=[answered(answer="not worth it", text="not worth it", reason="why", best={})],
        cost=cost(),
    )
    assert told["answers"] == [
        {
            "kind": "bad",
            "workload": "sql",
            "text": "not worth it",
            "rest": ["why", "best: as the profile has it"],
        }
    ]
    assert len(told["cost_rows"]) == 6


def test_what_must_be_and_is_not_stands_at_the_top() -> None:
    page = page_of(sweep())
    items = [each["text"] for each in page.all("li")]
    assert f"unmet: {sweep().unmet[0]}" in items
    assert "tool_calls[in_flight=1]: unmeasured: no pass ended" in items
    assert "points measured: 27 (gains: 20" in page.all("main")[0]["text"]
    assert "#p0-worth-it" in {each["href"] for each in page.all("a")}


@pytest.mark.parametrize(
    "worth_it", [sweep(), with_nothing(), EMPTY, all_of(HOSTILE, range(1, 61))]
)
def test_whatever_there_is_is_safe_and_can_be_heard(worth_it: WorthIt) -> None:
    page = page_of(worth_it)
    assert page.all("script", "img", "iframe") == []
    assert {name for each in page.elements for name in each if name in test_html.LOADING} == {
        "href"
    }
    test_html.test_ids_are_unique_and_links_lead_somewhere(page)
    assert [each["tag"] for each in page.all("h1", "h2", "h3")] == ["h1", "h2", "h3", "h3"]
    assert all(each["text"].strip() for each in page.all("th", "desc", "caption"))
    labels = [each["aria-label"] for each in page.all("div") if each.get("role") == "region"]
    assert len({*labels}) == len(labels)


def test_a_session_that_did_not_ask_has_no_such_section() -> None:
    page = Page(html_page(report_data([profile_report(workloads=(workload_report(),))])))
    assert "Is speculation worth it?" not in {each["text"] for each in page.all("h3")}
