"""Reading workloads: what is read, and how each refusal reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.errors import WorkloadError
from pytest_specdec.json_schemas import FORMATS_OF_EXTRA
from pytest_specdec.workload import CIRCUMSTANCES, SqlExpectation, Workload, read_workload

MESSAGES = [{"role": "user", "content": "Hi"}]
PROMPT: Mapping[str, Any] = {"id": "one", "messages": MESSAGES, "max_tokens": 8}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
DDL = "CREATE TABLE t (a INTEGER)"


def write(folder: Path, *rows: object) -> Path:
    path = folder / "some.jsonl"
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, *rows: object) -> Workload:
    return read_workload(write(folder, *rows))


def response_format(schema: object) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


def test_reads_a_whole_file(tmp_path: Path) -> None:
    workload = read(
        tmp_path,
        {
            "workload": {"description": "About", "concurrency": 3},
            "defaults": {"max_tokens": 9, "stop": ["x"], "temperature": 0},
        },
        "",
        {"id": "one", "messages": MESSAGES},
        {"id": "t.w-o_2", "messages": MESSAGES, "max_tokens": 5, "stop": "y"},
        "  ",
    )
    assert (workload.name, workload.description, workload.concurrency) == ("some", "About", 3)
    assert [(prompt.id, prompt.line) for prompt in workload.prompts] == [("one", 3), ("t.w-o_2", 4)]
    one, two = (prompt.request for prompt in workload.prompts)
    assert one == {"messages": MESSAGES, "max_tokens": 9, "stop": ["x"], "temperature": 0}
    assert two == {"messages": MESSAGES, "max_tokens": 5, "stop": "y", "temperature": 0}


def test_without_header_one_request_is_in_flight(tmp_path: Path) -> None:
    workload = read(tmp_path, PROMPT)
    assert (workload.concurrency, workload.description) == (1, "")
    assert workload.prompt("one").json_schema is None
    assert workload.prompt("one").sql is None
    assert not workload.prompt("one").is_constrained


def test_expect_is_not_sent_to_the_engine(tmp_path: Path) -> None:
    plain = read(tmp_path, PROMPT)
    expecting = read(tmp_path, {**PROMPT, "expect": {"json_schema": SCHEMA}})
    assert plain.digest == expecting.digest
    assert "expect" not in expecting.prompts[0].request
    assert plain.digest != read(tmp_path, {**PROMPT, "temperature": 1}).digest


@pytest.mark.parametrize(
    ("fields", "schema", "constrained"),
    [
        ({"response_format": response_format(SCHEMA)}, SCHEMA, True),
        ({"response_format": {"type": "json_object"}}, {"type": "object"}, True),
        ({"expect": {"json_schema": SCHEMA}}, SCHEMA, False),
        ({"expect": {"json_schema": True}}, True, False),
        (
            {"response_format": response_format({}), "expect": {"json_schema": SCHEMA}},
            SCHEMA,
            True,
        ),
        (
            {"response_format": {"type": "json_object"}, "expect": {"json_schema": SCHEMA}},
            SCHEMA,
            True,
        ),
        ({"structured_outputs": {"choice": ["a", "b"]}}, None, True),
    ],
)
def test_json_schema_of_a_prompt(
    tmp_path: Path, fields: dict[str, Any], schema: object, constrained: bool
) -> None:
    prompt = read(tmp_path, {**PROMPT, **fields}).prompts[0]
    assert prompt.json_schema == schema
    assert prompt.is_constrained is constrained


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ({"dialect": "sqlite", "ddl": DDL}, ("sqlite", "select")),
        ({"dialect": "duckdb", "ddl": DDL, "statement": "insert"}, ("duckdb", "insert")),
        ({"dialect": "postgres", "ddl": DDL, "statement": "delete"}, ("postgres", "delete")),
    ],
)
def test_sql_of_a_prompt(tmp_path: Path, sql: dict[str, str], expected: tuple[str, str]) -> None:
    prompt = read(tmp_path, {**PROMPT, "expect": {"sql": sql}}).prompts[0]
    assert prompt.sql == SqlExpectation(dialect=expected[0], ddl=DDL, statement=expected[1])


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0.5, "top_p": 1, "top_k": -1, "seed": -3, "min_tokens": 8},
        {"stop": ["a"], "stop_token_ids": [0], "bad_words": ["x"], "allowed_token_ids": [1, 2]},
        {"ignore_eos": False, "presence_penalty": -2, "frequency_penalty": 2.0},
        {"repetition_penalty": 1.1, "structured_outputs": {"regex": "[a-z]+"}},
        {"structured_outputs": {"grammar": 'root ::= "a"'}},
        {"min_p": 0, "logit_bias": {"0": -100, "12": 1.5}, "logprobs": 0},
        {"min_p": 1, "logit_bias": {}, "logprobs": 5, "context_left": 1},
        {"n": 1},
        {"n": 3, "temperature": 0.1},
    ],
)
def test_sampling_fields_arrive_as_they_are(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert read(tmp_path, {**PROMPT, **fields}).prompts[0].request.items() >= fields.items()


def with_header(folder: Path, **about: Any) -> Workload:
    return read(folder, {"workload": about}, PROMPT)


def test_a_header_says_what_is_gated(tmp_path: Path) -> None:
    assert with_header(tmp_path).gated == ("acceptance", "speedup")
    assert read(tmp_path, PROMPT).gated == ("acceptance", "speedup")
    for gated in ([], ["speedup"], ["speedup", "acceptance"]):
        assert with_header(tmp_path, gated=gated).gated == tuple(gated)


def test_a_header_says_what_is_asked_again(tmp_path: Path) -> None:
    assert with_header(tmp_path).again == ()
    all_of_them = [*CIRCUMSTANCES, "1-in-flight", "16-in-flight"]
    workload = read(
        tmp_path,
        {"workload": {"concurrency": 3, "again": all_of_them}},
        *({**PROMPT, "id": f"p{number}"} for number in range(4)),
    )
    assert workload.again == tuple(all_of_them)
    assert [workload.concurrency_in(each) for each in all_of_them] == [
        *([3] * len(CIRCUMSTANCES)),
        1,
        16,
    ]


def test_what_is_done_besides_does_not_make_it_another_workload(tmp_path: Path) -> None:
    plain = read(tmp_path, PROMPT)
    more = with_header(tmp_path, gated=[], again=["after-sleep"])
    assert more.digest == plain.digest
    refused = {**PROMPT, "id": "two", "min_p": 0.1, "expect": {"refused": True}}
    assert read(tmp_path, PROMPT, refused).digest == plain.digest


def test_prompts_to_be_refused_are_not_asked(tmp_path: Path) -> None:
    refused = {**PROMPT, "id": "two", "expect": {"refused": True}}
    other = {**PROMPT, "id": "three", "expect": {"refused": False}}
    workload = read(tmp_path, PROMPT, refused, other)
    assert [prompt.id for prompt in workload.prompts] == ["one", "two", "three"]
    assert [prompt.id for prompt in workload.asked] == ["one", "three"]
    assert [prompt.is_refused for prompt in workload.prompts] == [False, True, False]
    assert "expect" not in workload.prompt("two").request


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"gated": "speedup"}, '`workload.gated` must be a list of names: "speedup"'),
        ({"gated": [1]}, "`workload.gated` must be a list of names: [1]"),
        (
            {"gated": ["sped"]},
            "unknown name in `workload.gated`: `sped`\nhint: did you mean `speedup`?",
        ),
        (
            {"gated": ["speedup", "speedup"]},
            '`workload.gated` must be names that are all different: ["speedup", "speedup"]',
        ),
        ({"again": "after-sleep"}, '`workload.again` must be a list of names: "after-sleep"'),
        (
            {"again": ["after-abort"]},
            "unknown name in `workload.again`: `after-abort`\nhint: did you mean `after-aborts`?",
        ),
        (
            {"again": ["in-flight"]},
            "unknown name in `workload.again`: `in-flight`\nhint: did you mean `8-in-flight`?",
        ),
        *(
            ({"again": [name]}, f"unknown name in `workload.again`: `{name}`\nhint: ")
            for name in ("0-in-flight", "08-in-flight", "8-in-flights", "10000-in-flight")
        ),
        (
            {"again": ["x"]},
            "unknown name in `workload.again`: `x`\nhint: known here: `8-in-flight`, "
            "`after-aborts`, `after-long-request`, `after-sleep`, `not-streamed`, "
            "`under-preemption`, `warm-prefix-cache`",
        ),
        (
            {"again": ["after-sleep", "8-in-flight", "after-sleep"]},
            "`workload.again` must be names that are all different: ",
        ),
        ({"agian": []}, "unknown key in `workload`: `agian`\nhint: did you mean `again`?"),
    ],
)
def test_refuses_a_header_with(tmp_path: Path, about: dict[str, Any], said: str) -> None:
    assert refusal(write(tmp_path, {"workload": about}, PROMPT)).startswith(f"1: {said}")


@pytest.mark.parametrize(
    ("concurrency", "num_prompts", "name", "is_good"),
    [
        pytest.param(4, 9, "8-in-flight", True, id="more"),
        pytest.param(4, 9, "1-in-flight", True, id="fewer"),
        pytest.param(4, 5, "8-in-flight", True, id="one more, which is all"),
        pytest.param(8, 5, "4-in-flight", True, id="one fewer than all"),
        pytest.param(4, 9, "4-in-flight", False, id="as many"),
        pytest.param(4, 4, "8-in-flight", False, id="all before"),
        pytest.param(8, 5, "5-in-flight", False, id="all of fewer"),
        pytest.param(1, 1, "8-in-flight", False, id="one prompt"),
    ],
)
def test_so_many_in_flight_must_be_others_than_without(
    tmp_path: Path, concurrency: int, num_prompts: int, name: str, *, is_good: bool
) -> None:
    lines = [
        {"workload": {"concurrency": concurrency, "again": ["after-aborts", name]}},
        *({**PROMPT, "id": f"p{number}"} for number in range(num_prompts)),
        # It is in no pass.
        {**PROMPT, "id": "min", "min_p": 0.1, "expect": {"refused": True}},
    ]
    if is_good:
        assert read(tmp_path, *lines).again == ("after-aborts", name)
    else:
        assert refusal(write(tmp_path, *lines)).startswith(f"1: `{name}` of `workload.again` ")


def test_the_text_of_what_changes_nothing(tmp_path: Path) -> None:
    lines = [{"workload": {"concurrency": 3, "again": ["8-in-flight"]}}, PROMPT]
    assert refusal(write(tmp_path, *lines, {**PROMPT, "id": "two"})) == (
        "1: `8-in-flight` of `workload.again` changes nothing: with `concurrency` 3 and 2 prompts, "
        "2 are in flight either way\n"
        "hint: name another number, another `concurrency`, or more prompts"
    )


def test_refuses_a_workload_of_which_nothing_is_answered(tmp_path: Path) -> None:
    refused = {**PROMPT, "expect": {"refused": True}}
    assert refusal(write(tmp_path, {"workload": {}}, refused)) == (
        "2: the workload holds no prompt that is answered\n"
        "hint: put the prompts that are to be refused beside others"
    )


@pytest.mark.parametrize(
    ("fields", "is_greedy", "is_seeded", "is_own"),
    [
        ({}, True, False, False),
        ({"seed": 1}, True, False, False),
        ({"temperature": 0, "seed": 1}, True, False, False),
        ({"temperature": 0.5}, False, False, False),
        ({"temperature": 0.5, "seed": 0}, False, True, False),
        ({"temperature": 1}, False, False, True),
        ({"temperature": 1, "n": 2, "ignore_eos": True}, False, False, True),
        ({"temperature": 1, "seed": 1, "n": 2}, False, True, False),
        ({"temperature": 1, "top_k": 5}, False, False, False),
    ],
)
def test_how_an_answer_is_drawn(
    tmp_path: Path, fields: dict[str, Any], *, is_greedy: bool, is_seeded: bool, is_own: bool
) -> None:
    prompt = read(tmp_path, {**PROMPT, **fields}).prompts[0]
    assert (prompt.is_greedy, prompt.is_seeded, prompt.is_own_distribution) == (
        is_greedy,
        is_seeded,
        is_own,
    )


def refusal(path: Path) -> str:
    with pytest.raises(WorkloadError) as caught:
        read_workload(path)
    message = str(caught.value)
    where = re.match(re.escape(str(path)) + r":(\d+): ", message)
    assert where is not None, f"the place is not named: {message}"
    return f"{where.group(1)}: {message[where.end() :]}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "1: the workload holds no prompt\nhint: add a line"),
        (b"\n \n", "1: the workload holds no prompt\nhint: add a line"),
        (b'{"workload": {}}\n', "1: the workload holds no prompt\nhint: add a line"),
        (b'{"id": 1}\n\xff', "2: not UTF-8, at byte 10: 0xff\nhint: save the file as UTF-8"),
        (b'\n{"id": }', "2: not JSON at column 8: expecting value\nhint: one JSON object"),
        (b'{"id": NaN}', "1: not JSON: `NaN` is not a JSON number"),
        (b'{"id": "a", "id": "b"}', "1: not JSON: key `id` stands twice in one object"),
        (b"[1]", "1: not a JSON object: [1]\nhint: one prompt a line"),
    ],
)
def test_refuses_a_file(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "some.jsonl"
    path.write_bytes(content)
    assert refusal(path).startswith(said)


def test_refuses_a_missing_file(tmp_path: Path) -> None:
    assert (
        refusal(tmp_path / "none.jsonl") == "1: the file cannot be read: No such file or directory"
    )


def test_reads_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(PROMPT).encode() + b"\r\n\r\n")
    assert [prompt.id for prompt in read_workload(path).prompts] == ["one"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([PROMPT, PROMPT], "2: `id` is taken: `one`\nhint: line 1 has it"),
        ([PROMPT, {"workload": {}}], "2: a header after the first line"),
        ([{"workload": {}, "default": {}}, PROMPT], "1: unknown key in the header: `default`\n"),
        ([{"workload": 1}, PROMPT], "1: `workload` must be an object: 1"),
        ([{"workload": {"name": "x"}}, PROMPT], "1: unknown key in `workload`: `name`"),
        ([{"workload": {"description": 1}}, PROMPT], "1: `workload.description` must be a string"),
        ([{"defaults": []}, PROMPT], "1: `defaults` must be an object: []"),
        ([{"defaults": {"id": "x"}}, PROMPT], "1: unknown key in `defaults`: `id`"),
        (
            [{"defaults": {"max_token": 3}}, PROMPT],
            "1: unknown key in `defaults`: `max_token`\nhint: did you mean `max_tokens`?",
        ),
        *(
            (
                [{"workload": {"concurrency": value}}, PROMPT],
                "1: `workload.concurrency` must be an integer of at least 1",
            )
            for value in (0, -1, True, 1.0, "2", None)
        ),
    ],
)
def test_refuses_headers_and_repeated_ids(tmp_path: Path, rows: list[object], said: str) -> None:
    assert refusal(write(tmp_path, *rows)).startswith(said)


@pytest.mark.parametrize("key", ["id", "messages", "max_tokens"])
def test_refuses_a_prompt_without(tmp_path: Path, key: str) -> None:
    fields = {name: value for name, value in PROMPT.items() if name != key}
    assert refusal(write(tmp_path, fields)).startswith(f"1: `{key}` is missing\nhint: ")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": 3}, "`id` is no name: 3\nhint: letters, digits"),
        ({"id": ""}, "`id` is no name"),
        ({"id": "a b"}, "`id` is no name"),
        ({"id": "a[b]"}, "`id` is no name"),
        ({"id": "a::b"}, "`id` is no name"),
        ({"id": "a/b"}, "`id` is no name"),
        ({"id": "a\n"}, "`id` is no name"),
        ({"id": "\u00e9"}, "`id` is no name"),
        ({"respons_format": 1}, "unknown key in the prompt: `respons_format`\nhint: did you mean"),
        ({"messages": []}, "`messages` must be a list of at least one message: []"),
        ({"messages": "Hi"}, '`messages` must be a list of at least one message: "Hi"'),
        ({"messages": ["Hi"]}, '`messages[0]` must be an object: "Hi"'),
        ({"messages": [{"content": "Hi"}]}, "`messages[0].role` must be a string: null"),
        ({"messages": [{"role": "user"}]}, "`messages[0].content` must be a string: null"),
        (
            {"messages": [*MESSAGES, {"role": "asistant", "content": ""}]},
            "unknown role in `messages[1]`: `asistant`\nhint: did you mean `assistant`?",
        ),
        (
            {"messages": [{"role": "user", "content": "", "name": "x"}]},
            "unknown key in `messages[0]`: `name`",
        ),
        *(
            ({"max_tokens": value}, "`max_tokens` must be an integer of at least 1")
            for value in (0, -1, True, 1.5, "8", None)
        ),
        ({"min_tokens": -1}, "`min_tokens` must be an integer of at least 0: -1"),
        ({"min_tokens": 9}, "`min_tokens` must be at most `max_tokens`: 9"),
        ({"temperature": -0.1}, "`temperature` must be a number from 0 to 2: -0.1"),
        ({"temperature": 2.1}, "`temperature` must be a number from 0 to 2"),
        ({"temperature": True}, "`temperature` must be a number from 0 to 2"),
        ({"temperature": "0"}, "`temperature` must be a number from 0 to 2"),
        ({"temperature": 10**400}, "`temperature` must be a number from 0 to 2"),
        ({"top_p": 0}, "`top_p` must be a number above 0, at most 1"),
        ({"top_p": 1.1}, "`top_p` must be a number above 0, at most 1"),
        ({"top_k": -2}, "`top_k` must be an integer of at least 1, or 0 or -1"),
        ({"seed": 1.5}, "`seed` must be an integer"),
        ({"seed": False}, "`seed` must be an integer"),
        ({"stop": 3}, "`stop` must be a string or a list"),
        ({"stop": ""}, "`stop` must be a string or a list"),
        ({"stop": ["a", 3]}, "`stop` must be a string or a list"),
        ({"stop_token_ids": ["a"]}, "`stop_token_ids` must be a list of at least one token id"),
        ({"stop_token_ids": [-1]}, "`stop_token_ids` must be"),
        ({"allowed_token_ids": []}, "`allowed_token_ids` must be"),
        ({"ignore_eos": 1}, "`ignore_eos` must be true or false: 1"),
        ({"presence_penalty": 2.5}, "`presence_penalty` must be a number from -2 to 2"),
        ({"frequency_penalty": -2.5}, "`frequency_penalty` must be a number from -2 to 2"),
        ({"repetition_penalty": 0}, "`repetition_penalty` must be a number above 0, at most 2"),
        ({"bad_words": "x"}, "`bad_words` must be a list of at least one string"),
        ({"min_p": -0.1}, "`min_p` must be a number from 0 to 1: -0.1"),
        ({"min_p": 1.1}, "`min_p` must be a number from 0 to 1: 1.1"),
        ({"min_p": True}, "`min_p` must be a number from 0 to 1: true"),
        *(
            (
                {"logit_bias": value},
                "`logit_bias` must be an object of numbers from -100 to 100 by token id: ",
            )
            for value in ([1], {"a": 1}, {"-1": 1}, {"1.5": 1}, {"1": 101}, {"1": "1"}, {"": 1})
        ),
        ({"logprobs": -1}, "`logprobs` must be an integer of at least 0: -1"),
        ({"logprobs": True}, "`logprobs` must be an integer of at least 0: true"),
        ({"n": 0, "temperature": 1}, "`n` must be an integer of at least 1: 0"),
        (
            {"n": 2},
            "`n` is 2 at temperature 0\nhint: vLLM takes it above temperature 0 alone: greedy "
            "answers are all the same",
        ),
        ({"n": 2, "temperature": 0.0}, "`n` is 2 at temperature 0\nhint: "),
        ({"context_left": 0}, "`context_left` must be an integer of at least 1: 0"),
        (
            {"context_left": 9, "messages": [{"role": "user", "content": ""}]},
            "`context_left` repeats the last message, which is empty\nhint: write the text that is "
            "to fill the context window into it",
        ),
        ({"context_left": "all"}, '`context_left` must be an integer of at least 1: "all"'),
        ({"expect": {"refused": 1}}, "`expect.refused` must be true or false: 1"),
        (
            {"expect": {"refused": True, "json_schema": True}},
            "`expect.refused` stands beside another expectation\nhint: a request that is refused "
            "has no answer to expect anything of",
        ),
        (
            {"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}},
            "`response_format` and `structured_outputs` are both given\nhint: keep one",
        ),
        ({"response_format": "json"}, "`response_format` must be an object"),
        ({"response_format": {}}, "unknown `response_format.type`: null\nhint: known here"),
        (
            {"response_format": {"type": "json_shema"}},
            'unknown `response_format.type`: "json_shema"\nhint: did you mean `json_schema`?',
        ),
        (
            {"response_format": {"type": "json_object", "json_schema": {}}},
            "unknown key in `response_format`: `json_schema`",
        ),
        (
            {"response_format": {"type": "json_schema"}},
            "`response_format.json_schema` must be an object: null",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"type": "object"}}},
            "unknown key in `response_format.json_schema`: `type`",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "`response_format.json_schema` lacks `schema`\nhint: ",
        ),
        (
            {"response_format": response_format(True)},
            "`response_format.json_schema.schema` must be",
        ),
        ({"structured_outputs": {}}, "`structured_outputs` must be an object with one of"),
        (
            {"structured_outputs": {"regex": "a", "choice": ["a"]}},
            "`structured_outputs` must be an object with one of",
        ),
        ({"structured_outputs": {"json": {}}}, "unknown key in `structured_outputs`: `json`"),
        ({"structured_outputs": {"choice": []}}, "`structured_outputs.choice` must be a list"),
        ({"structured_outputs": {"grammar": ""}}, "`structured_outputs.grammar` must be a string"),
        ({"structured_outputs": {"regex": "("}}, "`structured_outputs.regex` does not compile: "),
        ({"expect": []}, "`expect` must be an object"),
        (
            {"expect": {"json": {}}},
            "unknown key in `expect`: `json`\nhint: known here: `json_schema`, `refused`, `sql`",
        ),
    ],
)
def test_refuses_a_prompt_with(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    assert refusal(write(tmp_path, {**PROMPT, **fields})).startswith(f"1: {said}")


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strin"}, "broken JSON Schema at `/type`: 'strin' is not valid"),
        (
            {"properties": {"a/b": {"minimum": "1"}}},
            "broken JSON Schema at `/properties/a~1b/minimum`: '1' is not of type 'number'",
        ),
        ({"pattern": "["}, "broken JSON Schema at `/pattern`: '[' is not a 'regex'"),
        (
            {"$schema": "http://json-schema.org/draft-04/schema#", "patternProperties": {"(": {}}},
            "a pattern of the JSON Schema does not compile: ( (",
        ),
        ({"$schema": "https://example.com/mine"}, "`$schema` names a dialect that jsonschema does"),
        ({"$schema": 7}, "`$schema` names a dialect that jsonschema does not know: 7"),
        (
            {"properties": {"a": {"$ref": "#/$defs/nope"}}},
            "`$ref` of the JSON Schema does not resolve: #/$defs/nope\nhint: ",
        ),
        ({"$ref": "https://example.com/x"}, "`$ref` of the JSON Schema does not resolve: https"),
        (  # `required` was a boolean in draft 3 and is a list since: the dialect decides
            {"$schema": "http://json-schema.org/draft-07/schema#", "required": True},
            "broken JSON Schema at `/required`: True is not of type 'array'",
        ),
    ],
)
def test_refuses_a_broken_schema(tmp_path: Path, schema: dict[str, Any], said: str) -> None:
    expecting = {**PROMPT, "expect": {"json_schema": schema}}
    assert refusal(write(tmp_path, expecting)).startswith(f"1: `expect.json_schema`: {said}")
    constrained = {**PROMPT, "response_format": response_format(schema), "expect": {}}
    key = "`response_format.json_schema.schema`"
    assert refusal(write(tmp_path, constrained)).startswith(f"1: {key}: {said}")


def test_a_schema_that_is_overridden_is_checked_too(tmp_path: Path) -> None:
    both = {**PROMPT, "response_format": response_format({"type": "x"}), "expect": {}}
    both["expect"] = {"json_schema": True}
    assert "broken JSON Schema at `/type`" in refusal(write(tmp_path, both))


def test_refuses_a_schema_that_is_no_schema(tmp_path: Path) -> None:
    said = refusal(write(tmp_path, {**PROMPT, "expect": {"json_schema": "object"}}))
    assert said == '1: `expect.json_schema` must be a JSON Schema: "object"'


def test_refuses_a_format_that_nothing_installed_can_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jsonschema import FormatChecker

    expecting = {**PROMPT, "expect": {"json_schema": {"items": {"format": "date-time"}}}}
    path = write(tmp_path, expecting)
    assert read_workload(path).prompts
    checkers = {name: each for name, each in FormatChecker.checkers.items() if name != "date-time"}
    monkeypatch.setattr(FormatChecker, "checkers", checkers)
    said = (
        "1: `expect.json_schema`: nothing installed here can check the format: date-time\nhint: pip"
    )
    assert refusal(path).startswith(said)


def test_checks_every_format_but_two_with_what_is_installed_beside_the_plugin() -> None:
    from jsonschema import FormatChecker

    assert FORMATS_OF_EXTRA - FormatChecker.checkers.keys() <= {"iri", "iri-reference"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-07/schema", "definitions": {"a": {}}},
        {"$defs": {"a": {"$id": "urn:a", "type": "object"}}, "$ref": "urn:a"},
        {"$defs": {"a": {"$anchor": "here"}}, "items": {"$ref": "#here"}},
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        {"properties": {"$ref": {"type": "string"}, "format": {"const": "x"}}},
        {"format": "int32", "enum": [{"$ref": "#/nope", "pattern": "["}]},
    ],
)
def test_takes_a_sound_schema(tmp_path: Path, schema: dict[str, Any]) -> None:
    expecting = {**PROMPT, "expect": {"json_schema": schema}}
    assert read(tmp_path, expecting).prompts[0].json_schema == schema


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("x", "`expect.sql` must be an object"),
        ({"dialect": "sqlite"}, "`expect.sql.ddl` is missing"),
        ({"ddl": DDL}, "`expect.sql.dialect` is missing"),
        ({"dialect": "sqlite", "ddl": ""}, "`expect.sql.ddl` must be a string with something"),
        ({"dialect": "sqlite", "ddl": DDL, "schema": ""}, "unknown key in `expect.sql`: `schema`"),
        (
            {"dialect": "sqllite", "ddl": DDL},
            "unknown `expect.sql.dialect`: `sqllite`\nhint: did you mean `sqlite`?",
        ),
        (
            {"dialect": "sqlite", "ddl": DDL, "statement": "SELECT"},
            "unknown `expect.sql.statement`: `SELECT`\nhint: ",
        ),
        (
            {"dialect": "postgres", "ddl": "CREATE TABLE t (a INT"},
            "`expect.sql.ddl`: the DDL does not parse as postgres: ",
        ),
        ({"dialect": "postgres", "ddl": ";"}, "`expect.sql.ddl`: the DDL holds no CREATE TABLE"),
        (
            {"dialect": "sqlite", "ddl": "CREATE INDEX i ON t (a)"},
            "`expect.sql.ddl`: the DDL holds no CREATE TABLE",
        ),
        (
            {"dialect": "sqlite", "ddl": DDL + "; INSERT INTO t VALUES (1)"},
            "`expect.sql.ddl`: the DDL holds a statement other than CREATE: 'INSERT INTO t",
        ),
        (
            {"dialect": "sqlite", "ddl": "CREATE TABLE t AS SELECT * FROM u"},
            "`expect.sql.ddl`: the DDL does not name the columns of `t`",
        ),
        (
            {"dialect": "sqlite", "ddl": f"{DDL}; {DDL}"},
            "`expect.sql.ddl`: sqlite refuses the DDL: table t already exists",
        ),
        (
            {"dialect": "duckdb", "ddl": "CREATE TABLE t (a nosuchtype)"},
            "`expect.sql.ddl`: duckdb refuses the DDL: ",
        ),
    ],
)
def test_refuses_an_sql_declaration(tmp_path: Path, sql: object, said: str) -> None:
    if "duckdb" in said:
        pytest.importorskip("duckdb")
    assert refusal(write(tmp_path, {**PROMPT, "expect": {"sql": sql}})).startswith(f"1: {said}")
