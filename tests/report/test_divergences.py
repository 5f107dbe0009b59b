"""Differing answers as data: both texts, and where they part."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import Retake
from pytest_specdec.report.divergences import divergences
from tests.report.reported import workload_report
from tests.said import completion, generation, pair, prompt, walk

OWN, OTHER = generation(text="a b"), generation(token_ids=(5, 7), text="a c")


def found(check: str, about: str, kind: str = "divergence", **facts: Any) -> Any:
    prompt_id = None if check == "again" else about
    finding = Finding(kind=kind, prompt_id=prompt_id, facts=())
    return divergences(
        workload_report(
            **{"findings": {(check, about): finding}, "prompts": (prompt(), prompt("two")), **facts}
        )
    )


def test_of_the_engines() -> None:
    assert found("identical", "one", runs=pair([walk(OWN)], [walk(OTHER)])) == [
        {
            "check": "identical",
            "about": "one",
            "prompt_id": "one",
            "where": "the engines",
            "token_position": 1,
            "text_position": 2,
            "first": {
                "label": "baseline engine",
                "text": "a b",
                "num_tokens": 2,
                "token_id": 6,
                "finish_reason": "stop",
            },
            "second": {
                "label": "speculative engine",
                "text": "a c",
                "num_tokens": 2,
                "token_id": 7,
                "finish_reason": "stop",
            },
        }
    ]


@pytest.mark.parametrize("check", ["identical", "replay"])
def test_of_one_engine_s_passes(check: str) -> None:
    runs = pair([walk(OWN), walk(OWN)], [walk(OWN), walk(OTHER)])
    (each,) = found(check, "one", runs=runs)
    assert each["where"] == "the speculative engine's passes 1 and 2"
    assert [each["first"]["label"], each["second"]["label"]] == [
        "speculative engine, first pass",
        "speculative engine, a later pass",
    ]


@pytest.mark.parametrize(
    ("own", "other", "place"),
    [
        (OWN, generation(token_ids=(5,), text="a b"), (1, None, 6, None)),
        (OWN, generation(token_ids=(5,), text="a"), (1, 1, 6, None)),
        (
            generation(others=(completion(text="x"),)),
            generation(others=(completion((5, 8), text="y"),)),
            (1, 0, 6, 8),
        ),
    ],
)
def test_where_they_part(own: Any, other: Any, place: tuple[int | None, ...]) -> None:
    (each,) = found("identical", "one", runs=pair([walk(own)], [walk(other)]))
    assert (
        each["token_position"],
        each["text_position"],
        each["first"]["token_id"],
        each["second"]["token_id"],
    ) == place


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("divergence", "speculative engine, after-sleep"),
        ("baseline not repeatable", "baseline engine, after-sleep"),
        ("acceptance fell", None),
        ("not brought about", None),
    ],
)
def test_of_a_retake(kind: str, label: str | None) -> None:
    again = walk(OTHER, generation("two"))
    retake = Retake(circumstance="after-sleep", baseline=again, speculative=again)
    first = walk(OWN, generation("two"))
    runs = pair([first], [first])
    object.__setattr__(runs, "retakes", (retake,))
    told = found("again", "after-sleep", kind, runs=runs)
    assert [(each["prompt_id"], each["second"]["label"]) for each in told] == (
        [] if label is None else [("one", label)]
    )


def test_a_retake_that_there_is_not() -> None:
    assert found("again", "after-sleep") == []


@pytest.mark.parametrize("check", ["json", "honoured"])
def test_other_findings_have_none(check: str) -> None:
    assert found(check, "one", runs=pair([walk(OWN)], [walk(OTHER)])) == []


def test_a_near_tie_is_one() -> None:
    tie = Finding(kind="near tie", prompt_id="one", facts=())
    (each,) = divergences(
        workload_report(runs=pair([walk(OWN)], [walk(OTHER)]), near_ties={"one": tie})
    )
    assert (each["check"], each["about"]) == ("identical", "one")
