"""Runs the validators over public data and lists every answer that they and the data differ on.

    python tools/check_validators.py ../shared/data

The folder holds any of these; what is not there is left out:

    json/schemas_dev/*.json                schemas, each with valid and invalid instances
    json/function_calling/*.jsonl          schemas, each with one right instance
    sql/text2sql_dev.jsonl                 tables, each with right queries in a dialect; each
                                           query again with a name misspelt must be refused
    sql/sqlglot_fixtures/                  statements without tables: only their kind is read

docs/reference/validators.md says what remains and why.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlglot

from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.json_schema import check_json
from pytest_specdec.checks.sql import check_sql
from pytest_specdec.checks.sql_text import SqlDefect, read_statement
from pytest_specdec.generation import Generation
from pytest_specdec.json_schemas import JsonSchema, SchemaDefect, check_schema
from pytest_specdec.sql_tables import DdlDefect, can_explain, explain, read_tables
from pytest_specdec.workload import Prompt, SqlExpectation

KINDS = ("select", "insert", "update", "delete")
COMMENT_OR_STRING = re.compile(r"--[^\n]*|/\*.*?\*/|'[^']*'|\"[^\"]*\"", re.DOTALL)
IN_PARENTHESES = re.compile(r"\([^()]*\)")
BEHIND_WITH = re.compile(r"\b(select|insert|update|delete|merge|create|from)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One answer of known validity.

    Attributes:
        source: which part of the data it is from.
        id: its name there.
        disagreement: what the validators say against the data; `None` where they agree.
    """

    source: str
    id: str
    disagreement: str | None


def main(arguments: list[str]) -> int:
    """Prints the totals and the disagreements; 1 where there is one."""
    parser = argparse.ArgumentParser(description="run the validators over public data")
    parser.add_argument("data", type=Path, help="the folder of the data")
    folder: Path = parser.parse_args(arguments).data
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of each line it cannot read
    cases = [*json_cases(folder / "json"), *sql_cases(folder / "sql")]
    if not cases:
        print(f"no data in {folder}\nhint: the docstring of this program says what is looked for")
        return 2
    print(*totals(cases), sep="\n")
    for case in cases:
        if case.disagreement is not None:
            print(f"\n{case.source}: {case.id}\n  {case.disagreement}")
    return 1 if any(case.disagreement is not None for case in cases) else 0


def json_cases(folder: Path) -> Iterator[Case]:
    """Schemas with their instances, then function calls."""
    for path in sorted(folder.glob("schemas_dev/*.json")):
        if path.name != "INDEX.json":
            yield from schema_cases(json.loads(path.read_text(encoding="utf-8")))
    for path in sorted(folder.glob("function_calling/*.jsonl")):
        for row in _rows(path):
            yield _json_case("function calls", row["id"], row["json_schema"], row["gold_instance"])


def sql_cases(folder: Path) -> Iterator[Case]:
    """Queries over declared tables, then statements without tables."""
    for path in sorted(folder.glob("text2sql_dev.jsonl")):
        for row in _rows(path):
            yield from query_cases(row)
            yield from misspelt_cases(row)
    for path in sorted(folder.glob("sqlglot_fixtures/dialect_identity.jsonl")):
        for number, row in enumerate(_rows(path), start=1):
            yield statement_case(f"{path.name}:{number}", row["sql"], row["dialect"])
    for name, separator in (("identity.sql", "\n"), ("tpc-h.sql", ";")):
        for path in sorted(folder.glob(f"sqlglot_fixtures/{name}")):
            texts = path.read_text(encoding="utf-8").split(separator)
            for number, text in enumerate(texts, start=1):
                if text.strip():
                    yield statement_case(f"{name}:{number}", text, "")


def schema_cases(row: dict[str, Any]) -> Iterator[Case]:
    """The schema itself, then each of its instances."""
    source, schema = "JSON Schemas", row["schema"]
    try:
        check_schema(schema)
    except SchemaDefect as defect:
        yield Case(source=source, id=row["id"], disagreement=f"refused: {defect}")
        return
    for number, test in enumerate(row["tests"], start=1):
        name = f"{row['id']}, instance {number}"
        yield _json_case(source, name, schema, test["data"], is_valid=test["valid"])


def _json_case(
    source: str, name: str, schema: JsonSchema, value: object, *, is_valid: bool = True
) -> Case:
    prompt = Prompt(id=name, request={}, json_schema=schema, sql=None, line=1)
    finding = check_json(prompt, _answer(json.dumps(value)))
    return Case(source=source, id=name, disagreement=_against(finding, is_valid=is_valid))


