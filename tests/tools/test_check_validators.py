"""The program that runs the validators over public data: totals, disagreements, exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.check_validators import main, statement_case

CALL = {"type": "object", "properties": {"name": {"const": "f"}}, "required": ["name"]}
DDL = "CREATE TABLE t (a INTEGER)"


def write(path: Path, *rows: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")


def schema(name: str, *tests: tuple[Any, bool], of: Any = CALL) -> dict[str, Any]:
    rows = [{"data": data, "valid": valid} for data, valid in tests]
    return {"id": name, "schema": of, "tests": rows}


def query(name: str, *texts: str, dialect: str = "sqlite", ddl: str = DDL) -> dict[str, Any]:
    return {"id": name, "dialect": dialect, "ddl": ddl, "gold_sql": list(texts)}


def test_data_that_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schemas = tmp_path / "json" / "schemas_dev"
    write(schemas / "one.json", schema("one", ({"name": "f"}, True), ({"name": "g"}, False)))
    write(schemas / "INDEX.json", [])
    write(
        tmp_path / "json" / "function_calling" / "calls.jsonl",
        {"id": "c", "json_schema": CALL, "gold_instance": {"name": "f"}},
    )
    write(tmp_path / "sql" / "text2sql_dev.jsonl", query("q", "SELECT a FROM t", "SELECT 1"))
    fixtures = tmp_path / "sql" / "sqlglot_fixtures"
    write(fixtures / "dialect_identity.jsonl", {"dialect": "mysql", "sql": "SELECT `x`"})
    (fixtures / "identity.sql").write_text("x + 1\n\nDELETE FROM x\n")
    (fixtures / "tpc-h.sql").write_text("-- one\nselect x from y;\nSELECT x\nFROM y;\n")
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "JSON Schemas: 2 of 2 agree",
        "function calls: 1 of 1 agree",
        "queries (sqlite): 2 of 2 agree",
        "misspelt queries (sqlite): 2 of 2 agree",
        "statements (mysql): 1 of 1 agree",
        "statements (any): 4 of 4 agree",
    ]


def test_each_disagreement_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schemas = tmp_path / "json" / "schemas_dev"
    write(schemas / "one.json", schema("one", ({"name": "f"}, False), ({"name": "g"}, True)))
    write(schemas / "two.json", schema("two", of={"type": "objct"}))
    write(
        tmp_path / "sql" / "text2sql_dev.jsonl",
        query("q", "SELECT b FROM t"),
        query("m", "SELECT a AS t FROM t WHERE 't' <> 'a'", dialect="mysql"),
        query("r", ddl="CREATE TABLE t (a INTEGER", dialect="mysql"),
    )
    assert main([str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert said.startswith(
        "JSON Schemas: 0 of 3 agree\n"
        "queries (sqlite): 0 of 1 agree\n"
        "misspelt queries (sqlite): 1 of 1 agree\n"
        "queries (mysql): 1 of 2 agree\n"
        "misspelt queries (mysql): 2 of 2 agree\n"
        "\n"
        "JSON Schemas: one, instance 1\n"
        "  valid, which the data calls invalid\n"
        "\n"
        "JSON Schemas: one, instance 2\n"
        '  schema violation, which the data calls valid: at `/name`: "g"; breaks `const`: "f"; '
        "in words: 'f' was expected\n"
        "\n"
        "JSON Schemas: two\n"
        "  refused: broken JSON Schema at `/type`: "
    )
    assert "\nqueries (sqlite): q, query 1\n  unknown name, which the data calls valid: " in said
    assert "\nqueries (mysql): r\n  refused: the DDL does not parse as mysql: " in said


def test_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().out == (
        f"no data in {tmp_path}\nhint: the docstring of this program says what is looked for\n"
    )


@pytest.mark.parametrize(
    ("text", "dialect", "disagreement"),
    [
        ("SELECT 1", "", None),
        ("/* a ( */ (SELECT 1)", "", None),
        ("WITH x AS (SELECT 'insert' AS a) DELETE FROM x", "", None),
        ("CREATE TABLE x (a INT)", "", None),
        ("REPLACE INTO x VALUES (1)", "sqlite", None),
        ("FROM x", "duckdb", None),
        (
            "FROM x",
            "mysql",
            "read as no such statement, begins like select: invalid SQL: "
            "a query cannot begin with FROM: 'FROM x'",
        ),
        ("VALUES (1)", "", None),
    ],
)
def test_statements(text: str, dialect: str, disagreement: str | None) -> None:
    assert statement_case("x:1", text, dialect).disagreement == disagreement
