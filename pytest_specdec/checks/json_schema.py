"""Whether an answer is JSON and satisfies the prompt's JSON Schema.

Strict JSON, the schema's own dialect, formats asserted. Floor 2: imports from the floors below and
its own; `jsonschema` is imported on use.
"""

from __future__ import annotations

from typing import Any

from pytest_specdec.checks.answer_text import around, ended_badly, spoiled
from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import Generation
from pytest_specdec.json_schemas import JsonSchema, validator
from pytest_specdec.json_text import JsonError, loads, pointer, quoted, shortened, shortened_text
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
        return spoiled(prompt, generation) or _unparsed(prompt, generation.text, error)
    schema = ANY_OBJECT if prompt.json_schema is None else prompt.json_schema
    return _violation(prompt, value, schema)


def _unparsed(prompt: Prompt, text: str, error: JsonError) -> Finding:
    position = error.position
    starts_like_json = text.lstrip()[:1] in ("{", "[")
    if position is not None and error.is_text_after_end and starts_like_json:
        return Finding(
            kind="text after the end",
            prompt_id=prompt.id,
            facts=(
                f"a whole JSON value ends before character {position}; "
                f"after it: {quoted(text[position:])}",
            ),
        )
    facts = [error.fact if position is None else f"{error.fact} at character {position}"]
    if position is not None and text.strip():
        facts.append(f"around it: {around(text, position)}")
    else:
        facts.append(f"answer: {quoted(text)}")
    return Finding(kind="invalid JSON", prompt_id=prompt.id, facts=tuple(facts))


def _violation(prompt: Prompt, value: Any, schema: JsonSchema) -> Finding | None:
    from jsonschema.exceptions import best_match

    try:
        errors = list(validator(schema).iter_errors(value))
    except RecursionError:
        return Finding(
            kind="invalid JSON",
            prompt_id=prompt.id,
            facts=("nested too deeply to be checked against the schema",),
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
    return Finding(kind="schema violation", prompt_id=prompt.id, facts=tuple(facts))
