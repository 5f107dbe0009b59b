"""The databases that explain an answer: sqlite always, duckdb where it is installed."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from pytest_specdec.checks.sql import check_sql
from pytest_specdec.sql_tables import DdlDefect, NotExplained, can_explain, explain
from pytest_specdec.workload import Prompt, SqlExpectation
from tests.said import answer

DDL = "CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR, d DATE, l INTEGER[])"
PLAIN_DDL = "CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR)"


def prompt() -> Prompt:
    sql = SqlExpectation(dialect="duckdb", ddl=PLAIN_DDL, statement="select")
    return Prompt(id="one", request={}, json_schema=None, sql=sql, line=1)


@pytest.fixture
def no_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "duckdb" else find_spec(name)
    )
    monkeypatch.setitem(sys.modules, "duckdb", None)  # its import raises


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a FROM t",
        "FROM t",
        "SELECT * EXCLUDE (b) FROM t",
        "SELECT b, MAX(a) FROM t GROUP BY ALL",
        "SELECT list_transform(l, lambda x: x + 1) FROM t",
        "SELECT a FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY d) = 1",
        "INSERT INTO t BY NAME SELECT 1 AS a",
        "UPDATE t SET b = 'x' RETURNING a",
        "DELETE FROM t WHERE d < DATE '2020-01-01'",
        "SELECT a FROM t; -- done",
    ],
)
def test_duckdb_accepts(statement: str) -> None:
    pytest.importorskip("duckdb")
    explain(statement, ddl=DDL, dialect="duckdb")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT zz FROM t", 'Binder Error: Referenced column "zz" not found in FROM clause!'),
        ("SELECT a FROM nope", "Catalog Error: Table with name nope does not exist!"),
        ("SELECT nosuch(a) FROM t", "Catalog Error: Scalar Function with name nosuch does not"),
        ("SELECT a FROM t GROUP BY b", 'Binder Error: column "a" must appear in the GROUP BY'),
        ("SELECT SUM(b) FROM t", "Binder Error: No function matches the given name and argument"),
        ("SELECT a FORM t", "Parser Error: "),
        ("SELECT 1; SELECT 2", "not one statement"),
        ("ANALYZE SELECT a FROM t", "not one statement|Parser Error: "),
        ("(ANALYZE) SELECT a FROM t", "not one statement|Parser Error: "),
        ("CREATE TABLE z (a INTEGER)", "not one statement"),
        ("SELECT * FROM 'x.csv'", "Permission Error: |Catalog Error: |Binder Error: "),
    ],
)
def test_duckdb_refuses(statement: str, said: str) -> None:
    pytest.importorskip("duckdb")
    with pytest.raises(NotExplained) as refused:
        explain(statement, ddl=DDL, dialect="duckdb")
    assert str(refused.value).startswith(tuple(said.split("|")))


def test_duckdb_refuses_a_ddl() -> None:
    pytest.importorskip("duckdb")
    with pytest.raises(DdlDefect, match=r"^duckdb refuses the DDL: ") as refused:
        explain(None, ddl="CREATE TABLE t (a nosuchtype)", dialect="duckdb")
    assert refused.value.hint == "correct the DDL"


def test_the_failure_text_of_a_refusal() -> None:
    pytest.importorskip("duckdb")
    finding = check_sql(prompt(), answer("SELECT a FROM t GROUP BY b"))
    assert str(finding).startswith(
        "refused by duckdb: `one`\n"
        '  Binder Error: column "a" must appear in the GROUP BY clause or must be part of an '
    )
    assert str(finding).endswith("\n  answer: 'SELECT a FROM t GROUP BY b'")


def test_which_databases_are_here() -> None:
    pytest.importorskip("duckdb")
    assert can_explain("sqlite")
    assert can_explain("duckdb")
    assert not can_explain("postgres")


@pytest.mark.usefixtures("no_duckdb")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT a FROM t", None),
        ("SELECT zz FROM t", "unknown name"),
        ("SELECT a FROM t GROUP BY b", None),  # only the database would have said so
    ],
)
def test_without_duckdb_its_dialect_is_still_read(text: str, kind: str | None) -> None:
    assert not can_explain("duckdb")
    finding = check_sql(prompt(), answer(text))
    assert (finding and finding.kind) == kind
