"""JSON Schemas: which dialect a schema is in, whether it is sound, and its validator.

Both the reading of workloads and the JSON check stand on this, so that the schema that was
accepted is the schema that is checked. Formats are asserted, and JSON in strings (`json_keywords`).
Nothing is ever fetched: a reference must resolve inside the schema or to a published metaschema.
`jsonschema` is imported on use. Floor 0: imports only its own floor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pytest_specdec.json_keywords import with_our_keywords
from pytest_specdec.json_text import pointer, shortened_text

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

JsonSchema = Mapping[str, Any] | bool

# Formats that `jsonschema` skips without a word unless a package of its extra is installed.
FORMATS_OF_EXTRA = frozenset(
    {
        "date-time",
        "duration",
        "hostname",
        "idn-hostname",
        "iri",
        "iri-reference",
        "json-pointer",
        "relative-json-pointer",
        "time",
        "uri",
        "uri-reference",
        "uri-template",
    }
)


class SchemaDefect(ValueError):
    """A schema cannot be used; `str` says where in it and what.

    Attributes:
        hint: what to do about it.
    """

    def __init__(self, fact: str, *, hint: str) -> None:
        super().__init__(fact)
        self.hint = hint


def validator(schema: JsonSchema) -> Validator:
    """A validator in the schema's own dialect (2020-12 where it names none), formats asserted."""
    from jsonschema_specifications import REGISTRY

    dialect = with_our_keywords(_dialect(schema))
    if isinstance(schema, Mapping):  # below a `$ref` to the root, jsonschema would go by it again
        schema = {key: value for key, value in schema.items() if key != "$schema"}
    # Without a registry of its own, jsonschema would fetch remote references over the network.
    built: Validator = dialect(schema, format_checker=dialect.FORMAT_CHECKER, registry=REGISTRY)
    return built


def check_schema(schema: JsonSchema) -> None:
    """Refuses a schema that answers could not be checked against in full.

    Raises:
        SchemaDefect: for an unknown dialect, a schema its metaschema refuses, a reference that
            does not resolve, a pattern Python cannot compile, a format nothing here can check.
    """
    from jsonschema.exceptions import SchemaError

    dialect = _dialect(schema)
    try:
        dialect.check_schema(schema)
    except SchemaError as error:
        where = pointer(error.absolute_path)
        raise SchemaDefect(
            f"broken JSON Schema at {where}: {shortened_text(error.message)}",
            hint=f"the metaschema's rule there is `{error.validator}`",
        ) from None
    except RecursionError:
        raise SchemaDefect("the JSON Schema is nested too deeply", hint="flatten it") from None
    for part, resolver in _subschemas(schema, dialect):
        _check_references(part, resolver)
        _check_patterns(part)
        _check_format(part)


def _dialect(schema: JsonSchema) -> Any:
    from jsonschema.validators import Draft202012Validator, validator_for

    uri = schema.get("$schema") if isinstance(schema, Mapping) else None
    if uri is None:
        return Draft202012Validator
    # `default` is what an unknown URI gives; the stubs want a class.
    unknown: Any = None
    found: Any = validator_for(schema, default=unknown) if isinstance(uri, str) else None
    if found is None:
        raise SchemaDefect(
            f"`$schema` names a dialect that jsonschema does not know: {uri}",
            hint="write `https://json-schema.org/draft/2020-12/schema`, "
            "`http://json-schema.org/draft-07/schema#`, or leave `$schema` out",
        )
    return found


def _subschemas(schema: JsonSchema, dialect: Any) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Every schema inside the schema, itself first, with the resolver for its references."""
    from jsonschema_specifications import REGISTRY
    from referencing import Resource
    from referencing.jsonschema import specification_with

    uri = dialect.META_SCHEMA.get("$id") or dialect.META_SCHEMA["id"]
    root = Resource.from_contents(schema, default_specification=specification_with(uri))
    waiting = [(root, REGISTRY.resolver_with_root(root))]
    while waiting:
        resource, resolver = waiting.pop()
        if isinstance(resource.contents, Mapping):
            yield resource.contents, resolver
        waiting += [(sub, resolver.in_subresource(sub)) for sub in resource.subresources()]


def _check_references(part: Mapping[str, Any], resolver: Any) -> None:
    from referencing.exceptions import Unresolvable

    for key in ("$ref", "$dynamicRef"):
        reference = part.get(key)
        if not isinstance(reference, str):
            continue
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise SchemaDefect(
                f"`{key}` of the JSON Schema does not resolve: {reference}",
                hint="put the schema it means under `$defs`; nothing is fetched",
            ) from None


def _check_patterns(part: Mapping[str, Any]) -> None:
    patterns = [part["pattern"]] if isinstance(part.get("pattern"), str) else []
    patterns += part.get("patternProperties", {})
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise SchemaDefect(
                f"a pattern of the JSON Schema does not compile: {pattern} ({error})",
                hint="patterns are searched with Python's `re`",
            ) from None


def _check_format(part: Mapping[str, Any]) -> None:
    from jsonschema import FormatChecker

    name = part.get("format")
    if name in FORMATS_OF_EXTRA and name not in FormatChecker.checkers:
        raise SchemaDefect(
            f"nothing installed here can check the format: {name}",
            hint="pip install 'jsonschema[format-nongpl]'",
        )


def defect_by_shipped(file: str, data: Any, *, version: int) -> str | None:
    """What a schema that is shipped with this package has against a file's data, by place; a wrong
    `schema_version` explains the rest, so it is told alone.

    Args:
        file: the schema's, from the package's folder.
        version: the one that this package reads, and the schema is of.
    """
    from jsonschema.exceptions import best_match

    told = data.get("schema_version") if isinstance(data, dict) else None
    if told is not None and (type(told) is not int or told != version):
        return f"`/schema_version` is {told!r}, but this pytest-specdec reads {version}"
    error = best_match(_shipped(file).iter_errors(data))
    if error is None:
        return None
    return f"{pointer(error.absolute_path)}: {shortened_text(error.message)}"


@cache
def _shipped(file: str) -> Validator:
    path = files("pytest_specdec").joinpath(file)
    return validator(json.loads(path.read_text(encoding="utf-8")))
