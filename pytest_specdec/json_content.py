"""JSON in a string, asserted where a JSON Schema declares it.

The arguments of a tool call are such a string in OpenAI's form. JSON Schema has words for it
(`contentMediaType`, `contentSchema`), which `jsonschema` reads past. `jsonschema` is imported on
use. Floor 0: imports only its own floor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pytest_specdec.json_text import JsonError, loads, pointer


@cache
def with_content(dialect: Any) -> Any:
    """The dialect, asserting what it has words for about JSON in a string.

    `contentMediaType` came with draft 7 and `contentSchema` with 2019-09.
    """
    from jsonschema import validators

    newer = (validators.Draft201909Validator, validators.Draft202012Validator)
    keywords: dict[str, Any] = {}
    if dialect in (validators.Draft7Validator, *newer):
        keywords["contentMediaType"] = _check_media_type
    if dialect in newer:
        keywords["contentSchema"] = _check_content
    return validators.extend(dialect, keywords)


def _check_media_type(_: Any, __: str, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if not _holds_json(instance, schema):
        return
    try:
        loads(instance)
    except JsonError as error:
        where = "" if error.position is None else f" at character {error.position}"
        yield ValidationError(f"the string is not JSON: {error.fact}{where}")


def _check_content(
    validator: Any, content: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError, best_match

    if not _holds_json(instance, schema):
        return
    try:
        value = loads(instance)
    except JsonError:
        return  # `contentMediaType` says so
    best = best_match(validator.descend(value, content))
    if best is not None:
        where = pointer(best.absolute_path)
        yield ValidationError(f"in the string, at {where}: {best.message}")


def _holds_json(instance: Any, schema: Mapping[str, Any]) -> bool:
    is_json = schema.get("contentMediaType") == "application/json"
    return isinstance(instance, str) and is_json and "contentEncoding" not in schema
