"""The SQL check: what is valid in which dialect, and what each defect is called."""

from __future__ import annotations

import time

import pytest

from pytest_specdec.checks.sql import MAX_CHARS, check_sql
from pytest_specdec.sql_tables import NotExplained, can_explain, explain
from pytest_specdec.workload import Prompt, SqlExpectation
from tests.said import answer

DDL = (
    "CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR(9), c FLOAT);"
    "CREATE TABLE u (a INTEGER, d VARCHAR(9))"
)
DIALECTS = ("sqlite", "duckdb", "postgres", "mysql", "tsql")


def prompt(statement: str = "select", dialect: str = "sqlite", ddl: str = DDL) -> Prompt:
    sql = SqlExpectation(dialect=dialect, ddl=ddl, statement=statement)
    return Prompt(id="one", request={"max_tokens": 7}, json_schema=None, sql=sql, line=1)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("select", "SELECT a FROM t"),
        ("select", "SELECT A, T.B FROM T;\n"),
        ("select", "SELECT a FROM t -- all of them"),
        ("select", "SELECT 1"),
        ("select", "SELECT COUNT(*) FROM u"),
        ("select", "SELECT x.k FROM (SELECT a AS k FROM t) AS x"),
        ("select", "WITH x AS (SELECT a AS k FROM t) SELECT k FROM x ORDER BY k"),
        ("select", "SELECT t.b, u.d FROM t JOIN u ON t.a = u.a WHERE u.d LIKE '%x%'"),
        ("select", "SELECT b, COUNT(*) AS n FROM t GROUP BY b HAVING COUNT(*) > 1 ORDER BY n"),
        ("select", "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)"),
        ("select", "SELECT a FROM t UNION SELECT a FROM u"),
        ("select", "SELECT ROW_NUMBER() OVER (PARTITION BY b ORDER BY c) AS n FROM t"),
        ("insert", "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y');"),
        ("insert", "INSERT INTO t VALUES (1, 'x', 0.5)"),
        ("insert", "INSERT INTO u SELECT a, b FROM t"),
        ("update", "UPDATE t SET b = 'z', c = a + 1 WHERE a = 1"),
        ("delete", "DELETE FROM t WHERE a IN (SELECT a FROM u)"),
    ],
)
def test_valid(dialect: str, statement: str, text: str) -> None:
    assert check_sql(prompt(statement, dialect), answer(text)) is None


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("42", "not a statement"),
        ("sorry", "not a statement"),
        ("-- nothing", "not a statement"),
        ("VALUES (1)", "not a statement"),
        ("DROP TABLE t", "not a statement|wrong statement"),
        ("INSERT INTO t (a) VALUES (1)", "wrong statement"),
        ("SELECT * INTO z FROM t", "wrong statement|invalid SQL"),
        ("SELECT", "empty projection"),
        ("SELECT a FROM (SELECT) AS x", "empty projection"),
        ("```sql\nSELECT a FROM t\n```", "fenced"),
        ("SELECT a FROM t; SELECT b FROM t", "more than one statement"),
        ("SELECT a FROM t; That is it.", "text after the end|invalid SQL"),
        ("SELECT a FROM t That is all", "invalid SQL"),
        ("SELECT a FROM t<|im_end|>", "special token"),
        ("SELECT a FROM t WHERE", "invalid SQL"),
        ("SELECT 'x", "invalid SQL"),
        ("SELECT nope FROM t", "unknown name"),
        ("SELECT t.nope FROM t", "unknown name"),
        ("SELECT x.a FROM t", "unknown name"),
        ("SELECT a FROM nope", "unknown name"),
        ("SELECT COUNT(*) FROM nope", "unknown name"),
        ("SELECT a FROM t WHERE a IN (SELECT zz FROM u)", "unknown name"),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM nope)", "unknown name"),
        ("WITH x AS (SELECT a FROM t) SELECT b FROM x", "unknown name"),
        ("WITH x AS (SELECT a FROM nope) SELECT a FROM x", "unknown name"),
        ("SELECT t.b FROM t JOIN u ON t.a = u.zz", "unknown name"),
        ("SELECT a FROM t, u", "unknown name"),
        ("SELECT b AS k FROM t GROUP BY k HAVING zz > 1", "unknown name"),
        ("SELECT a FROM t UNION SELECT a, d FROM u", "wrong number of values"),
    ],
)
def test_refused_as_a_select(dialect: str, text: str, kind: str) -> None:
    finding = check_sql(prompt("select", dialect), answer(text))
    assert finding is not None
    assert finding.kind in kind.split("|")
    assert finding.facts


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("statement", "text", "kind"),
    [
        ("insert", "SELECT 1", "wrong statement"),
        ("insert", "INSERT INTO nope VALUES (1)", "unknown name"),
        ("insert", "INSERT INTO t (a, zz) VALUES (1, 2)", "unknown name"),
        ("insert", "INSERT INTO t (a, a) VALUES (1, 2)", "repeated column"),
        ("insert", "INSERT INTO t (a) VALUES (zz)", "unknown name"),
        ("insert", "INSERT INTO t (a, b) VALUES (1, 'x'), (2)", "wrong number of values"),
        ("insert", "INSERT INTO t VALUES (1, 'x', 0.5, 9)", "wrong number of values"),
        ("insert", "INSERT INTO t (a) SELECT zz FROM u", "unknown name"),
        ("insert", "INSERT INTO t (a) SELECT a, d FROM u", "wrong number of values"),
        ("insert", "INSERT INTO t (a) SELECT * FROM u", "wrong number of values"),
        ("insert", "INSERT INTO t (a) VALUES (1); DELETE FROM t", "more than one statement"),
        ("update", "UPDATE nope SET a = 1", "unknown name"),
        ("update", "UPDATE t SET zz = 1", "unknown name"),
        ("update", "UPDATE t SET a = zz", "unknown name"),
        ("update", "UPDATE t SET a = 1 WHERE zz = 1", "unknown name"),
        ("update", "UPDATE t SET a = (SELECT zz FROM u)", "unknown name"),
        ("update", "DELETE FROM t", "wrong statement"),
        ("delete", "DELETE FROM nope", "unknown name"),
        ("delete", "DELETE FROM t WHERE zz = 1", "unknown name"),
        ("delete", "UPDATE t SET a = 1", "wrong statement"),
    ],
)
def test_refused_as_a_write(dialect: str, statement: str, text: str, kind: str) -> None:
    finding = check_sql(prompt(statement, dialect), answer(text))
    assert finding is not None
    assert finding.kind == kind


