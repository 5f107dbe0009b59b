"""Whether speculation is worth it, in `report.md`."""

from __future__ import annotations

import pytest

from pytest_specdec.report.json_file import report_data
from pytest_specdec.report.markdown import MAX_BYTES, markdown
from pytest_specdec.worth_it import WorthIt
from tests.measured_gains import EMPTY, all_of, answered, cost, gained, sweep, with_nothing
from tests.report.hostile import HOSTILE
from tests.report.reported import profile_report
from tests.report.test_markdown import ELEMENTS, Rendered

TITLE = "#### Is speculation worth it?\n"


def of(worth_it: WorthIt | None, *, max_bytes: int = MAX_BYTES) -> str:
    return markdown(
        report_data([profile_report(workloads=(), worth_it=worth_it)]), max_bytes=max_bytes
    )


def test_answers_stand_first_and_what_must_be_and_is_not_before_them() -> None:
    text = of(WorthIt(points=(gained(),), answers=(answered(),), cost=None, unmet=("why",)))
    told = text.partition(TITLE)[2]
    assert told.startswith("\n- ❌ unmet: why\n\n- ✅ sql: worth it; it gains\n")
    assert text.startswith("## ❌ Speculative decoding gate: failed\n")


def test_a_table_of_points_of_ways_and_of_costs() -> None:
    variant = gained(changes={"method": "ngram"}, expected=2.5)
    text = of(WorthIt(points=(gained(), variant), answers=(), cost=cost()))
    assert (
        "| sql | 1 | 0.625 | 2.50 | 1.25 | 2.00 (1.80 to 2.20) | 1.10 | 0.50 | gains | above 1 |"
        in text
    )
    assert (
        "| sql&#91;in&#95;flight=1&#93; | 3 | method ngram | 0.625 | 2.00 (1.80 to 2.20) | "
        "2.50 (-20%) |" in text
    )
    assert "| KV cache blocks | 1,500 | 1,200 | -300 (-20.0%) |" in text


def test_a_session_that_did_not_ask_says_nothing_of_it() -> None:
    assert TITLE not in of(None)


@pytest.mark.parametrize(
    "worth_it", [sweep(), with_nothing(), EMPTY, all_of(HOSTILE, range(1, 61))]
)
def test_text_is_text_and_tables_are_whole(worth_it: WorthIt) -> None:
    text = of(worth_it)
    rendered = Rendered(text)
    assert rendered.elements <= ELEMENTS
    assert rendered.attributes == []
    assert text.count(TITLE) == 1
    lines = [each for each in text.splitlines() if each.startswith("|")]
    assert len(rendered.cells) == len([each for each in lines if "---" not in each])


def test_what_does_not_fit_is_left_out_and_the_answers_stay() -> None:
    cut = of(all_of("x" * 300, range(1, 61)), max_bytes=4000)
    assert len(cut.encode()) <= 4000
    assert "- ❌ unmet: xxx" in cut
    assert "**Cut:**" in cut
