"""Sweeps: how a header's is read, what a workload is at each point, and the records before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.errors import WorkloadError
from pytest_specdec.records import CHARS_PER_TOKEN, records
from pytest_specdec.sweep import Point
from pytest_specdec.workload import Workload, read_workload

ASKED = "Orders:\n{records}\nWrite order 7 as JSON."


def prompt(prompt_id: str = "one", content: str = "Hi", **fields: Any) -> Mapping[str, Any]:
    messages = [{"role": "user", "content": content}]
    return {"id": prompt_id, "messages": messages, "max_tokens": 8, **fields}


def read(folder: Path, *prompts: Mapping[str, Any], **about: Any) -> Workload:
    path = folder / "orders.jsonl"
    rows = [{"workload": about}, *(prompts or [prompt(), prompt("two")])]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return read_workload(path)


def test_a_workload_without_a_sweep_has_one_point_its_own_load(tmp_path: Path) -> None:
    workload = read(tmp_path, concurrency=3)
    assert workload.sweep is None
    assert workload.points == (Point(in_flight=3),)
    assert workload.own_point == Point(in_flight=3)
    assert workload.point is None
    assert workload.base_name == workload.name == "orders"


def test_its_points_are_each_of_one_list_with_each_of_the_others(tmp_path: Path) -> None:
    sweep = {"in_flight": [1, 2], "context_tokens": [64, 128], "temperature": [0, 0.5]}
    workload = read(tmp_path, prompt(content=ASKED), prompt("two", ASKED), sweep=sweep)
    assert [each.name for each in workload.points] == [
        f"in_flight={load},context_tokens={tokens},temperature={temperature}"
        for temperature in ("0", "0.5")
        for tokens in (64, 128)
        for load in (1, 2)
    ]


def test_a_point_is_another_load(tmp_path: Path) -> None:
    workload = read(
        tmp_path,
        prompt(),
        prompt("two", min_p=0.1, expect={"refused": True}),
        prompt("three"),
        concurrency=1,
        gated=[],
        again=["not-streamed"],
        sweep={"in_flight": [1, 2]},
    )
    at = workload.at(Point(in_flight=2))
    assert (at.name, at.base_name, at.path) == ("orders@in_flight=2", "orders", workload.path)
    assert (at.concurrency, at.point) == (2, Point(in_flight=2))
    # It is there to be timed: nothing is tried beside it.
    assert (at.gated, at.again, [each.id for each in at.prompts]) == (
        ("speedup",),
        (),
        ["one", "three"],
    )
    assert at.at(Point(in_flight=1)).name == "orders@in_flight=1"
    assert workload.digest != at.digest


def test_a_point_is_more_context(tmp_path: Path) -> None:
    prompts = [prompt(content=ASKED), prompt("two", content=ASKED)]
    workload = read(tmp_path, *prompts, sweep={"context_tokens": [128, 512]})
    short, long = (workload.at(point) for point in workload.points)

    def content(of: Workload, prompt_id: str = "one") -> str:
        return str(of.prompt(prompt_id).request["messages"][0]["content"])

    # As it is, it has the first context.
    assert content(workload) == content(short) == ASKED.replace("{records}", records("one", 128))
    assert content(long) == ASKED.replace("{records}", records("one", 512))
    assert content(long, "two") == ASKED.replace("{records}", records("two", 512))
    assert content(long.at(short.point or Point(in_flight=9))) == content(short)
    assert long.digest != short.digest == workload.digest


def test_a_point_is_another_temperature(tmp_path: Path) -> None:
    prompts = [prompt(temperature=1), prompt("two")]
    workload = read(tmp_path, *prompts, sweep={"temperature": [0, 0.7]})
    greedy, sampled = (workload.at(point) for point in workload.points)
    assert [each.request["temperature"] for each in sampled.prompts] == [0.7, 0.7]
    assert all(each.is_greedy for each in greedy.prompts)
    assert [each.request.get("temperature") for each in workload.prompts] == [1, None]
    assert sampled.name == "orders@in_flight=1,temperature=0.7"


@pytest.mark.parametrize(
    ("about", "temperature", "name"),
    [
        ({"concurrency": 2, "sweep": {"in_flight": [1, 2]}}, 0, "in_flight=2"),
        ({"concurrency": 3, "sweep": {"in_flight": [2, 1]}}, 0, "in_flight=2"),
        ({"sweep": {"temperature": [1, 0]}}, 0, "in_flight=1,temperature=0"),
        ({"sweep": {"temperature": [1, 0.5]}}, 0, "in_flight=1,temperature=1"),
        ({"sweep": {"temperature": [0, 0.5]}}, 0.5, "in_flight=1,temperature=0.5"),
    ],
)
def test_the_point_that_is_nearest_to_the_workload_as_it_is(
    tmp_path: Path, about: Mapping[str, Any], temperature: float, name: str
) -> None:
    prompts = [prompt(each, temperature=temperature) for each in ("one", "two")]
    assert read(tmp_path, *prompts, **about).own_point.name == name


def test_the_nearest_point_has_the_first_context(tmp_path: Path) -> None:
    sweep = {"context_tokens": [256, 64], "in_flight": [2, 1]}
    workload = read(tmp_path, prompt(content=ASKED), prompt("two", ASKED), sweep=sweep)
    assert workload.own_point == Point(in_flight=1, context_tokens=256)


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        ([1], "1: `workload.sweep` must be an object: [1]"),
        (
            {},
            "1: `workload.sweep` is empty\n"
            "hint: give it one of: `in_flight`, `context_tokens`, `temperature`",
        ),
        (
            {"inflight": [1]},
            "1: unknown key in `workload.sweep`: `inflight`\nhint: did you mean `in_flight`?",
        ),
        (
            {"in_flight": 4},
            "1: `workload.sweep.in_flight` must be a list of at least one number: 4",
        ),
        ({"temperature": []}, "1: `workload.sweep.temperature` must be a list of at least one"),
        ({"in_flight": [0]}, "1: `workload.sweep.in_flight` must be integers of at least 1: 0"),
        ({"in_flight": [True]}, "1: `workload.sweep.in_flight` must be integers of at least 1"),
        (
            {"context_tokens": [1.5]},
            "1: `workload.sweep.context_tokens` must be integers of at least 1: 1.5",
        ),
        ({"temperature": [2.1]}, "1: `workload.sweep.temperature` must be numbers from 0 to 2"),
        ({"temperature": ["0"]}, "1: `workload.sweep.temperature` must be numbers from 0 to 2"),
        (
            {"in_flight": [1, 2, 1]},
            "1: `workload.sweep.in_flight` must be numbers that are all different: [1, 2, 1]",
        ),
        ({"temperature": [0, 0.0]}, "1: `workload.sweep.temperature` must be numbers that are all"),
        (
            {"context_tokens": [64]},
            "2: `workload.sweep.context_tokens` is given, and no message has `{records}`\n"
            "hint: write `{records}` where the records are to stand",
        ),
    ],
)
def test_refuses_a_sweep(tmp_path: Path, sweep: object, said: str) -> None:
    assert refusal(tmp_path, sweep=sweep).startswith(said)


def test_refuses_a_place_for_records_where_there_are_none(tmp_path: Path) -> None:
    for about in ({}, {"sweep": {"temperature": [0]}}):
        assert refusal(tmp_path, prompt(), prompt("two", ASKED), **about) == (
            "3: a message has `{records}`, and the header says nothing of how many\n"
            'hint: give their tokens: `"sweep": {"context_tokens": [128]}` in `workload`'
        )


def test_refuses_two_words_on_how_long_a_prompt_is(tmp_path: Path) -> None:
    sweep = {"context_tokens": [64]}
    assert refusal(tmp_path, prompt(content=ASKED, context_left=9), sweep=sweep) == (
        "2: `context_left` and `workload.sweep.context_tokens` both say how long the prompt is\n"
        "hint: keep one of them"
    )


def test_refuses_a_temperature_that_a_prompt_cannot_have(tmp_path: Path) -> None:
    several = prompt("two", n=2, temperature=1)
    said = refusal(tmp_path, prompt(), several, sweep={"temperature": [1, 0]})
    assert said.startswith("3: `n` is 2 at temperature 0\nhint: ")


def refusal(folder: Path, *prompts: Mapping[str, Any], **about: Any) -> str:
    with pytest.raises(WorkloadError) as caught:
        read(folder, *prompts, **about)
    return str(caught.value).removeprefix(f"{folder / 'orders.jsonl'}:")


def test_a_load_above_the_number_of_prompts_sends_some_again(tmp_path: Path) -> None:
    asked = [prompt(content=ASKED), prompt("two", content=ASKED)]
    sweep = {"in_flight": [1, 5], "context_tokens": [64]}
    workload = read(tmp_path, *asked, concurrency=4, sweep=sweep)
    assert [each.id for each in workload.prompts] == ["one", "two"]
    at = workload.at(Point(in_flight=5, context_tokens=64))
    assert [each.id for each in at.prompts] == ["one", "two", "one~2", "two~2", "one~3"]
    # Each has records of its own, so that the prefix cache serves none of it.
    assert len({str(each.request) for each in at.prompts}) == 5
    assert len(workload.at(Point(in_flight=1, context_tokens=64)).prompts) == 2


def test_records_are_a_prompts_own_and_always_the_same() -> None:
    assert records("one", 512) == records("one", 512)
    assert not {*records("one", 512).split("\n")} & {*records("two", 512).split("\n")}


def test_more_records_begin_with_fewer() -> None:
    short, long = records("one", 128), records("one", 512)
    assert long.startswith(f"{short}\n")


@pytest.mark.parametrize("num_tokens", [128, 512, 8192])
def test_records_are_about_as_long_as_they_are_to_be(num_tokens: int) -> None:
    text = records("one", num_tokens)
    assert len(text) / CHARS_PER_TOKEN == pytest.approx(num_tokens, abs=16)
    lines = text.split("\n")
    assert {each.split()[0] for each in lines} <= {"order", "customer", "part"}
    assert len({*lines}) == len(lines)


def test_there_is_at_least_one_record() -> None:
    assert records("one", 1).count(":") == 1
