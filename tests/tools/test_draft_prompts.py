"""Prompts that the draft is trained on: repeatable, whole, and none of a suite's."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest
import sqlglot

from tools.draft.prompts import Messages, prompts

SUITES = Path(__file__).resolve().parents[2] / "suites"
CHATS = [*islice(prompts(1), 2000)]


def examples(word: str) -> list[str]:
    """What the assistant is shown to have said, in chats whose system prompt has the word."""
    return [
        turn["content"]
        for chat in CHATS
        if word in chat[0]["content"]
        for turn in chat
        if turn["role"] == "assistant"
    ]


def test_a_seed_gives_the_same_prompts() -> None:
    assert [*islice(prompts(1), 2000)] == CHATS
    assert [*islice(prompts(2), 20)] != CHATS[:20]


def test_every_chat_ends_with_a_question() -> None:
    assert all(chat[-1]["role"] == "user" for chat in CHATS)
    assert len({chat[-1]["content"] for chat in CHATS}) > 1500


def test_no_prompt_is_a_suite_s() -> None:
    def last(chat: Messages) -> str:
        return chat[-1]["content"]

    lines = [line for path in SUITES.rglob("*.jsonl") for line in path.read_text().splitlines()]
    asked = {last(json.loads(line)["messages"]) for line in lines if '"messages"' in line}
    assert len(asked) > 100
    assert not asked & {last(chat) for chat in CHATS}


def test_examples_are_right() -> None:
    assert all(sqlglot.parse_one(text, dialect="sqlite") for text in examples("SQL"))
    assert all(json.loads(text) for text in examples("JSON"))
    for text in examples("Python"):
        compile(text.removeprefix("```python\n").removesuffix("\n```"), "example", "exec")


@pytest.mark.parametrize("word", ["SELECT", "INSERT", "{", "```python"])
def test_all_kinds_of_work_are_there(word: str) -> None:
    assert sum(word in turn["content"] for chat in CHATS for turn in chat) > 100
