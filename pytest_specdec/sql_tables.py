"""SQL tables: what a DDL declares, and an empty database that holds it.

Both the reading of workloads and the SQL check stand on this, so that the DDL that was accepted is
the DDL that answers are resolved against. The databases are in memory, cannot reach a file or the
network, and only ever explain an answer. `sqlglot`, `sqlite3` and `duckdb` are imported on use.
Floor 0: imports only its own floor.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from pytest_specdec.json_text import quoted

Tables = Mapping[tuple[str, ...], tuple[str, ...]]
"""Column names by table name, all as the dialect folds case; a table name is its parts, schema
first."""

EXPLAIN_TIMEOUT_S = 5.0
_EXPLAINED = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE"})


class DdlDefect(ValueError):
    """A DDL cannot be used; `str` says what in it.

    Attributes:
        hint: what to do about it.
    """

    def __init__(self, fact: str, *, hint: str) -> None:
        super().__init__(fact)
        self.hint = hint


class NotExplained(Exception):
    """The database refuses a statement; `str` is its own message."""


def dialects() -> frozenset[str]:
    """The dialect names sqlglot knows."""
    from sqlglot.dialects.dialect import Dialects

    return frozenset(each.value for each in Dialects if each.value)


def name_rules(dialect: str) -> str:
    """sqlglot's spelling of the dialect with its rules for the case of names.

    MySQL always ignores case in columns, and in tables on some platforms; sqlglot never does.
    """
    return "mysql, normalization_strategy = case_insensitive" if dialect == "mysql" else dialect


def read_tables(ddl: str, *, dialect: str) -> Tables:
    """The tables and views that the `CREATE` statements of `ddl` declare.

    Raises:
        DdlDefect: when it does not parse, holds another statement, or declares no table.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        statements = [each for each in sqlglot.parse(ddl, dialect=dialect) if each is not None]
    except (SqlglotError, RecursionError) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DdlDefect(
            f"the DDL does not parse as {dialect}: {first_line}", hint="correct the DDL"
        ) from None
    tables: dict[tuple[str, ...], tuple[str, ...]] = {}
    for statement in statements:
        if isinstance(statement, exp.Comment | exp.Semicolon):
            continue
        if not isinstance(statement, exp.Create):
            raise DdlDefect(
                f"the DDL holds a statement other than CREATE: {quoted(statement.sql(dialect))}",
                hint="write the tables as they are in the end, one CREATE each",
            )
        if statement.kind in ("TABLE", "VIEW"):
            name, columns = _declared(statement, dialect)
            tables[name] = columns
    if not tables:
        raise DdlDefect("the DDL holds no CREATE TABLE", hint="declare at least one table")
    return tables


def _declared(create: Any, dialect: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from sqlglot import exp

    target = create.this
    table = target.this if isinstance(target, exp.Schema) else target
    name = tuple(_folded(part, dialect) for part in table.parts)
    columns = tuple(
        _folded(each if isinstance(each, exp.Identifier) else each.this, dialect)
        for each in (target.expressions if isinstance(target, exp.Schema) else ())
        if isinstance(each, exp.ColumnDef | exp.Identifier)
    )
    if not columns and isinstance(create.expression, exp.Query):
        columns = tuple(create.expression.named_selects)
    if not columns or "*" in columns:
        raise DdlDefect(
            f"the DDL does not name the columns of `{'.'.join(name)}`",
            hint="list the columns in its CREATE statement",
        )
    return name, columns


def _folded(identifier: Any, dialect: str) -> str:
    from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

    name: str = normalize_identifiers(identifier.copy(), dialect=name_rules(dialect)).name
    return name


def can_explain(dialect: str) -> bool:
    """Whether a database for this dialect is here: sqlite always, duckdb where it is installed."""
    if dialect == "duckdb":
        return importlib.util.find_spec("duckdb") is not None
    return dialect == "sqlite"


def explain(statement: str | None, *, ddl: str, dialect: str) -> None:
    """Builds the tables in an empty database and has it explain `statement`; nothing is run.

    Args:
        statement: `None` builds the tables only.

    Raises:
        DdlDefect: when the database refuses the DDL.
        NotExplained: when it refuses the statement.
    """
    if dialect == "sqlite":
        _explain_in_sqlite(statement, ddl)
    else:
        _explain_in_duckdb(statement, ddl)


def _explain_in_sqlite(statement: str | None, ddl: str) -> None:
    import sqlite3

    with closing(sqlite3.connect(":memory:")) as connection:
        connection.set_authorizer(_sqlite_authorizer)
        deadline = time.monotonic() + EXPLAIN_TIMEOUT_S
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        try:
            connection.executescript(ddl)
        except sqlite3.Error as error:
            raise _refused_ddl("sqlite", error) from None
        if statement is None:
            return
        try:
            connection.execute(f"EXPLAIN {statement}")
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise NotExplained(str(error)) from None


def _sqlite_authorizer(action: int, *_: object) -> int:
    import sqlite3

    outside = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA)
    return sqlite3.SQLITE_DENY if action in outside else sqlite3.SQLITE_OK


def _explain_in_duckdb(statement: str | None, ddl: str) -> None:
    import duckdb

    closed: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "lock_configuration": "true",
        "threads": "1",
    }
    with closing(duckdb.connect(":memory:", config=closed)) as connection, _interrupted(connection):
        try:
            connection.execute(ddl)
        except duckdb.Error as error:
            raise _refused_ddl("duckdb", error) from None
        if statement is None:
            return
        try:
            found = [each.type.name for each in connection.extract_statements(statement)]
            if len(found) != 1 or found[0] not in _EXPLAINED:  # EXPLAIN ANALYZE would run it
                raise NotExplained("not one statement")
            connection.execute(f"EXPLAIN {statement}")
        except duckdb.Error as error:
            raise NotExplained(str(error)) from None


@contextmanager
def _interrupted(connection: Any) -> Iterator[None]:
    """Interrupts the connection when the time is up."""
    timer = threading.Timer(EXPLAIN_TIMEOUT_S, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _refused_ddl(database: str, error: Exception) -> DdlDefect:
    first_line = str(error).splitlines()[0]
    return DdlDefect(f"{database} refuses the DDL: {first_line}", hint="correct the DDL")