def query_cases(row: dict[str, Any]) -> Iterator[Case]:
    """The tables themselves, then each query that the data calls right."""
    source, dialect, ddl = f"queries ({row['dialect']})", row["dialect"], row["ddl"]
    try:
        read_tables(ddl, dialect=dialect)
        if can_explain(dialect):
            explain(None, ddl=ddl, dialect=dialect)
    except DdlDefect as defect:
        yield Case(source=source, id=row["id"], disagreement=f"refused: {defect}")
        return
    sql = SqlExpectation(dialect=dialect, ddl=ddl, statement="select")
    prompt = Prompt(id=row["id"], request={}, json_schema=None, sql=sql, line=1)
    for number, text in enumerate(row["gold_sql"], start=1):
        finding = check_sql(prompt, _answer(text))
        name = f"{row['id']}, query {number}"
        yield Case(source=source, id=name, disagreement=_against(finding, is_valid=True))


def misspelt_cases(row: dict[str, Any]) -> Iterator[Case]:
    """Each right query again, with one name of a table or column misspelt: none is valid."""
    dialect, ddl = row["dialect"], row["ddl"]
    try:
        tables = read_tables(ddl, dialect=dialect)
    except DdlDefect:
        return  # told with the query itself
    names = {each.lower() for columns in tables.values() for each in columns}
    names |= {name[-1].lower() for name in tables}
    sql = SqlExpectation(dialect=dialect, ddl=ddl, statement="select")
    prompt = Prompt(id=row["id"], request={}, json_schema=None, sql=sql, line=1)
    for number, text in enumerate(row["gold_sql"], start=1):
        for start, end in _places_of(names, text, dialect):
            finding = check_sql(prompt, _answer(f"{text[:start]}no_such_name{text[end:]}"))
            yield Case(
                source=f"misspelt queries ({dialect})",
                id=f"{row['id']}, query {number}, character {start}",
                disagreement=_against(finding, is_valid=False),
            )


def _places_of(names: set[str], text: str, dialect: str) -> Iterator[tuple[int, int]]:
    """Where the names are used; a function's and one given after AS are others."""
    tokens = sqlglot.tokenize(text, dialect=dialect)
    kinds = ["", "", *(token.token_type.name for token in tokens), ""]
    for position, token in enumerate(tokens):
        before, after = kinds[position + 1], kinds[position + 3]
        is_unit = position > 1 and tokens[position - 2].text.upper() == "EXTRACT"
        is_name = token.text.lower() in names and kinds[position + 2] not in ("STRING", "NUMBER")
        if is_name and before != "ALIAS" and after != "L_PAREN" and not is_unit:
            yield token.start, token.end + 1


def statement_case(name: str, text: str, dialect: str) -> Case:
    """A statement must be read as the kind its first word says, and as no other."""
    read: list[str] = []
    said = ""
    expected = _kind_by_first_word(text)
    for kind in KINDS:
        try:
            read_statement(text, dialect=dialect, kind=kind)
            read.append(kind)
        except SqlDefect as defect:
            if kind == expected:
                said = f": {defect.kind}: {'; '.join(defect.facts)}"
    wanted = [] if expected is None else [expected]
    disagreement = None
    if read != wanted:
        disagreement = f"read as {_listed(read)}, begins like {_listed(wanted)}{said}"
    return Case(source=f"statements ({dialect or 'any'})", id=name, disagreement=disagreement)


def _kind_by_first_word(text: str) -> str | None:
    """What a reader takes it for; behind a WITH, what follows the list of common tables."""
    bare = COMMENT_OR_STRING.sub(" ", text).lower().strip().lstrip("( \n")
    word = bare.split(maxsplit=1)[0] if bare else ""
    if word == "with":
        while bare != (bare := IN_PARENTHESES.sub("", bare)):
            pass
        found = BEHIND_WITH.search(bare)
        word = found[1] if found is not None else ""
    word = {"from": "select", "replace": "insert"}.get(word, word)
    return word if word in KINDS else None


def _listed(kinds: list[str]) -> str:
    return ", ".join(kinds) if kinds else "no such statement"


def _against(finding: Finding | None, *, is_valid: bool) -> str | None:
    if (finding is None) is is_valid:
        return None
    if finding is None:
        return "valid, which the data calls invalid"
    return f"{finding.kind}, which the data calls valid: {'; '.join(finding.facts)}"


def _answer(text: str) -> Generation:
    return Generation(
        prompt_id="",
        prompt_token_ids=(),
        token_ids=(),
        text=text,
        finish_reason="stop",
        stop_reason=None,
        step_tokens=(),
        ttft_ms=0.0,
        tpot_ms=None,
        drafts=None,
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def totals(cases: list[Case]) -> Iterator[str]:
    """A line for each part of the data."""
    num_all = Counter(case.source for case in cases)
    num_agreed = Counter(case.source for case in cases if case.disagreement is None)
    for source, number in num_all.items():
        yield f"{source}: {num_agreed[source]} of {number} agree"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
