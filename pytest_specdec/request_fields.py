"""The fields of a request body: which there are, and what each may hold.

Names are OpenAI's and vLLM's. A wrong value is refused here, with the place in the file, and not
by an engine that took a minute to load. Floor 0: imports only its own floor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_specdec.errors import WorkloadError, did_you_mean
from pytest_specdec.json_text import shortened

ROLES = frozenset({"system", "user", "assistant"})
RESPONSE_FORMATS = frozenset({"json_schema", "json_object"})
JSON_SCHEMA_FIELDS = frozenset({"name", "description", "strict", "schema"})
STRUCTURED_OUTPUTS = frozenset({"regex", "choice", "grammar"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of a workload file; every refusal begins with it."""

    path: Path
    line: int

    def refusal(self, fact: str, *, hint: str | None = None) -> WorkloadError:
        return WorkloadError(f"{self.path}:{self.line}: {fact}", hint=hint)

    def wrong(self, key: str, value: object, must_be: str) -> WorkloadError:
        """The refusal of a value: what it must be, then what it is."""
        return self.refusal(f"`{key}` must be {must_be}: {shortened(value)}")

    def check_keys(self, where: str, given: Iterable[str], known: Iterable[str]) -> None:
        names = frozenset(known)
        for key in given:
            if key not in names:
                raise self.refusal(
                    f"unknown key in {where}: `{key}`", hint=did_you_mean(key, names)
                )

    def check_object(self, key: str, value: object) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self.wrong(key, value, "an object")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    must_be: str
    holds: Callable[[Any], bool]


def is_int(value: object, *, least: int | None = None) -> bool:
    """Whether it is an integer, `true` and `false` not among them."""
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return least is None or value >= least


