"""`report.html`: its structure, read with the standard library's parser. How it looks, and that a
browser runs nothing of it, is seen in a browser by hand; CONTRIBUTING.md says how."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from pytest_specdec.report.html import html_page
from pytest_specdec.report.json_file import report_data
from tests.report.hostile import HOSTILE, hostile_data, hostile_report
from tests.report.reported import own_test, profile_report, workload_report

LOADING = {"src", "srcset", "href", "action", "formaction", "data", "poster", "style", "srcdoc"}


class Page(HTMLParser):
    """The page's elements in order, each with its attributes, text and ancestors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[dict[str, Any]] = []
        self.elements: list[dict[str, Any]] = []
        self.feed(text)
        self.close()
        assert [each["tag"] for each in self.open] == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names)
        element = {"tag": tag, **dict(attrs), "text": "", "within": [e["tag"] for e in self.open]}
        self.elements.append(element)
        self.open.append(element)
        if tag == "meta":
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data: str) -> None:
        for each in self.open:
            each["text"] += data

    def all(self, *tags: str) -> list[dict[str, Any]]:
        return [each for each in self.elements if each["tag"] in tags]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(html_page(hostile_data()))


def test_nothing_runs_and_nothing_loads(page: Page) -> None:
    assert page.all("script", "img", "iframe", "object", "embed", "link", "base", "form") == []
    names = Counter(name for each in page.elements for name in each)
    assert not [name for name in names if name.startswith("on")]
    assert {name for name in names if name in LOADING} == {"href"}
    assert all(each["href"].startswith("#") for each in page.elements if "href" in each)


def test_the_policy_lets_nothing_run_and_no_other_style(page: Page) -> None:
    (style,) = page.all("style")
    digest = base64.b64encode(hashlib.sha256(style["text"].encode()).digest()).decode()
    policies = [each for each in page.all("meta") if "http-equiv" in each]
    assert policies == [page.elements[page.elements.index(style) - 4]]
    assert policies[0]["content"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in style["text"]
    assert "@import" not in style["text"]


def test_hostile_text_is_text(page: Page) -> None:
    whole = page.elements[0]["text"]
    assert whole.count(HOSTILE) >= 20
    assert "49" not in {each["text"].strip() for each in page.elements}  # {{ 7 * 7 }}


def test_ids_are_unique_and_links_lead_somewhere(page: Page) -> None:
    ids = Counter(each["id"] for each in page.elements if "id" in each)
    assert max(ids.values()) == 1
    for each in page.elements:
        named = [*each.get("aria-labelledby", "").split(), each.get("href", "#main")[1:]]
        assert set(named) <= ids.keys()


def test_headings_are_in_order(page: Page) -> None:
    levels = [int(each["tag"][1]) for each in page.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert "failed" in page.all("h1")[0]["text"] or "error" in page.all("h1")[0]["text"]


def test_landmarks_and_language(page: Page) -> None:
    assert page.all("html")[0]["lang"] == "en"
    assert [len(page.all(tag)) for tag in ("header", "nav", "main", "footer")] == [1, 1, 1, 1]
    skip = page.all("a")[0]
    assert skip["href"] == "#main"
    (view,) = [each for each in page.all("meta") if each.get("name") == "viewport"]
    assert view["content"] == "width=device-width, initial-scale=1"


def test_tables_can_be_heard_and_scrolled(page: Page) -> None:
    tables = page.all("table")
    assert len(page.all("caption")) == len(tables) >= 8
    assert all(each.get("scope") in ("col", "row") for each in page.all("th"))
    assert all(each["text"].strip() for each in page.all("th"))
    regions = [each for each in page.all("div") if each.get("role") == "region"]
    assert len(regions) == len(tables)
    assert all(each["tabindex"] == "0" and each["aria-label"] for each in regions)
    assert len({each["aria-label"] for each in regions}) == len(regions)


def test_charts_have_titles_descriptions_and_tables(page: Page) -> None:
    charts = page.all("svg")
    # lengths and speedups; two workloads, one of them timed; the gain by load
    assert len(charts) == 2 + 2 + 1 + 1
    for each in charts:
        assert each["role"] == "img"
        title, desc = each["aria-labelledby"].split()
        assert {title, desc} <= {inner.get("id") for inner in page.all("title", "desc")}
    assert all(each["text"].strip() for each in page.all("desc"))
    captions = " ".join(each["text"] for each in page.all("caption"))
    for told in ("mean acceptance length", "speedup", "accepted at each position", "prompts of"):
        assert told in captions


def test_colour_is_never_the_only_sign(page: Page) -> None:
    for each in page.all("span"):
        if each.get("class", "").startswith("sign"):
            assert each["text"] in ("✗", "✓", "!")
    row = next(each for each in page.all("tr") if each.get("class") == "row")
    assert "failed" in row["text"]


def test_the_place_is_marked_in_words_too(page: Page) -> None:
    marks = [each["text"] for each in page.all("mark")]
    assert "first difference: (the text ends)" in marks
    assert any(each.startswith("first difference: ") and "and" in each for each in marks)
    assert any(each.startswith("the validator stopped here: <img") for each in marks)
    assert any("JSON pointer: /a|b" in each["text"] for each in page.all("p"))


def test_figures_are_shown() -> None:
    text = html_page(report_data([profile_report(workloads=(workload_report("sql"),))]))
    cells = [each["text"] for each in Page(text).all("td", "th")]
    assert "0.500 / - / 0.475" in cells
    assert "3.00 / -" in cells
    assert "A CPU, cores: 2" in cells


def test_own_tests_are_listed_and_those_that_fail_are_named_at_the_top() -> None:
    error = own_test("error", node_id="test_a.py::test_c[fast]", message="no such fixture")
    page = Page(html_page(report_data([profile_report(own_tests=(own_test(), error))])))
    assert "Tests of your own" in {each["text"] for each in page.all("h3")}
    cells = [each["text"] for each in page.all("td", "th")]
    at = cells.index("test_a.py::test_c[fast]")
    assert cells[at : at + 4] == ["test_a.py::test_c[fast]", "sql", "error", "no such fixture"]
    assert cells[at + 4 : at + 8] == ["test_a.py::test_b[fast]", "sql", "passed", "-"]
    assert "test_a.py::test_c[fast]: error" in {each["text"] for each in page.all("li")}
    without = Page(html_page(report_data([profile_report()])))
    assert "Tests of your own" not in {each["text"] for each in without.all("h3")}


def test_a_session_in_which_nothing_ran() -> None:
    assert "nothing ran" in Page(html_page(report_data([]))).all("h1")[0]["text"]
    empty = report_data([profile_report(workloads=(), engines={}, versions={})])
    assert Page(html_page(empty)).all("svg") == []


def test_several_profiles() -> None:
    page = Page(html_page(report_data([hostile_report(), hostile_report()])))
    test_ids_are_unique_and_links_lead_somewhere(page)
    test_headings_are_in_order(page)
    assert len(page.all("h2")) == 2


def contrast(first: str, second: str) -> float:
    """As WCAG has it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted(map(luminance, (first, second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_contrast_is_enough_in_light_and_dark(page: Page, theme: int) -> None:
    (style,) = page.all("style")
    colours = dict(
        re.findall(r"--([a-z-]+): (#\w{6})", style["text"].split("prefers-color-scheme")[theme])
    )
    series = [f"series-{each}" for each in "abcdef"]
    for name in ("text", "muted", "link", "bad", "good", "warn", "now", "stored", *series):
        for ground in ("page", "panel"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    assert contrast(colours["mark"], colours["mark-text"]) >= 4.5
