"""Words of JSON Schema that `jsonschema` reads past, or takes inexactly.

JSON in a string is asserted where a schema declares it (`contentMediaType`, `contentSchema`): the
arguments of a tool call are such a string in OpenAI's form. `multipleOf` is reckoned in decimals,
as the answer is written: 19.99 is a multiple of 0.01. `jsonschema` is imported on use. Floor 0:
imports only its own floor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

from pytest_specdec.json_text import JsonError, loads, pointer


@cache
def with_our_keywords(dialect: Any) -> Any:
    """The dialect with these words, as far as it has them.

    `contentMediaType` came with draft 7 and `contentSchema` with 2019-09.
    """
    from jsonschema import validators

    newer = (validators.Draft201909Validator, validators.Draft202012Validator)
    keywords: dict[str, Any] = {}
    if "multipleOf" in dialect.VALIDATORS:
        keywords["multipleOf"] = _check_multiple
    if dialect in (validators.Draft7Validator, *newer):
        keywords["contentMediaType"] = _check_media_type
    if dialect in newer:
        keywords["contentSchema"] = _check_content
    extend: Any = validators.extend  # the stubs give it no types
    return extend(dialect, keywords)


def _check_multiple(_: Any, factor: Any, instance: Any, __: Mapping[str, Any]) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, bool) or not isinstance(instance, int | float):
        return
    if not _is_multiple(instance, factor):
        yield ValidationError(f"{instance!r} is not a multiple of {factor}")


def _is_multiple(number: float, factor: float) -> bool:
    if isinstance(number, int) and isinstance(factor, int):
        return number % factor == 0
    with localcontext(prec=800):  # digits enough for any two floats
        quotient = Decimal(str(number)) / Decimal(str(factor))
        return quotient.is_finite() and quotient == quotient.to_integral_value()


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
