"""The suites that are shipped: whose their token ids are, and what shows that they do something."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_specdec.workload import Prompt, Workload, read_workload

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs/guides/workloads.md"
TOKENIZER = ROOT / ".models" / "smollm2-135m-instruct" / "tokenizer.json"
WORKLOADS = [read_workload(path) for path in sorted((ROOT / "suites").rglob("*.jsonl"))]
FIELDS = ("stop_token_ids", "allowed_token_ids", "logit_bias")


def given() -> Iterator[tuple[Workload, Prompt, str]]:
    """Every field of a prompt that holds token ids."""
    for workload in WORKLOADS:
        for prompt in workload.prompts:
            for field in FIELDS:
                if field in prompt.request:
                    yield workload, prompt, field


def told() -> dict[tuple[str, str, str], list[str]]:
    """The table of the guide to workloads: by workload, prompt and field the tokens."""
    text = GUIDE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+?)` \| `(.+?)` \| `(.+?)` \| (.+) \|$", text, re.MULTILINE)
    return {
        (workload, prompt_id, field): [
            json.loads(each) for each in re.findall(r"`(.*?)`", tokens.replace(r"\|", "|"))
        ]
        for workload, prompt_id, field, tokens in rows
    }


def test_each_prompt_with_token_ids_is_told_with_its_tokens() -> None:
    tokenizer = json.loads(TOKENIZER.read_text(encoding="utf-8"))
    vocabulary = {token_id: token for token, token_id in tokenizer["model"]["vocab"].items()}
    assert told() == {
        (workload.name, prompt.id, field): [
            vocabulary[int(each)].replace("Ġ", " ") for each in prompt.request[field]
        ]
        for workload, prompt, field in given()
    }


@pytest.mark.parametrize(
    ("workload", "prompt", "field"),
    [
        pytest.param(*each, id=f"{each[1].id}-{each[2]}")
        for each in given()
        if not each[1].is_refused
    ],
)
def test_its_twin_shows_whether_they_do_something(
    workload: Workload, prompt: Prompt, field: str
) -> None:
    """With another model's tokenizer they are other tokens."""
    plain = {key: value for key, value in prompt.request.items() if key != field}
    assert any(each.request == plain for each in workload.asked)


def test_the_header_says_whose_they_are() -> None:
    for workload, _, _ in given():
        assert "SmolLM2" in workload.description
