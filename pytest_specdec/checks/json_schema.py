"""Whether an answer is JSON and satisfies the prompt's JSON Schema.

Strict JSON, the schema's own dialect, formats asserted. Floor 2: imports from the floors below and
its own; `jsonschema` is imported on use.
"""

from __future__ import annotations

from typing import Any

from pytest_specdec.checks.answer_text import around, ended_badly, spoiled
from pytest_specdec.checks.finding import Finding, finding_on
from pytest_specdec.generation import Generation
from pytest_specdec.json_schemas import JsonSchema, validator
from pytest_specdec.json_text import (
    JsonError,
    bare_pointer,
    loads,
    pointer,
    quoted,
    shortened,
    shortened_text,
)
from pytest_specdec.workload import Prompt

ANY_OBJECT: JsonSchema = {"type": "object"}


def check_json(prompt: Prompt, generation: Generation) -> Finding | None:
    """The answer's defect as JSON; `None` for a valid one.

    Without a schema the answer must be a JSON object, as `response_format` of type `json_object`
    promises.
    """
    ended = ended_badly(prompt, generation)
    if ended is not None:
        return ended
    try:
        value = loads(generation.text)
    except JsonError as error:
        return (
            _doubled(prompt, generation.text, error)
            or spoiled(prompt, generation)
            or _unparsed(prompt, generation.text, error)
        )
    schema = ANY_OBJECT if prompt.json_schema is None else prompt.json_schema
    return _violation(prompt, value, schema)


def _doubled(prompt: Prompt, text: str, error: JsonError) -> Finding | None:
    """A brace that stands right after an equal one where none may, at either end or inside."""
    position = error.position
    if position is None:
        return None
    brace = text[position : position + 1]
    if brace not in ("{", "}") or not text[:position].rstrip().endswith(brace):
        return None
    return finding_on(
        "doubled braces",
        prompt,
        f"a second `{brace}` at character {position}, where JSON has no place for it",
        f"around it: {around(text, position)}",
        hint="a grammar that is a token behind the text asks for the same token again: see whether "
        "the baseline engine does it too",
        position=position,
    )


def _unparsed(prompt: Prompt, text: str, error: JsonError) -> Finding:
    position = error.position
    start = _start(text)
    if position is not None and error.is_text_after_end and text[:start].strip() == "":
        return finding_on(
            "text after the end",
            prompt,
            f"a whole JSON value ends before character {position}; "
            f"after it: {quoted(text[position:])}",
            position=position,
        )
    if text[:start].strip() and _is_json(text[start:]):
        return finding_on(
            "text before the start",
            prompt,
            f"a whole JSON value begins at character {start}; before it: {quoted(text[:start])}",
            position=0,
        )
    where = "" if position is None else f" at character {position}"
    shown = (
        f"answer: {quoted(text)}" if position is None else f"around it: {around(text, position)}"
    )
    return finding_on("invalid JSON", prompt, f"{error.fact}{where}", shown, position=position)


def _start(text: str) -> int:
    """Where the first object or array begins; the text's end where there is none."""
    return min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=len(text))


def _is_json(text: str) -> bool:
    try:
        loads(text)
    except JsonError:
        return False
    return True


def _violation(prompt: Prompt, value: Any, schema: JsonSchema) -> Finding | None:
    from jsonschema.exceptions import best_match

    try:
        errors = list(validator(schema).iter_errors(value))
    except RecursionError:
        return finding_on(
            "invalid JSON", prompt, "nested too deeply to be checked against the schema"
        )
    best = best_match(errors)
    if best is None:
        return None
    facts = [f"at {pointer(best.absolute_path)}: {shortened(best.instance)}"]
    if isinstance(best.validator, str):  # a schema that is `false` has no keyword
        facts.append(f"breaks `{best.validator}`: {shortened(best.validator_value)}")
    facts.append(f"in words: {shortened_text(best.message, 200)}")
    if len(errors) > 1:
        facts.append(f"violations of the schema in all: {len(errors)}")
    at = bare_pointer(best.absolute_path)
    return finding_on("schema violation", prompt, *facts, pointer=at)