def is_number(value: object, low: float, high: float) -> bool:
    """Whether it is a number of that range, `true` and `false` not among them."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return low <= value <= high


def _is_list(value: object, holds: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(holds(each) for each in value)


def is_text(value: object) -> bool:
    """Whether it is a string with something in it."""
    return isinstance(value, str) and value != ""


def _is_bias(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        key.isdecimal() and is_number(each, -100, 100) for key, each in value.items()
    )


def _number(low: float, high: float) -> _Rule:
    return _Rule(
        must_be=f"a number from {low:g} to {high:g}", holds=lambda v: is_number(v, low, high)
    )


_COUNT = _Rule(must_be="an integer of at least 1", holds=lambda v: is_int(v, least=1))
_TEXTS = _Rule(must_be="a list of at least one string", holds=lambda v: _is_list(v, is_text))
_TOKENS = _Rule(
    must_be="a list of at least one token id",
    holds=lambda v: _is_list(v, lambda each: is_int(each, least=0)),
)
_SAMPLING: dict[str, _Rule] = {
    "max_tokens": _COUNT,
    "min_tokens": _Rule(must_be="an integer of at least 0", holds=lambda v: is_int(v, least=0)),
    "temperature": _number(0, 2),
    "top_p": _Rule(
        must_be="a number above 0, at most 1", holds=lambda v: is_number(v, 0, 1) and v > 0
    ),
    "top_k": _Rule(
        must_be="an integer of at least 1, or 0 or -1 for all tokens",
        holds=lambda v: is_int(v, least=-1),
    ),
    "seed": _Rule(must_be="an integer", holds=is_int),
    "stop": _Rule(
        must_be="a string or a list of at least one string",
        holds=lambda v: is_text(v) or _is_list(v, is_text),
    ),
    "stop_token_ids": _TOKENS,
    "ignore_eos": _Rule(must_be="true or false", holds=lambda v: isinstance(v, bool)),
    "presence_penalty": _number(-2, 2),
    "frequency_penalty": _number(-2, 2),
    "repetition_penalty": _Rule(
        must_be="a number above 0, at most 2", holds=lambda v: is_number(v, 0, 2) and v > 0
    ),
    "bad_words": _TEXTS,
    "allowed_token_ids": _TOKENS,
    "min_p": _number(0, 1),
    "logit_bias": _Rule(
        must_be="an object of numbers from -100 to 100 by token id", holds=_is_bias
    ),
    "logprobs": _Rule(must_be="an integer of at least 0", holds=lambda v: is_int(v, least=0)),
    "n": _COUNT,
}
_PROMPT: dict[str, _Rule] = {
    # Ours: how many tokens of the context window the prompt leaves; its last message is repeated.
    "context_left": _COUNT,
}
SAMPLING_FIELDS = frozenset(_SAMPLING)
REQUEST_FIELDS = SAMPLING_FIELDS | {
    "messages",
    "response_format",
    "structured_outputs",
    *_PROMPT,
}


def check_request(place: Place, request: Mapping[str, Any]) -> None:
    """Refuses a request body that no engine should be asked; its keys are known already."""
    if "messages" not in request:
        raise place.refusal("`messages` is missing", hint='add `"messages": [...]`')
    _check_messages(place, request["messages"])
    if "max_tokens" not in request:
        raise place.refusal(
            "`max_tokens` is missing", hint="add it to the prompt or to the header's `defaults`"
        )
    for key, rule in (_SAMPLING | _PROMPT).items():
        if key in request and not rule.holds(request[key]):
            raise place.wrong(key, request[key], rule.must_be)
    _check_together(place, request)
    if "response_format" in request:
        _check_response_format(place, request["response_format"])
    if "structured_outputs" in request:
        _check_structured_outputs(place, request["structured_outputs"])


def _check_together(place: Place, request: Mapping[str, Any]) -> None:
    """Refuses fields that are right alone and wrong beside each other."""
    if "context_left" in request and not request["messages"][-1]["content"]:
        raise place.refusal(
            "`context_left` repeats the last message, which is empty",
            hint="write the text that is to fill the context window into it",
        )
    if request.get("min_tokens", 0) > request["max_tokens"]:
        raise place.wrong("min_tokens", request["min_tokens"], "at most `max_tokens`")
    if request.get("n", 1) > 1 and not request.get("temperature", 0):
        raise place.refusal(
            f"`n` is {request['n']} at temperature 0",
            hint="vLLM takes it above temperature 0 alone: greedy answers are all the same",
        )
    if "response_format" in request and "structured_outputs" in request:
        raise place.refusal(
            "`response_format` and `structured_outputs` are both given", hint="keep one of them"
        )


def _check_messages(place: Place, messages: object) -> None:
    if not isinstance(messages, list) or not messages:
        raise place.wrong("messages", messages, "a list of at least one message")
    for position, message in enumerate(messages):
        where = f"messages[{position}]"
        fields = place.check_object(where, message)
        place.check_keys(f"`{where}`", fields, ("role", "content"))
        for key in ("role", "content"):
            if not isinstance(fields.get(key), str):
                raise place.wrong(f"{where}.{key}", fields.get(key), "a string")
        if fields["role"] not in ROLES:
            raise place.refusal(
                f"unknown role in `{where}`: `{fields['role']}`",
                hint=did_you_mean(fields["role"], ROLES),
            )


def _check_response_format(place: Place, value: object) -> None:
    fields = place.check_object("response_format", value)
    kind = fields.get("type")
    if not isinstance(kind, str) or kind not in RESPONSE_FORMATS:
        raise place.refusal(
            f"unknown `response_format.type`: {shortened(kind)}",
            hint=did_you_mean(str(kind), RESPONSE_FORMATS),
        )
    known = ("type", "json_schema") if kind == "json_schema" else ("type",)
    place.check_keys("`response_format`", fields, known)
    if kind == "json_schema":
        declared = place.check_object("response_format.json_schema", fields.get("json_schema"))
        place.check_keys("`response_format.json_schema`", declared, JSON_SCHEMA_FIELDS)
        if "schema" not in declared:
            raise place.refusal(
                "`response_format.json_schema` lacks `schema`",
                hint='the schema itself stands one level down: `"json_schema": {"schema": {...}}`',
            )
        place.check_object("response_format.json_schema.schema", declared["schema"])


def _check_structured_outputs(place: Place, value: object) -> None:
    fields = place.check_object("structured_outputs", value)
    place.check_keys("`structured_outputs`", fields, STRUCTURED_OUTPUTS)
    if len(fields) != 1:
        raise place.wrong(
            "structured_outputs", value, "an object with one of `regex`, `choice`, `grammar`"
        )
    ((key, constraint),) = fields.items()
    rule = (
        _TEXTS if key == "choice" else _Rule(must_be="a string with something in it", holds=is_text)
    )
    if not rule.holds(constraint):
        raise place.wrong(f"structured_outputs.{key}", constraint, rule.must_be)
    if key == "regex":
        try:
            re.compile(constraint)
        except re.error as error:
            raise place.refusal(
                f"`structured_outputs.regex` does not compile: {error}",
                hint="answers are matched with Python's `re`",
            ) from None
