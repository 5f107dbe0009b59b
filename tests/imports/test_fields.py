"""Numbers are checked one by one, and each wrong one is named with its place."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pytest_specdec.errors import ImportFileError
from pytest_specdec.imports.fields import Fields, in_order


def fields(**table: Any) -> Fields:
    return Fields(file="run.json", at="run 2", table=table)


def test_what_is_not_there_is_none() -> None:
    for empty in (fields(), fields(a=None)):
        assert (empty.number("a"), empty.count("a"), empty.numbers("a")) == (None, None, None)
        assert empty.inside("a").inside("b").number("c") is None
    assert fields(a=[]).numbers("a") is None


def test_numbers() -> None:
    assert fields(a=85.23).number("a", per=100) == pytest.approx(0.8523)
    assert fields(a=3).count("a") == fields(a=3.0).count("a") == 3
    assert fields(a=6.491797e06).count("a") == 6_491_797
    assert fields(a=[50, 25.0]).numbers("a", per=100) == (0.5, 0.25)
    assert fields(a={"b": 0}).inside("a").count("b") == 0


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        ("7", "`a` is not a number: '7'"),
        (True, "`a` is not a number: True"),
        ({}, "`a` is not a number: {}"),
        (math.nan, "`a` is not a finite number: nan"),
        (math.inf, "`a` is not a finite number: inf"),
        (-1, "`a` is below 0: -1"),
        (1.5, "`a` is not a whole number: 1.5"),
        (2**53 + 2, "`a` is too large: a whole number of 54 bits"),
        pytest.param(10**5000, "`a` is too large: a whole number of 16610 bits", id="10**5000"),
        (1e300, "`a` is too large: 1e+300"),
        ("x" * 100, "`a` is not a number: 'xxx"),
    ],
)
def test_what_is_no_count(value: object, fact: str) -> None:
    with pytest.raises(ImportFileError) as caught:
        fields(a=value).count("a")
    assert str(caught.value).startswith(f"`run.json`: run 2: {fact}")
    assert len(str(caught.value)) < 200


def test_places_of_tables_and_lists() -> None:
    with pytest.raises(ImportFileError, match=r"`run.json`: run 2: `a` is not a table: 1"):
        fields(a=1).inside("a")
    with pytest.raises(ImportFileError, match="run 2: `a` is not a list: 1"):
        fields(a=1).numbers("a")
    with pytest.raises(ImportFileError, match="run 2: `a`, number 2 is below 0"):
        fields(a=[1, -1]).numbers("a")
    with pytest.raises(ImportFileError, match="run 2, `a`: `b` is below 0"):
        fields(a={"b": -1}).inside("a").number("b")
    with pytest.raises(ImportFileError, match="run 2: `a` is not a list: 1"):
        fields(a=1).items("a")
    with pytest.raises(ImportFileError, match="run 2: `a`, 2 is not a table: 7"):
        fields(a=[{}, 7]).items("a")
    with pytest.raises(ImportFileError, match="run 2, `a`, 1: `b` is below 0"):
        fields(a=[{"b": -1}]).items("a")[0].number("b")
    with pytest.raises(ImportFileError, match=r"^`run.json`: `a` is below 0"):
        Fields(file="run.json", table={"a": -1}).number("a")


def test_figures_by_position() -> None:
    assert in_order(fields(), {1: 0.5, 0: 0.75}) == (0.75, 0.5)
    assert in_order(fields(), {}) is None
    with pytest.raises(ImportFileError, match="run 2: lacks position 1"):
        in_order(fields(), {0: 0.75, 2: 0.5})