@pytest.mark.parametrize(
    ("dialect", "text", "kind"),
    [
        ("sqlite", 'SELECT a FROM t WHERE b = "x"', None),  # a string, as sqlite reads it
        ("sqlite", 'SELECT "nope" FROM t', "unknown name"),
        ("postgres", 'SELECT a FROM t WHERE b = "x"', "unknown name"),
        ("mysql", 'SELECT a FROM t WHERE b = "x"', None),
        ("sqlite", "SELECT rowid FROM t", None),
        ("postgres", "SELECT rowid FROM t", "unknown name"),
        ("postgres", 'SELECT "A" FROM t', "unknown name"),
        ("sqlite", 'SELECT "A" FROM t', None),
        ("sqlite", "SELECT a, FROM t", "refused by sqlite|invalid SQL"),
        ("postgres", "SELECT a, FROM t", "invalid SQL"),
        ("duckdb", "SELECT a, FROM t", None),
        ("postgres", "FROM t", "invalid SQL"),
        ("duckdb", "FROM t", None),
        ("sqlite", "SELECT nosuch(a) FROM t", "refused by sqlite"),
        ("duckdb", "SELECT nosuch(a) FROM t", "refused by duckdb"),
        ("duckdb", "SELECT b + a FROM t WHERE c = 'no number'", "refused by duckdb"),
        ("sqlite", "(SELECT a FROM t)", "refused by sqlite"),
        ("postgres", "(SELECT a FROM t)", None),
        ("postgres", "INSERT INTO t VALUES (1)", "wrong statement"),
        ("sqlite", "SELECT value FROM json_each('[1]')", None),
        ("sqlite", "SELECT t.a, value FROM t, json_each(t.b)", None),
        ("postgres", "SELECT x, y FROM f(1), g(2)", None),  # what they return is not declared
        ("sqlite", "SELECT t.a, nope FROM t, json_each(t.b)", "refused by sqlite"),
    ],
)
def test_dialects_differ(dialect: str, text: str, kind: str | None) -> None:
    if dialect == "duckdb":
        pytest.importorskip("duckdb")
    finding = check_sql(prompt("select", dialect), answer(text))
    assert (finding is None) if kind is None else (finding and finding.kind in kind.split("|"))


