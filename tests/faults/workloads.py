"""Small workloads for the faults: a few prompts of the suites, asked in other ways."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_specdec.workload import Workload, read_workload

SUITES = Path(__file__).resolve().parents[2] / "suites"
Row = Mapping[str, Any]


def taken(suite: str, *ids: str, **fields: Any) -> list[Row]:
    """Prompts of a suite's workload, with these fields beside or in place of theirs."""
    lines = (SUITES / f"{suite}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {row["id"]: row for row in map(json.loads, lines[1:])}
    return [{**rows[name], **fields} for name in ids]


def seeded(suite: str, *ids: str) -> list[Row]:
    """Prompts of a suite's workload, sampled, each with a seed of its own and room to end."""
    rows = taken(suite, *ids, max_tokens=80, **SAMPLED)
    return [{**row, "seed": number} for number, row in enumerate(rows)]


def user(name: str, content: str, **fields: Any) -> Row:
    """A prompt of one message."""
    return {"id": name, "messages": [{"role": "user", "content": content}], **fields}


SAMPLED = {"temperature": 1}
CODE = taken("predictable/code", "rename-class", "rename-argument", "hints-area", "hints-greeting")
LIST = "Repeat this list three times: red, green, blue, red, green, blue, red, green, blue."
LIST_ONCE = "Repeat this list: red, green, blue, red, green, blue, red, green, blue."
LETTERS = "Repeat: alpha beta gamma delta alpha beta gamma delta alpha beta gamma delta"
COUNTED = "Repeat this line four times: one two three four five six seven eight"
BARRED = ("twelve-in-a-draft", "seven-in-a-draft", "kettle-in-a-draft")
SHAPE = {"max_tokens": 48, **SAMPLED}
WORDS = ("alpha beta gamma delta", "red green blue white", "one two three four")
LAST = ("now", "then", "never", "again")
SENTENCES = (
    "Write a sentence about the sea, and then write the same sentence again.",
    "Describe a green door. Then describe the green door again.",
    "Name four animals, and name the same four animals once more.",
    "List the days of the week, then list the days of the week again.",
    "Write a line about rain and a line about rain and a line about rain.",
    "Say good morning to Anna, and good morning to Ben, and good morning to Carl.",
)

WORKLOADS: Mapping[str, tuple[Mapping[str, Any], Sequence[Row]]] = {
    "code": ({"concurrency": 4}, CODE),
    "one": ({"concurrency": 1}, taken("predictable/code", "rename-class", "hints-area")),
    # Sampled with a seed, so that runs repeat each other; a greedy prompt is among them, because a
    # constraint leaves few draft tokens to be rejected.
    "json": (
        {"concurrency": 4},
        [
            *seeded("predictable/json_generation", "ticket-vpn", "order-lamps", "sensor-roof"),
            CODE[0],
        ],
    ),
    "sql": (
        {"concurrency": 4},
        [*seeded("predictable/sql", "shop-city", "stock-cheap", "staff-legal"), CODE[0]],
    ),
    "regex": (
        {"concurrency": 1},
        [
            *(
                user(
                    f"regex-{number}",
                    f"Write these words twice: {words} {words}",
                    structured_outputs={"regex": r"[a-z]{3,8}( [a-z]{3,8}){9,11}"},
                    seed=number,
                    **SHAPE,
                )
                for number, words in enumerate(WORDS)
            ),
            CODE[0],
        ],
    ),
    "choice": (
        {"concurrency": 1},
        [
            *(
                user(
                    f"choice-{number}",
                    f"Say which words you see: {words} {words}",
                    structured_outputs={"choice": [f"{words} {words} {last}" for last in LAST]},
                    seed=number,
                    **SHAPE,
                )
                for number, words in enumerate(WORDS)
            ),
            CODE[0],
        ],
    ),
    "stop": (
        {"concurrency": 4},
        [
            # In the midst of what is copied.
            *({**row, "stop": [":\n"], **SAMPLED} for row in CODE),
            {**CODE[2], "id": "stop-none", **SAMPLED},
        ],
    ),
    "penalties": (
        {"concurrency": 4},
        [
            user("plain", LIST),
            user("presence", LIST, presence_penalty=1.5),
            user("repetition", LIST, repetition_penalty=1.4),
        ],
    ),
    "bad-words": (
        {"concurrency": 4},
        [CODE[0], {**CODE[0], "id": "bad-words", "bad_words": ["python"]}],
    ),
    "min-tokens": (
        {"concurrency": 4},
        [
            user("plain", LIST_ONCE),
            user("min-tokens", LIST_ONCE, min_tokens=36),
            *CODE[:1],
        ],
    ),
    "min-tokens-in-a-draft": (
        {"concurrency": 4},
        taken("requests/min_tokens", *BARRED, max_tokens=32),
    ),
    "seeded": (
        {"concurrency": 4},
        [
            user(f"seeded-{number}", text, seed=number, **SAMPLED)
            for number, text in enumerate(SENTENCES[:3])
        ]
        + CODE[:2],
    ),
    "logprobs": (
        {"concurrency": 4},
        [{**row, "logprobs": 1} for row in CODE[:2]],
    ),
    "unsupported": (
        {"concurrency": 4},
        [
            *CODE[:2],
            user("min-p", LIST, min_p=0.2, temperature=1, expect={"refused": True}),
            user("logit-bias", LIST, logit_bias={"260": 5}, expect={"refused": True}),
        ],
    ),
    "sampled": (
        {"concurrency": 8},
        [
            user(f"sampled-{number}-{again}", text, max_tokens=48, **SAMPLED)
            for number, text in enumerate(SENTENCES)
            for again in range(4)
        ],
    ),
    "mixed": (
        {"concurrency": 8},
        [*CODE, *(user(f"sampled-{n}", text, **SAMPLED) for n, text in enumerate(SENTENCES[:4]))],
    ),
    "several": (
        {"concurrency": 4},
        [
            user(f"several-{number}-{again}", text, n=2, max_tokens=48, **SAMPLED)
            for number, text in enumerate(SENTENCES)
            for again in range(2)
        ],
    ),
    "long": (
        {"concurrency": 2},
        [{**CODE[0], "context_left": 240, "max_tokens": 48}, CODE[1]],
    ),
}


def written(folder: Path, name: str, **about: Any) -> Workload:
    """The workload, from a file as a user's is.

    Args:
        about: what its header says beside how many are in flight.
    """
    header, rows = WORKLOADS[name]
    defaults = {"max_tokens": 40, "temperature": 0}
    lines = [{"workload": {**header, **about}, "defaults": defaults}, *rows]
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return read_workload(path)
