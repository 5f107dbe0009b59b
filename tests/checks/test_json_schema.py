"""The JSON check: what is valid, and what each defect is called."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.json_schema import check_json
from pytest_specdec.json_schemas import JsonSchema
from pytest_specdec.workload import Prompt
from tests.said import answer

PERSON: JsonSchema = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "born": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "integer", "minimum": 0}},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def prompt(schema: JsonSchema | None = PERSON, **request: Any) -> Prompt:
    return Prompt(
        id="one", request={"max_tokens": 7, **request}, json_schema=schema, sql=None, line=1
    )


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (PERSON, '{"name": "Ada"}'),
        (PERSON, ' {"name": "Ada", "born": "1815-12-10", "tags": [0, 1]}\n'),
        (True, "3"),
        (None, "{}"),
        ({"type": "integer"}, "1.0"),  # an integer since draft 6
        ({"const": "<|im_end|>"}, '"<|im_end|>"'),
        ({"type": "string"}, '"```"'),
    ],
)
def test_valid(schema: JsonSchema | None, text: str) -> None:
    assert check_json(prompt(schema), answer(text)) is None


def test_whole_json_at_max_tokens_is_valid() -> None:
    assert check_json(prompt(), answer('{"name": "Ada"}', "length")) is None


@pytest.mark.parametrize(
    ("text", "finish_reason", "kind", "fact"),
    [
        ("", "stop", "empty", "the answer holds no text: '' from 2 tokens, `finish_reason`: stop"),
        (" \n", "stop", "empty", "the answer holds no text: ' \\n'"),
        ('{"name": "A', "length", "truncated", "the answer was cut at `max_tokens`: 7"),
        ('{"name": "A', "stop", "invalid JSON", "unterminated string at character 9"),
        ('{"name":' + "\n" * 32, "length", "whitespace runaway", "the answer ends in 32 char"),
        ('{"name": "A"}' + " " * 40, "length", "whitespace runaway", "the answer ends in 40 char"),
        (" " * 40, "length", "whitespace runaway", "the answer ends in 40 characters"),
        ('{"name":' + "\n" * 31, "length", "truncated", "the answer was cut"),
        ('{"name": "A"} so', "stop", "text after the end", "a whole JSON value ends before char"),
        ('{"name": "A"} so', "length", "truncated", "the answer was cut"),
        ('{"name": "A"}{"name"', "stop", "text after the end", "a whole JSON value ends before"),
        ("1. First", "stop", "invalid JSON", "extra data at character 1"),
        ('```json\n{"name": "A"}\n```', "stop", "fenced", "the answer is wrapped in a Markdown"),
        ('```json\n{"name": "A"', "length", "fenced", "the answer is wrapped in a Markdown"),
        ('{"name": "A"}<|im_end|>', "stop", "special token", "the text holds `<|im_end|>` at char"),
        ('{"name": "A"}<|im_', "stop", "text after the end", "a whole JSON value ends before"),
        ("Sure! {}", "stop", "text before the start", "a whole JSON value begins at character 6;"),
        ('{"a": 1} or [2]', "stop", "text after the end", "a whole JSON value ends before"),
        ("Sure! {", "stop", "invalid JSON", "expecting value at character 0"),
        ("Sure! {} there", "stop", "invalid JSON", "expecting value at character 0"),
        ("Sure! {}", "length", "truncated", "the answer was cut at `max_tokens`: 7"),
        ('{{"name": "A"}', "stop", "doubled braces", "a second `{` at character 1"),
        ('{{"name": "A"}}', "stop", "doubled braces", "a second `{` at character 1"),
        (' {\n {"name": "A', "length", "doubled braces", "a second `{` at character 4"),
        ('{"name": {{"a": 1}}', "stop", "doubled braces", "a second `{` at character 10"),
        ('{"name": "A"}}', "stop", "doubled braces", "a second `}` at character 13"),
        ('{"name": {"a": 1}}}', "stop", "doubled braces", "a second `}` at character 18"),
        ('[{"name": "A"}}]', "stop", "doubled braces", "a second `}` at character 14"),
        ('{"name": "A"}}}', "length", "doubled braces", "a second `}` at character 13"),
        ('{"name": "{{"', "stop", "invalid JSON", "expecting ',' delimiter at character 13"),
        ('{"name": "A"} }', "stop", "doubled braces", "a second `}` at character 14"),
        ('{"name": "A",}', "stop", "invalid JSON", ""),
        ('{"name": NaN}', "stop", "invalid JSON", "`NaN` is not a JSON number"),
        ('{"name": -Infinity}', "stop", "invalid JSON", "`-Infinity` is not a JSON number"),
        ('{"name": "A", "name": "B"}', "stop", "invalid JSON", "key `name` stands twice in one"),
        ("{'name': 'A'}", "stop", "invalid JSON", "expecting property name enclosed in double"),
        ("[" * 100_000, "stop", "invalid JSON", "nested too deeply to be read"),
        ("1" * 5_000, "stop", "invalid JSON", "a number has too many digits to be read"),
        ('{"name": "A"}', "abort", "aborted", "the engine gave the request up after 2 tokens"),
        ('{"name": "A"}', "error", "engine error", "the engine ended the request after 2 tokens"),
        ("[]", "stop", "schema violation", "at the root: []"),
    ],
)
def test_defects_are_told_apart(text: str, finish_reason: str, kind: str, fact: str) -> None:
    finding = check_json(prompt(), answer(text, finish_reason))
    assert finding is not None
    assert (finding.kind, finding.prompt_id) == (kind, "one")
    assert finding.facts[0].startswith(fact)


@pytest.mark.parametrize("text", ["[]", '"x"', "3", "null"])
def test_without_a_schema_only_an_object_is_valid(text: str) -> None:
    finding = check_json(prompt(None), answer(text))
    assert finding is not None
    assert finding.facts[:2] == (f"at the root: {text}", 'breaks `type`: "object"')


@pytest.mark.parametrize(
    ("schema", "text", "facts"),
    [
        (
            PERSON,
            '{"name": 3}',
            ("at `/name`: 3", 'breaks `type`: "string"', "in words: 3 is not of type 'string'"),
        ),
        (
            PERSON,
            '{"name": "A", "tags": [1, -2]}',
            (
                "at `/tags/1`: -2",
                "breaks `minimum`: 0",
                "in words: -2 is less than the minimum of 0",
            ),
        ),
        (
            PERSON,
            '{"name": "A", "born": "1815-02-30"}',
            (
                'at `/born`: "1815-02-30"',
                'breaks `format`: "date"',
                "in words: '1815-02-30' is not a 'date'",
            ),
        ),
        (
            PERSON,
            '{"tags": ["x"]}',
            (
                'at the root: {"tags": ["x"]}',
                'breaks `required`: ["name"]',
                "in words: 'name' is a required property",
                "violations of the schema in all: 2",
            ),
        ),
        (
            {"properties": {"a/b~c": {"type": "null"}}},
            '{"a/b~c": 1}',
            ("at `/a~1b~0c`: 1", 'breaks `type`: "null"', "in words: 1 is not of type 'null'"),
        ),
        (  # a float with a zero fraction is no integer in draft 4: the dialect decides
            {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"},
            "1.0",
            (
                "at the root: 1.0",
                'breaks `type`: "integer"',
                "in words: 1.0 is not of type 'integer'",
            ),
        ),
        (False, "1", ("at the root: 1", "in words: False schema does not")),
    ],
)
def test_violations(schema: JsonSchema, text: str, facts: tuple[str, ...]) -> None:
    finding = check_json(prompt(schema), answer(text))
    assert finding is not None
    assert finding.kind == "schema violation"
    assert len(finding.facts) == len(facts)
    assert all(said.startswith(fact) for said, fact in zip(finding.facts, facts, strict=True))


@pytest.mark.parametrize(
    ("factor", "text", "is_valid"),
    [
        (0.01, "19.99", True),  # 1998.9999999999998 in floats
        (0.1, "0.3", True),
        (0.01, "19.995", False),
        (2, "4.0", True),
        (2, "3", False),
        (2, "true", True),  # no number
        (2, '"3"', True),
        (1e-8, "12391239123", True),
        (0.5, "1e308", True),
        (2, "1e400", False),  # no float holds it
        (5e-324, "1.7e308", True),
    ],
)
@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-04/schema#", None])
def test_a_multiple_is_reckoned_in_decimals(
    *, draft: str | None, factor: float, text: str, is_valid: bool
) -> None:
    schema = {"multipleOf": factor} if draft is None else {"$schema": draft, "multipleOf": factor}
    finding = check_json(prompt(schema), answer(text))
    assert (finding is None) is is_valid


def test_the_failure_text_of_a_multiple() -> None:
    assert str(check_json(prompt({"multipleOf": 0.05}), answer("1.02"))) == (
        "schema violation: `one`\n"
        "  at the root: 1.02\n"
        "  breaks `multipleOf`: 0.05\n"
        "  in words: 1.02 is not a multiple of 0.05"
    )


CALL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"const": "weather"},
        "arguments": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "day": {"$ref": "#/$defs/day"}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
        "then": {"$ref": "#"},
    },
    "$defs": {"day": {"type": "integer", "minimum": 1}},
}


def call(arguments: object) -> str:
    return json.dumps({"name": "weather", "arguments": arguments})


@pytest.mark.parametrize("dialect", [None, "2020-12", "2019-09"])
@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ('{"city": "Gent"}', None),
        ('{"city": "Gent", "day": 1}', None),
        ('{"city": 3}', "in words: in the string, at `/city`: 3 is not of type 'string'"),
        ('{"city": "Gent", "day": 0}', "in words: in the string, at `/day`: 0 is less than the m"),
        ("{}", "in words: in the string, at the root: 'city' is a required property"),
        ("{'city': 'Gent'}", "in words: the string is not JSON: expecting property name enclosed"),
        ('{"city": "Gent"}}', "in words: the string is not JSON: extra data at character 16"),
        ("", "in words: the string is not JSON: expecting value at character 0"),
        ('{"city": NaN}', "in words: the string is not JSON: `NaN` is not a JSON number"),
        ("[" * 50_000, "in words: the string is not JSON: nested too deeply to be read"),
    ],
)
def test_a_string_that_holds_json_is_checked_inside(
    dialect: str | None, arguments: str, fact: str | None
) -> None:
    schema = dict(CALL)
    if dialect is not None:
        schema["$schema"] = f"https://json-schema.org/draft/{dialect}/schema"
    for text in (call(arguments), f'{{"then": {call(arguments)}}}'):  # below `$ref` too
        finding = check_json(prompt(schema), answer(text))
        if fact is None:
            assert finding is None
        else:
            assert finding is not None
            assert finding.kind == "schema violation"
            assert finding.facts[-1].startswith(fact)


def test_the_failure_text_of_a_string_that_holds_json() -> None:
    schema = {
        "properties": {
            "arguments": {
                "contentMediaType": "application/json",
                "contentSchema": {"required": ["city"]},
            }
        }
    }
    failure = (
        "schema violation: `one`\n"
        '  at `/arguments`: "{\\"town\\": 3}"\n'
        '  breaks `contentSchema`: {"required": ["city"]}\n'
        "  in words: in the string, at the root: 'city' is a required property"
    )
    finding = check_json(prompt(schema), answer('{"arguments": "{\\"town\\": 3}"}'))
    assert str(finding) == failure


@pytest.mark.parametrize(
    "schema",
    [
        {"contentMediaType": "application/json", "contentEncoding": "base64"},  # not decoded
        {"contentMediaType": "text/html", "contentSchema": {"type": "object"}},
        {"contentSchema": {"type": "object"}},  # says nothing without a media type
        {  # a word of draft 2019-09, which draft 7 does not know
            "$schema": "http://json-schema.org/draft-07/schema#",
            "contentMediaType": "application/json",
            "contentSchema": {"type": "object"},
        },
    ],
)
def test_other_content_is_not_read(schema: JsonSchema) -> None:
    assert check_json(prompt(schema), answer('"[]"')) is None


def test_only_a_string_holds_content() -> None:
    schema = {"contentMediaType": "application/json", "contentSchema": {"type": "object"}}
    assert check_json(prompt(schema), answer("[]")) is None


def test_a_long_value_is_shortened() -> None:
    finding = check_json(prompt({"type": "integer"}), answer('"' + "x" * 5_000 + '"'))
    assert finding is not None
    assert " ... " in finding.facts[0]
    assert all(len(fact) < 250 for fact in finding.facts)


@pytest.mark.parametrize(
    ("text", "finish_reason", "failure"),
    [
        (
            '{"name": "A"}}',
            "stop",
            "doubled braces: `one`\n"
            "  a second `}` at character 13, where JSON has no place for it\n"
            '  around it: \'{"name": "A"}}\'\n'
            "hint: a grammar that is a token behind the text asks for the same token again: "
            "see whether the baseline engine does it too",
        ),
        (
            'Sure: {"name": "A"}',
            "stop",
            "text before the start: `one`\n"
            "  a whole JSON value begins at character 6; before it: 'Sure: '",
        ),
        (
            '{"name": "A"}, done',
            "stop",
            "text after the end: `one`\n"
            "  a whole JSON value ends before character 13; after it: ', done'",
        ),
        (
            '{"name": "A"}<|im_end|>',
            "stop",
            "special token: `one`\n"
            "  the text holds `<|im_end|>` at character 13\n"
            '  around it: \'{"name": "A"}<|im_end|>\'',
        ),
        (
            '```json\n{"name": "A"}\n```',
            "stop",
            "fenced: `one`\n"
            '  the answer is wrapped in a Markdown fence: \'```json\\n{"name": "A"}\\n```\'\n'
            "hint: constrain the prompt, or ask for the bare answer",
        ),
        (
            '{"name": "A',
            "length",
            "truncated: `one`\n"
            "  the answer was cut at `max_tokens`: 7\n"
            '  it ends: \'{"name": "A\'\n'
            "hint: raise `max_tokens`, or bound the strings and arrays of the constraint",
        ),
        (
            '{"name":' + " " * 32,
            "length",
            "whitespace runaway: `one`\n"
            "  the answer ends in 32 characters of whitespace, cut at `max_tokens`\n"
            "  before them: '{\"name\":'\n"
            "hint: bound the whitespace in the grammar, or see whether the baseline "
            "engine does the same",
        ),
        (
            "",
            "stop",
            "empty: `one`\n  the answer holds no text: '' from 2 tokens, `finish_reason`: stop",
        ),
        (
            '{"name" "A"}',
            "stop",
            "invalid JSON: `one`\n"
            "  expecting ':' delimiter at character 8\n"
            '  around it: \'{"name" "A"}\'',
        ),
    ],
)
def test_failure_texts(text: str, finish_reason: str, failure: str) -> None:
    assert str(check_json(prompt(), answer(text, finish_reason))) == failure


def test_a_grammar_violation_is_named_under_a_constraint_only() -> None:
    constrained = prompt(response_format={"type": "json_object"})
    finding = check_json(constrained, answer('{"na', "error"))
    assert finding is not None
    assert str(finding) == (
        "grammar violation: `one`\n"
        "  the engine ended the request after 2 tokens with `finish_reason`: error\n"
        "  the text was cut; it ends: '{\"na'\n"
        "  vLLM raises nothing when a token breaks the grammar; this is how it shows\n"
        "hint: the engine's log names the token the grammar refused"
    )


def test_a_finding_is_its_failure_text_and_json() -> None:
    finding = Finding(kind="divergence", prompt_id="a", facts=("one", "two"))
    assert str(finding) == "divergence: `a`\n  one\n  two"
    assert str(dataclasses.replace(finding, hint="do")) == "divergence: `a`\n  one\n  two\nhint: do"
    assert dataclasses.asdict(finding) == {
        "kind": "divergence",
        "prompt_id": "a",
        "facts": ("one", "two"),
        "hint": None,
        "role": None,
        "answer": None,
        "position": None,
        "pointer": None,
    }