@pytest.mark.parametrize(
    ("statement", "text", "is_valid"),
    [
        ("update", "UPDATE t SET b = u.d FROM u WHERE u.a = t.a RETURNING t.b", True),
        ("update", "UPDATE t SET b = u.zz FROM u WHERE u.a = t.a", False),
        ("update", "UPDATE t SET b = 'x' RETURNING zz", False),
        ("update", "WITH x AS (SELECT a AS k FROM u) UPDATE t SET a = x.k FROM x", True),
        ("delete", "DELETE FROM t USING u WHERE t.a = u.a", True),
        ("delete", "DELETE FROM t USING u WHERE t.a = u.zz", False),
        ("delete", "WITH x AS (SELECT a FROM u) DELETE FROM t WHERE a IN (SELECT a FROM x)", True),
        ("delete", "WITH x AS (SELECT zz FROM u) DELETE FROM t WHERE a = 1", False),
        ("insert", "INSERT INTO t (a) VALUES (1) RETURNING a", True),
        ("insert", "INSERT INTO t (a) VALUES (1) RETURNING zz", False),
        ("insert", "INSERT INTO t (a, b) VALUES (1, DEFAULT)", True),
        ("insert", "WITH x AS (SELECT a FROM u) INSERT INTO t (a) SELECT a FROM x", True),
        ("insert", "WITH x AS (SELECT zz FROM u) INSERT INTO t (a) SELECT 1", False),
    ],
)
def test_clauses_of_writing_statements(*, statement: str, text: str, is_valid: bool) -> None:
    finding = check_sql(prompt(statement, "postgres"), answer(text))
    assert (finding is None) is is_valid


