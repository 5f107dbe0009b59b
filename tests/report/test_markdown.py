"""`report.md` and a job's summary: what must be in it, what must be no markup, and its size."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt

from pytest_specdec.report.excerpt import visible
from pytest_specdec.report.json_file import report_data
from pytest_specdec.report.markdown import MAX_BYTES, RESERVED_BYTES, markdown
from tests.report.hostile import HOSTILE, hostile_data
from tests.report.reported import FINDING, TIE, own_test, profile_report, update, workload_report

ELEMENTS = {
    *("h2", "h3", "h4", "p", "ul", "li", "strong", "pre", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


class Rendered(HTMLParser):
    """What Markdown becomes: its elements, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: list[Any] = []
        self.cells: list[int] = []
        self.text = ""
        self.feed(MarkdownIt("commonmark").enable("table").render(text))

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.add(tag)
        self.attributes += attrs
        if tag == "tr":
            self.cells.append(0)
        elif tag in ("th", "td"):
            self.cells[-1] += 1

    def handle_data(self, data: str) -> None:
        self.text += data


def of(**facts: Any) -> str:
    return markdown(report_data([profile_report(**facts)]))


def test_hostile_text_is_text() -> None:
    rendered = Rendered(markdown(hostile_data()))
    assert rendered.elements == ELEMENTS
    assert rendered.attributes == []
    once = rendered.text.replace("\u200b", "")
    assert once.count(HOSTILE) >= 10


def test_every_row_has_all_its_cells() -> None:
    rendered = Rendered(markdown(hostile_data()))
    assert {*rendered.cells} == {8, 4, 3, 11, 7}  # of points, and of ways to speculate, too


def test_no_mention_and_no_address_is_left_outside_of_pre() -> None:
    outside = re.sub(r"<pre>.*?</pre>", "", markdown(hostile_data()), flags=re.DOTALL)
    assert not re.search(r"@\w|://|www\.", outside)
    assert "&#64;\u200beveryone" in outside


def test_the_verdict_is_at_the_top() -> None:
    assert of().startswith("## ✅ Speculative decoding gate: passed\n")
    assert of(failure="it died").startswith("## ❌ Speculative decoding gate: error\n")
    assert markdown(report_data([])).startswith("## ⚠️ Speculative decoding gate: nothing ran\n")


def test_a_row_for_each_workload() -> None:
    text = of(workloads=(workload_report("sql"), workload_report("story", near_ties={"two": TIE})))
    assert (
        "| sql | ✅ passed | 3 of 3 | 2 of 2 | 0.500 / - / 0.475 | 3.00 / - | - / - | - / - |"
        in text
    )
    assert "| story | ✅ passed | 2 of 3 (1 near tie) |" in text


def test_failures_have_cause_and_hint() -> None:
    text = of(workloads=(workload_report(findings={("honoured", "one"): FINDING}),))
    summary = "<summary>sql: honoured&#91;one&#93;: divergence (fails the build)</summary>"
    assert f"<details>\n{summary}\n\n<pre>divergence: &#x27;one&#x27;" in text.replace(
        "`", "&#x27;"
    )
    assert "  a fact\nhint: a hint</pre>" in text
    assert "| sql | ❌ failed |" in text


def test_differing_answers_are_shown_from_where_they_part() -> None:
    text = markdown(hostile_data())
    assert "one, speculative engine (from character" in text
    assert "&gt;&gt;&gt; (the text ends)" in text
    assert "answer, at character " in text
    assert "answer, at JSON pointer /a|b:" in text


def test_what_ended_the_session_is_told() -> None:
    text = of(failure="it died", not_run={"story": "earlier it died"}, unused=("old",))
    assert "<pre>it died</pre>" in text
    assert "- ❌ not run: story: earlier it died" in text
    assert "stored, but no test asked for" not in text
    assert "- ❌ stored, but no test asked for: old" in of(unused=("old",), is_unused_failing=True)


def test_what_was_stored_and_what_not_is_told() -> None:
    told = update(
        path="a/b.json", rows=(("sql", "speedup", None, 1.5),), refused={"story": ("why",)}
    )
    text = of(update=told)
    assert "- story: not stored: why\n- stored baselines written: a/b.json\n" in text
    assert "| sql | speedup | - | 1.5 |" in text


def test_an_update_that_is_refused_is_a_failure_with_its_reasons() -> None:
    failing = ("acceptance", "speedup")
    text = of(workloads=(workload_report(not_stored=("why",), failing=failing),))
    assert "#### Failures (1)" in text
    assert "<summary>sql: acceptance and speedup: not stored (fails the build)</summary>" in text
    assert "<pre>not stored: `sql`\nwhy</pre>" in text


def test_own_tests_are_listed_and_what_fails_comes_first() -> None:
    failed = own_test("failed", workload=None, message="AssertionError: assert not True")
    text = of(own_tests=(own_test(), failed))
    rows = text.partition("#### Tests of your own (2, failing: 1)\n")[2].splitlines()[1:5]
    assert rows[0] == "| test | workload | outcome | why |"
    name = "test&#95;a.py::test&#95;b&#91;fast&#93;"
    assert rows[2] == f"| {name} | - | failed | AssertionError: assert not True |"
    assert rows[3] == f"| {name} | sql | passed | - |"
    assert text.startswith("## ❌ Speculative decoding gate: failed\n")
    assert "Tests of your own" not in of()


def test_what_cannot_be_seen_is_made_visible() -> None:
    assert visible("\u202e") in of(failure="a\u202eb")


@pytest.mark.parametrize("max_bytes", [MAX_BYTES, 20_000, 5_000, RESERVED_BYTES])
def test_what_does_not_fit_is_cut_and_told(max_bytes: int) -> None:
    long = workload_report(
        findings={("json", f"p{at}"): FINDING for at in range(200)}, num_greedy=200
    )
    text = of(workloads=(long,))
    cut = markdown(report_data([profile_report(workloads=(long,))]), max_bytes=max_bytes)
    assert len(cut.encode()) <= max_bytes
    assert ("**Cut:**" in cut) == (len(text.encode()) > max_bytes - RESERVED_BYTES)
    assert cut.count("<details>") == cut.count("</details>")
