"""Workloads: named lists of prompts in `.jsonl` files, with OpenAI field names.

One JSON object a line. An optional first line describes the workload and gives defaults:

    {"workload": {"description": "...", "concurrency": 1}, "defaults": {"max_tokens": 96}}
    {"id": "first", "messages": [{"role": "user", "content": "..."}], "expect": {...}}

A prompt's fields are merged over `defaults`. What a prompt declares decides which checks it gets:
`response_format` and `structured_outputs` constrain the engine, `expect` says what a valid answer
is. Floor 0: imports only its own floor.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_specdec.errors import WorkloadError, did_you_mean

SAMPLING_FIELDS = frozenset(
    {
        "max_tokens",
        "min_tokens",
        "temperature",
        "top_p",
        "top_k",
        "seed",
        "stop",
        "stop_token_ids",
        "ignore_eos",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "bad_words",
        "allowed_token_ids",
    }
)
REQUEST_FIELDS = SAMPLING_FIELDS | {"messages", "response_format", "structured_outputs"}
PROMPT_FIELDS = REQUEST_FIELDS | {"id", "expect"}
HEADER_FIELDS = frozenset({"workload", "defaults"})
WORKLOAD_FIELDS = frozenset({"description", "concurrency"})
EXPECT_FIELDS = frozenset({"json_schema", "sql"})
SQL_FIELDS = frozenset({"dialect", "ddl", "statement"})
RESPONSE_FORMATS = frozenset({"json_schema", "json_object"})
STRUCTURED_OUTPUTS = frozenset({"regex", "choice", "grammar"})
ROLES = frozenset({"system", "user", "assistant"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlExpectation:
    """What a valid SQL answer is.

    Attributes:
        dialect: sqlglot's name for it, such as `sqlite`.
        ddl: the `CREATE TABLE` statements that names are resolved against.
        statement: the kind the answer must be: `select`, `insert`, `update` or `delete`.
    """

    dialect: str
    ddl: str
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request, and what a valid answer to it is.

    Attributes:
        id: unique in its workload.
        request: the request body sent to the engine, OpenAI field names.
        json_schema: the JSON Schema a valid answer satisfies, or `None`. `response_format` of
            type `json_schema` declares it; `expect.json_schema` may declare a stricter one.
        sql: what a valid SQL answer is, or `None`.
        line: where it stands in its file, 1-based.
    """

    id: str
    request: Mapping[str, Any]
    json_schema: Mapping[str, Any] | bool | None
    sql: SqlExpectation | None
    line: int

    @property
    def is_constrained(self) -> bool:
        """Whether the engine is held to a grammar, so that every answer must be valid."""
        return "response_format" in self.request or "structured_outputs" in self.request


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A named list of prompts.

    Attributes:
        name: the file's name without its ending; the key in stored baselines.
        path: the file.
        description: one line for reports.
        concurrency: requests in flight; exactly this many while enough prompts are left.
        prompts: in file order; at least one.
    """

    name: str
    path: Path
    description: str
    concurrency: int
    prompts: tuple[Prompt, ...]

    @property
    def digest(self) -> str:
        """SHA-256 over everything sent to the engine: equal digests are comparable numbers."""
        sent = [self.concurrency, [[prompt.id, prompt.request] for prompt in self.prompts]]
        return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()

    def prompt(self, prompt_id: str) -> Prompt:
        """The prompt of that id. Raises KeyError if there is none."""
        for prompt in self.prompts:
            if prompt.id == prompt_id:
                return prompt
        raise KeyError(prompt_id)


def read_workload(path: Path) -> Workload:
    """Reads and checks one `.jsonl` workload; what each check refuses is in its message.

    Raises:
        WorkloadError: naming file, line and key.
    """
    raise NotImplementedError