@pytest.mark.parametrize(
    ("dialect", "statement", "text", "is_valid"),
    [
        ("sqlite", "select", "SELECT a FROM t; -- done", True),
        ("postgres", "select", "SELECT a FROM t; -- done\nSELECT b FROM t", False),
        ("postgres", "select", "SELECT ctid, xmin FROM t WHERE tableoid > 0", True),
        ("mysql", "select", "SELECT ctid FROM t", False),
        ("mysql", "select", "SELECT 1 FROM DUAL", True),
        ("oracle", "select", "SELECT SYSDATE FROM dual", True),
        ("mysql", "select", "SELECT a FROM DUAL", False),
        ("mysql", "select", "SELECT a, 1 FROM t, DUAL", True),
        ("postgres", "select", "SELECT 1 FROM dual", False),
        ("bigquery", "select", "FROM t |> SELECT a", True),
        ("tsql", "select", "SELECT * FROM t PIVOT (SUM(c) FOR b IN ([x], [y])) AS p", True),
        ("tsql", "select", "SELECT * FROM nope PIVOT (SUM(c) FOR b IN ([x], [y])) AS p", False),
        ("sqlite", "insert", "REPLACE INTO t (a, b) VALUES (1, 'x')", True),
        ("mysql", "insert", "replace into t (a, b) VALUES (1, 'x')", True),
        ("sqlite", "insert", "REPLACE INTO t (a, zz) VALUES (1, 'x')", False),
        ("sqlite", "update", "REPLACE INTO t (a, b) VALUES (1, 'x')", False),
        ("postgres", "insert", "REPLACE INTO t (a, b) VALUES (1, 'x')", False),
        ("sqlite", "update", "UPDATE OR IGNORE t SET b = 'q'", True),
        ("sqlite", "update", "UPDATE OR IGNORE t SET zz = 'q'", False),
        ("sqlite", "update", "UPDATE OR NOTHING t SET b = 'q'", False),
        ("postgres", "update", "UPDATE OR IGNORE t SET b = 'q'", False),
        ("sqlite", "update", 'UPDATE t SET b = "x" WHERE a = 1', True),
        ("postgres", "update", 'UPDATE t SET b = "x" WHERE a = 1', False),
        ("sqlite", "insert", 'INSERT INTO t (a, b) VALUES (1, "x")', True),
        ("postgres", "insert", 'INSERT INTO t (a, b) VALUES (1, "x")', False),
        ("sqlite", "insert", "INSERT INTO t (rowid, b) VALUES (1, 'x')", True),
        ("mysql", "insert", "INSERT INTO t (rowid, b) VALUES (1, 'x')", False),
        ("postgres", "update", "UPDATE t SET b = DEFAULT, c = 1", True),
        ("postgres", "update", 'UPDATE t SET b = "default"', False),
        ("tsql", "update", "UPDATE x SET b = 'q' FROM t AS x JOIN u ON u.a = x.a", True),
        ("tsql", "update", "UPDATE x SET zz = 'q' FROM t AS x JOIN u ON u.a = x.a", False),
        ("tsql", "update", "UPDATE x SET b = x.zz FROM t AS x JOIN u ON u.a = x.a", False),
        ("tsql", "update", "UPDATE x SET b = 'q' FROM t AS y", False),
        ("tsql", "insert", "INSERT INTO t (a) OUTPUT inserted.a VALUES (1)", True),
        ("tsql", "insert", "INSERT INTO t (a) OUTPUT inserted.zz VALUES (1)", False),
        ("tsql", "update", "UPDATE t SET b = 'x' OUTPUT deleted.b, inserted.b", True),
        ("postgres", "insert", "INSERT INTO t (a) VALUES (1) RETURNING inserted.a", False),
        ("tsql", "delete", "DELETE FROM t OUTPUT deleted.a", True),
        ("tsql", "delete", "DELETE FROM t OUTPUT deleted.zz", False),
        ("duckdb", "insert", "INSERT INTO t BY NAME SELECT 1 AS a", True),
        ("duckdb", "insert", "INSERT INTO t BY NAME SELECT 1 AS zz", False),
    ],
)
def test_spellings_of_one_dialect(
    *, dialect: str, statement: str, text: str, is_valid: bool
) -> None:
    finding = check_sql(prompt(statement, dialect), answer(text))
    assert (finding is None) is is_valid, str(finding)


