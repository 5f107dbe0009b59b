"""What a prompt declares a valid answer to be: a JSON Schema, SQL over declared tables, or nothing.

A declaration is checked in full when its file is read, so that a broken schema or DDL is never
taken for a broken answer. Floor 0: imports only its own floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_specdec.errors import did_you_mean
from pytest_specdec.json_schemas import JsonSchema, SchemaDefect, check_schema
from pytest_specdec.request_fields import Place, is_text
from pytest_specdec.sql_tables import DdlDefect, can_explain, dialects, explain, read_tables

EXPECT_FIELDS = frozenset({"json_schema", "sql", "refused"})
SQL_FIELDS = frozenset({"dialect", "ddl", "statement"})
SQL_STATEMENTS = frozenset({"select", "insert", "update", "delete"})
JSON_OBJECT: Mapping[str, Any] = {"type": "object"}


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


def read_expectations(
    place: Place, request: Mapping[str, Any], expect: object
) -> tuple[JsonSchema | None, SqlExpectation | None]:
    """What `expect` and the request, already checked, declare a valid answer to be."""
    fields = place.check_object("expect", expect)
    place.check_keys("`expect`", fields, EXPECT_FIELDS)
    if not isinstance(fields.get("refused", False), bool):
        raise place.wrong("expect.refused", fields["refused"], "true or false")
    if fields.get("refused") and len(fields) > 1:
        raise place.refusal(
            "`expect.refused` stands beside another expectation",
            hint="a request that is refused has no answer to expect anything of",
        )
    sql = _read_sql(place, fields["sql"]) if "sql" in fields else None
    return _read_json_schema(place, request, fields), sql


def _read_json_schema(
    place: Place, request: Mapping[str, Any], expect: Mapping[str, Any]
) -> JsonSchema | None:
    response_format = request.get("response_format", {"type": None})
    declared: list[tuple[str, JsonSchema]] = []
    if "json_schema" in expect:
        if not isinstance(expect["json_schema"], Mapping | bool):
            raise place.wrong("expect.json_schema", expect["json_schema"], "a JSON Schema")
        declared.append(("expect.json_schema", expect["json_schema"]))
    if response_format["type"] == "json_schema":
        key = "response_format.json_schema.schema"
        declared.append((key, response_format["json_schema"]["schema"]))
    for key, schema in declared:
        try:
            check_schema(schema)
        except SchemaDefect as defect:
            raise place.refusal(f"`{key}`: {defect}", hint=defect.hint) from None
    if declared:
        return declared[0][1]
    return JSON_OBJECT if response_format["type"] == "json_object" else None


def _read_sql(place: Place, value: object) -> SqlExpectation:
    fields = {"statement": "select", **place.check_object("expect.sql", value)}
    place.check_keys("`expect.sql`", fields, SQL_FIELDS)
    for key in sorted(SQL_FIELDS):
        if key not in fields:
            raise place.refusal(f"`expect.sql.{key}` is missing", hint="it has no default")
        if not is_text(fields[key]):
            raise place.wrong(f"expect.sql.{key}", fields[key], "a string with something in it")
    for key, known in (("dialect", dialects()), ("statement", SQL_STATEMENTS)):
        if fields[key] not in known:
            raise place.refusal(
                f"unknown `expect.sql.{key}`: `{fields[key]}`",
                hint=did_you_mean(fields[key], known),
            )
    expectation = SqlExpectation(**fields)
    try:
        read_tables(expectation.ddl, dialect=expectation.dialect)
        if can_explain(expectation.dialect):
            explain(None, ddl=expectation.ddl, dialect=expectation.dialect)
    except DdlDefect as defect:
        raise place.refusal(f"`expect.sql.ddl`: {defect}", hint=defect.hint) from None
    return expectation
