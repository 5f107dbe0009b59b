"""The switch of the fault kit: what it says, where it bites, and what it forgets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from specdec_faults import switch

Say = Callable[[str], None]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Say:
    """Names a fault to a speculative engine by way of the file."""
    path = tmp_path / "fault"
    monkeypatch.setenv("SPECDEC_FAULT", f"@{path}")
    monkeypatch.setattr(switch, "_is_speculative", True)

    def name(fault: str) -> None:
        path.write_text(f"{fault}\n", encoding="utf-8")

    return name


@pytest.mark.parametrize(
    ("said", "is_on", "is_mended"),
    [
        ("", False, False),
        ("wrong", True, False),
        ("other", False, False),
        ("wrong-too", False, False),
        ("mended", False, True),
        ("mended+wrong", True, True),
        ("mended+other", False, True),
        ("other+wrong", True, False),
    ],
)
def test_what_is_said_is_on(say: Say, said: str, is_on: bool, is_mended: bool) -> None:
    say(said)
    assert switch.is_on("wrong") is is_on
    assert switch.is_mended() is is_mended


def test_nothing_is_on_without_a_file_or_without_speculation(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert switch.current() == ""
    say("wrong")
    monkeypatch.setattr(switch, "_is_speculative", False)
    assert not switch.is_on("wrong")


def test_another_fault_starts_with_nothing_remembered(say: Say) -> None:
    say("wrong")
    assert switch.is_on("wrong")
    switch.state["count"] = 3
    assert switch.is_on("wrong")
    assert switch.state == {"count": 3}
    say("mended+wrong")
    assert switch.is_on("wrong")
    assert switch.state == {}


def test_a_wrapped_function_stays_what_it_was() -> None:
    class Owner:
        @staticmethod
        def plain(value: int) -> int:
            return value

        def method(self, value: int) -> int:
            return value

    for name in ("plain", "method"):

        @switch.wraps(Owner, name)
        def _add(original: Any, *args: Any) -> Any:
            return original(*args) + 1

    assert Owner.plain(1) == Owner().plain(1) == Owner().method(1) == 2