@pytest.mark.parametrize(
    ("dialect", "text", "fact"),
    [
        ("tsql", "SELECT a FROM t LIMIT 5", "tsql has no `LIMIT`: 'SELECT a FROM t LIMIT 5'"),
        ("tsql", "SELECT TOP 5 a FROM t", None),
        ("postgres", "SELECT a FROM t LIMIT 1, 2", "postgres has no `LIMIT offset, count`: "),
        ("mysql", "SELECT a FROM t LIMIT 1, 2", None),
        ("mysql", "SELECT a::int FROM t", "mysql has no `::`: "),
        ("postgres", "SELECT a::int FROM t", None),
        ("mysql", "SELECT '::' FROM t", None),
        ("mysql", "SELECT a FROM t WHERE b ILIKE 'x'", "mysql has no `ILIKE`: "),
        ("bigquery", "SELECT DISTINCT ON (b) a FROM t", "bigquery has no `DISTINCT ON`: "),
        ("postgres", "SELECT DISTINCT ON (b) a FROM t", None),
        (
            "postgres",
            "SELECT a FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 1",
            "postgres has no `QUALIFY`: ",
        ),
        ("mysql", "SELECT t.a FROM t FULL JOIN u ON t.a = u.a", "mysql has no `FULL JOIN`: "),
        ("tsql", "SELECT dt + INTERVAL '1 day' FROM t", "tsql has no `INTERVAL`: "),
        ("mysql", "SELECT [a] FROM t", "mysql has no `[`: "),
        ("postgres", "SELECT [a] FROM t", "postgres has no array without `ARRAY`: "),
        ("postgres", "SELECT ARRAY[[1], [2]], (ARRAY[a])[1] FROM t", None),
        ("postgres", "FROM t", "a query cannot begin with FROM: 'FROM t'"),
        ("mysql", "SELECT a, FROM t", "a comma stands before FROM: 'SELECT a, FROM t'"),
        (
            "postgres",
            "SELECT a AS k FROM t WHERE k > 1",
            "postgres does not know the name in WHERE yet: `k`",
        ),
        ("sqlite", "SELECT a AS k FROM t WHERE k > 1", None),
        ("snowflake", "SELECT a AS k FROM t WHERE k > 1", None),
        ("postgres", "SELECT a + 1 AS a FROM t WHERE a > 1", None),
        ("postgres", "SELECT a AS k FROM t ORDER BY k", None),
        ("postgres", "SELECT b AS k FROM t GROUP BY k", None),
        (
            "postgres",
            "SELECT SUM(a) AS k FROM t GROUP BY b HAVING k > 1",
            "postgres does not know the name in HAVING yet: `k`",
        ),
        ("mysql", "SELECT SUM(a) AS k FROM t GROUP BY b HAVING k > 1", None),
        (
            "tsql",
            "SELECT YEAR(b) AS y FROM t GROUP BY y",
            "tsql does not know the name in GROUP BY yet: `y`",
        ),
        (
            "postgres",
            "SELECT a AS k, k + 1 AS l FROM t",
            "postgres does not know the name in the list of columns yet: `k`",
        ),
        ("postgres", "SELECT a AS k FROM t WHERE EXISTS (SELECT k FROM (SELECT 1 AS k) x)", None),
        ("postgres", "SELECT x.k FROM (SELECT a AS k FROM t) x WHERE k > 1", None),
        (
            "postgres",
            "SELECT nope.a FROM t, generate_series(1, 2) AS g",
            "unknown table of a column: `nope.a`",
        ),
        ("postgres", "SELECT g.g, t.a FROM t, generate_series(1, 2) AS g", None),
        ("postgres", "SELECT jsonb_each.key FROM t, jsonb_each(t.b)", None),
        ("postgres", "SELECT a FROM public.t", None),
        ("postgres", "SELECT a FROM other.t", "unknown table: `other.t`"),
        ("tsql", "SELECT a FROM other.t", "unknown table: `other.t`"),
        ("tsql", "SELECT a FROM dbo.t", None),
        ("mysql", "SELECT a FROM other.t", None),  # a database, whose name no DDL here says
        ("tsql", "SELECT a FROM t WHERE a IN (, 1)", "a comma stands at the end of a list: "),
        ("mysql", "SELECT a FROM t WHERE a IN (1, )", "a comma stands at the end of a list: "),
        ("bigquery", "SELECT [1, 2, ] AS l FROM t", None),
        ("tsql", "SELECT CASE WHEN a > 1 b END FROM t", "a WHEN lacks its THEN: "),
        ("tsql", "SELECT CASE WHEN a > 1 THEN b WHEN a > 2 THEN 'x' END FROM t", None),
        (
            "postgres",
            "SELECT b, COUNT(*) FROM t",
            "`b` stands beside an aggregate without GROUP BY",
        ),
        (
            "tsql",
            "WITH x AS (SELECT t.b AS k, MAX(a) AS m FROM t) SELECT k FROM x",
            "`b` stands beside an aggregate without GROUP BY",
        ),
        ("postgres", "SELECT b, COUNT(*) FROM t GROUP BY b", None),
        ("postgres", "SELECT b, COUNT(*) OVER () FROM t", None),
        ("postgres", "SELECT COUNT(b), MAX(a) + 1, 'x' FROM t", None),
        ("postgres", "SELECT MAX(a), (SELECT MAX(a) FROM u) FROM t", None),
        ("postgres", "SELECT a, (SELECT MAX(u.a) + t.a FROM u) FROM t", None),
        ("sqlite", "SELECT b, COUNT(*) FROM t", None),
        ("snowflake", "SELECT b, LISTAGG(a, ',') FROM t", "`B` stands beside an aggregate"),
        ("postgres", "SELECT SUM(SUM(a)) OVER (ORDER BY b) FROM t GROUP BY b", None),
        ("postgres", "SELECT COUNT(*) FILTER (WHERE b = 'x') FROM t", None),
        ("postgres", "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a) FROM t", None),
        ("bigquery", "SELECT * EXCEPT (b) FROM t", None),
        ("bigquery", "SELECT * EXCEPT (zz) FROM t", "unknown column left out of `*`: `zz`"),
    ],
)
def test_what_one_dialect_lacks(dialect: str, text: str, fact: str | None) -> None:
    ddl = DDL.replace("c FLOAT", "c FLOAT, dt DATE")
    finding = check_sql(prompt("select", dialect, ddl), answer(text))
    if fact is None:
        assert finding is None, str(finding)
    else:
        assert finding is not None
        assert finding.facts[0].startswith(fact)


