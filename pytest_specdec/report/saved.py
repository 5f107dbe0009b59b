"""Reading a saved `report.json`, which must be what `report.schema.json` says. Floor 4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_specdec.errors import ReportError
from pytest_specdec.json_text import JsonError, loads
from pytest_specdec.report.json_file import SCHEMA_VERSION


def read_report(path: Path) -> dict[str, Any]:
    """What the file holds.

    Raises:
        ReportError: naming the file and the key.
    """
    try:
        data = loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"not UTF-8, at byte {error.start}") from None
    except JsonError as error:
        where = "" if error.position is None else f" at character {error.position}"
        raise _unreadable(path, f"not JSON: {error.fact}{where}") from None
    if (defect := report_defect(data)) is not None:
        raise _unreadable(path, defect)
    return dict(data)


def report_defect(data: Any) -> str | None:
    """What the schema has against the data, by place."""
    from pytest_specdec.json_schemas import defect_by_shipped

    return defect_by_shipped("report/report.schema.json", data, version=SCHEMA_VERSION)


def _unreadable(path: Path, defect: str) -> ReportError:
    return ReportError(
        f"`{path}` cannot be read as a report: {defect}",
        hint="name the report.json of a session of this pytest-specdec; a new session writes one",
    )
