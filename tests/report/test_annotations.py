"""GitHub's workflow commands: escapes, and no more of a level than GitHub shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_specdec.report.annotations import Annotation, annotation_lines

ONE = Annotation(level="error", file="a.jsonl", line=3, title="t", message="m")


@pytest.mark.parametrize(
    ("annotation", "line"),
    [
        (ONE, "::error file=a.jsonl,line=3,title=t::m"),
        (replace(ONE, level="warning", line=None), "::warning file=a.jsonl,title=t::m"),
        (
            replace(ONE, message="100%\r\nb: c, d"),
            "::error file=a.jsonl,line=3,title=t::100%25%0D%0Ab: c, d",
        ),
        (
            replace(ONE, title="50%: a, b\n"),
            "::error file=a.jsonl,line=3,title=50%25%3A a%2C b%0A::m",
        ),
        (replace(ONE, file="a,b:c.jsonl"), "::error file=a%2Cb%3Ac.jsonl,line=3,title=t::m"),
        (replace(ONE, message="%0A"), "::error file=a.jsonl,line=3,title=t::%250A"),
        (
            replace(ONE, message="\x1b[1m\0\ud800\u2028é"),
            "::error file=a.jsonl,line=3,title=t::\\x1b[1m\\x00\\ud800\\u2028é",
        ),
        (replace(ONE, message="m" * 4000), f"::error file=a.jsonl,line=3,title=t::{'m' * 4000}"),
        (
            replace(ONE, message="%" * 1_000_000),
            f"::error file=a.jsonl,line=3,title=t::{'%25' * 4000}...",
        ),
    ],
)
def test_a_command_is_one_line_with_escapes(annotation: Annotation, line: str) -> None:
    assert annotation_lines([annotation]) == [line]


def numbered(count: int) -> list[Annotation]:
    return [replace(ONE, message=str(number)) for number in range(count)]


@pytest.mark.parametrize(("count", "num_shown", "more"), [(10, 10, 0), (11, 9, 2), (100, 9, 91)])
def test_ten_are_shown_and_the_last_counts_the_rest(count: int, num_shown: int, more: int) -> None:
    lines = annotation_lines(numbered(count))
    assert [line.rpartition("::")[2] for line in lines[:num_shown]] == [*map(str, range(num_shown))]
    assert lines[num_shown:] == (
        [f"::error::and {more} more tests failed: the job's log has all"] if more else []
    )


def test_what_is_said_twice_of_a_file_is_shown_once_and_counted() -> None:
    assert annotation_lines([ONE, replace(ONE, line=4), replace(ONE, file="b.jsonl")]) == [
        "::error file=a.jsonl,line=3,title=t::m",
        "::error file=b.jsonl,line=3,title=t::m",
        "::error::and 1 more test failed: the job's log has all",
    ]


def test_each_level_has_its_own_ten_and_its_own_words() -> None:
    many = [replace(each, level=level) for level in ("notice", "warning") for each in numbered(12)]
    lines = annotation_lines([*many, ONE])
    assert [line.split()[0] for line in lines].count("::notice") == 9
    assert lines[0] == "::error file=a.jsonl,line=3,title=t::m"
    assert lines[10] == "::warning::and 3 more tests undecided: the job's log has all"
    assert lines[-1] == "::notice::and 3 more tests showing a known defect: the job's log has all"


def test_nothing_to_remark_is_no_line() -> None:
    assert annotation_lines([]) == []