def test_a_very_long_answer_is_refused_unread() -> None:
    text = "SELECT a FROM t WHERE b = '" + "x" * MAX_CHARS + "'"
    finding = check_sql(prompt(), answer(text))
    assert finding is not None
    assert finding.facts == (f"characters: {len(text)}, at most {MAX_CHARS}",)


def test_postgres_fills_the_columns_left_out() -> None:
    assert check_sql(prompt("insert", "postgres"), answer("INSERT INTO t VALUES (1)")) is None
    assert check_sql(prompt("insert", "mysql"), answer("INSERT INTO t VALUES (1)")) is not None


@pytest.mark.parametrize("text", ["SELECT M.X FROM mixed AS m", 'SELECT "X" FROM mixed'])
def test_names_in_the_ddl_keep_their_case(text: str) -> None:
    folded = prompt("select", "postgres", ddl="CREATE TABLE mixed (x INT)")
    quoted = prompt("select", "postgres", ddl='CREATE TABLE mixed ("X" INT)')
    is_quoted = '"' in text
    assert (check_sql(quoted, answer(text)) is None) is is_quoted
    assert (check_sql(folded, answer(text)) is None) is not is_quoted


@pytest.mark.parametrize(
    ("ddl", "text", "is_valid"),
    [
        ("CREATE TABLE s.t (a INT)", "SELECT a FROM s.t", True),
        ("CREATE TABLE s.t (a INT)", "SELECT a FROM t", True),
        ("CREATE TABLE s.t (a INT)", "SELECT a FROM r.t", False),
        ("CREATE TABLE s.t (a INT)", "SELECT b FROM t", False),
        ("CREATE TABLE s.t (a INT); CREATE TABLE u (b INT)", "SELECT a, b FROM s.t, u", True),
        ("CREATE TABLE s.t (a INT); CREATE TABLE r.t (b INT)", "SELECT a FROM t", False),
        ("CREATE TABLE s.t (a INT); CREATE TABLE r.t (b INT)", "SELECT b FROM r.t", True),
        ("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a AS k FROM t", "SELECT k FROM v", True),
        ("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a AS k FROM t", "SELECT a FROM v", False),
    ],
)
def test_tables_in_schemas_and_views(*, ddl: str, text: str, is_valid: bool) -> None:
    finding = check_sql(prompt("select", "postgres", ddl=ddl), answer(text))
    assert (finding is None) is is_valid


