"""Dataclasses out of tables: what is taken, and how each refusal reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from pytest_specdec.errors import ConfigError
from pytest_specdec.table import Place


@dataclass(frozen=True, kw_only=True)
class Inner:
    depth: int = field(default=1, metadata={"help": "how deep", "min": 1, "max": 9})


@dataclass(frozen=True, kw_only=True)
class Outer:
    given: str
    text: str = field(metadata={"help": "any text"})
    share: float = field(default=0.5, metadata={"help": "a share", "min": 0.0, "max": 1.0})
    limit: float | None = field(default=None, metadata={"help": "a limit", "min": 0.0})
    count: int = field(default=1, metadata={"help": "a count"})
    is_on: bool = field(default=False, metadata={"help": "a switch"})
    kind: Literal["left", "right"] = field(default="left", metadata={"help": "a side"})
    names: tuple[str, ...] = field(default=(), metadata={"help": "names"})
    free: Mapping[str, Any] = field(default_factory=dict, metadata={"help": "anything"})
    texts: Mapping[str, str] = field(default_factory=dict, metadata={"help": "texts"})
    inner: Inner = field(default_factory=Inner, metadata={"help": "a table"})
    inners: tuple[Inner, ...] = field(default=(), metadata={"help": "tables"})


PLACE = Place("some.toml", ("outer",))


def build(**values: Any) -> Outer:
    return PLACE.build(Outer, {"text": "t", **values}, given="g")


def test_what_a_table_leaves_out_has_its_default() -> None:
    assert build() == Outer(given="g", text="t")


def test_every_kind_of_value_is_taken() -> None:
    values: dict[str, Any] = {
        "text": "",
        "share": 1,
        "limit": 2.5,
        "count": -3,
        "is_on": True,
        "kind": "right",
        "names": ["a", "b"],
        "free": {"a": [1, {"b": None}]},
        "texts": {"a": "b"},
    }
    built = build(**values, inner={"depth": 9}, inners=[{"depth": 2}, {}])
    assert built == Outer(
        given="g",
        inner=Inner(depth=9),
        inners=(Inner(depth=2), Inner()),
        **{**values, "names": ("a", "b")},
    )


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"shore": 1}, "`outer.shore` is not a known key\nhint: did you mean `share`?"),
        ({"inner": {"dept": 1}}, "`outer.inner.dept` is not a known key\nhint: did you mean"),
        ({"given": "x"}, "`outer.given` is not a known key"),
        ({"text": 1}, "`outer.text` is not a string: 1"),
        ({"share": "1"}, "`outer.share` is not a number: '1'"),
        ({"share": True}, "`outer.share` is not a number: True"),
        ({"share": -0.1}, "`outer.share` is below 0: -0.1"),
        ({"share": 1.5}, "`outer.share` is above 1: 1.5"),
        ({"share": float("nan")}, "`outer.share` is not a finite number: nan"),
        ({"limit": float("inf")}, "`outer.limit` is not a finite number: inf"),
        ({"limit": -1}, "`outer.limit` is below 0: -1"),
        ({"count": 1.0}, "`outer.count` is not a whole number: 1.0"),
        ({"count": True}, "`outer.count` is not a whole number: True"),
        ({"is_on": 1}, "`outer.is_on` is not true or false: 1"),
        ({"kind": "lift"}, "`outer.kind` is not one of its values: 'lift'\nhint: did you mean"),
        ({"kind": 7}, "`outer.kind` is not one of its values: 7\nhint: known here: `left`"),
        ({"names": "a"}, "`outer.names` is not a list: 'a'"),
        ({"names": ["a", 2]}, "`outer.names` is not a string: 2"),
        ({"free": 1}, "`outer.free` is not a table: 1"),
        ({"texts": {"a": 1}}, "`outer.texts.a` is not a string: 1"),
        ({"inner": 3}, "`outer.inner` is not a table: 3"),
        ({"inner": {"depth": 0}}, "`outer.inner.depth` is below 1: 0"),
        ({"inner": {"depth": 10}}, "`outer.inner.depth` is above 9: 10"),
        ({"inners": {"depth": 1}}, "`outer.inners` is not a list: {'depth': 1}"),
        ({"inners": [{}, 3]}, "`outer.inners.1` is not a table: 3"),
        ({"inners": [{}, {"depth": 0}]}, "`outer.inners.1.depth` is below 1: 0"),
        ({"inners": [{"dept": 1}]}, "`outer.inners.0.dept` is not a known key\nhint: did you"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(values: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=f"^`some.toml`: {re.escape(told)}"):
        build(**values)


def test_a_missing_key_is_named_with_its_meaning() -> None:
    with pytest.raises(ConfigError, match=r"^`some.toml`: `outer` lacks `text`: any text$"):
        PLACE.build(Outer, {}, given="g")


def test_no_table_at_all() -> None:
    with pytest.raises(ConfigError, match=r"^`some.toml`: `outer` is not a table: \[1\]$"):
        PLACE.build(Outer, [1], given="g")


def test_a_place_without_keys_is_the_file() -> None:
    with pytest.raises(ConfigError, match=r"^`some.toml`: `outr` is not a known key"):
        Place("some.toml").refuse_unknown({"outr": {}}, {"outer"})