@pytest.mark.parametrize(
    ("text", "finish_reason", "kind"),
    [
        ("", "stop", "empty"),
        ("SELECT a FR", "length", "truncated"),
        ("SELECT a FROM t WHERE a > 1", "length", "truncated"),  # parses by luck
        ("SELECT a FROM t;", "length", None),
        ("SELECT a FROM t" + "\n" * 32, "length", "whitespace runaway"),
        ("SELECT a FROM t", "abort", "aborted"),
        ("SELECT a FROM t", "error", "engine error"),
        ("```sql\nSELECT", "length", "fenced"),
        ("SELECT a FROM t<|im_end|>", "length", "special token"),
        (" \n", "stop", "empty"),
        ("SELECT a FROM t; SELECT", "length", "truncated"),
    ],
)
def test_how_the_answer_ended(text: str, finish_reason: str, kind: str | None) -> None:
    finding = check_sql(prompt(), answer(text, finish_reason))
    assert (finding and finding.kind) == kind


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        (
            "SELECT nope FROM t",
            "unknown name: `one`\n"
            "  column `nope` could not be resolved at line 1, column 11\n"
            "hint: `t` has `a`, `b`, `c`",
        ),
        ("SELECT t.nope FROM t", "unknown name: `one`\n  unknown column: `nope`\nhint: `t` has"),
        ("SELECT a FROM uu", "unknown name: `one`\n  unknown table: `uu`\nhint: did you mean `u`?"),
        ("42", "not a statement: `one`\n  expected one SELECT statement, and the answer is: '42'"),
        (
            "SELECT a FROM t; SELECT b FROM t",
            "more than one statement: `one`\n  statements: 2\n  the second: 'SELECT b FROM t'",
        ),
        (
            "SELECT a FROM t This is it",
            "invalid SQL: `one`\n  Invalid expression / Unexpected token at line 1, column 23\n"
            "  up to there: 'SELECT a FROM t This is'",
        ),
        (
            "SELECT nosuch(a) FROM t",
            "refused by sqlite: `one`\n  no such function: nosuch\n  answer: 'SELECT nosuch(a)",
        ),
    ],
)
def test_failure_texts(text: str, failure: str) -> None:
    assert str(check_sql(prompt(), answer(text))).startswith(failure)


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 2_500,
        "SELECT " + "(" * 2_500 + "1" + ")" * 2_500,
        "SELECT " + "NOT " * 2_000 + "1",
        "SELECT " + "1 + " * 2_000 + "1",
        "SELECT " + "CASE WHEN " * 800,
        "SELECT * FROM " + "(SELECT * FROM " * 500 + "t",
        "SELECT a FROM t WHERE " + " OR ".join(["a = 1"] * 900),
        "SELECT " + "a, " * 3_000 + "a FROM t",
        "SELECT a FROM t" + ";" * 12_500,
        "\x00SELECT a FROM t\ud800",
        "SELECT '\x00' FROM t\x00; DROP TABLE t",
        "x" * (MAX_CHARS + 1),
    ],
    ids=lambda text: text[:20].encode("ascii", "replace").decode().replace("\x00", "0"),
)
def test_hostile_text_ends_in_a_finding_or_none(dialect: str, text: str) -> None:
    start = time.monotonic()
    check_sql(prompt("select", dialect), answer(text))
    assert (
        time.monotonic() - start < 30
    )  # seconds where an unguarded reading takes minutes or ends the process


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1; CREATE TABLE z (a INTEGER)",
        "ATTACH 'x.db' AS x",
        "SELECT * FROM read_csv('/etc/hostname')",
        "SELECT * FROM nope",
    ],
)
def test_the_database_is_closed_to_the_outside(dialect: str, statement: str) -> None:
    if not can_explain(dialect):
        pytest.skip(f"{dialect} is not installed")
    with pytest.raises(NotExplained):
        explain(statement, ddl=DDL, dialect=dialect)


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_a_statement_is_explained_and_never_run(dialect: str) -> None:
    if not can_explain(dialect):
        pytest.skip(f"{dialect} is not installed")
    endless = (
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM r"
    )
    start = time.monotonic()
    explain(endless, ddl=DDL, dialect=dialect)
    assert time.monotonic() - start < 2


def test_the_ddl_cannot_attach(tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.mktemp("db") / "x.db"
    with pytest.raises(ValueError, match="sqlite refuses the DDL: not authorized"):
        explain(None, ddl=f"{DDL}; ATTACH '{target}' AS x", dialect="sqlite")
    assert not target.exists()


def test_a_prompt_without_sql_is_a_mistake_of_the_caller() -> None:
    plain = Prompt(id="one", request={}, json_schema=None, sql=None, line=1)
    with pytest.raises(ValueError, match=r"declares no `expect\.sql`"):
        check_sql(plain, answer("SELECT 1"))
