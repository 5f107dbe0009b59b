"""The report files: `report.json`, and what is made of it for people. Floor 5."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_specdec.errors import ReportError
from pytest_specdec.report.html import html_page
from pytest_specdec.report.json_file import report_json
from pytest_specdec.report.markdown import MAX_BYTES, RESERVED_BYTES, markdown
from pytest_specdec.whole_file import written_whole

MAKERS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "report.json": report_json,
    "report.html": html_page,
    "report.md": markdown,
}
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def write_reports(data: Mapping[str, Any], folder: Path) -> tuple[Path, ...]:
    """Writes all of them; what the others are made of comes first.

    Raises:
        ReportError: one of them cannot be written.
    """
    with _refusing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, make in MAKERS.items():
            with written_whole(folder / name) as file:
                file.write(make(data).encode())
    return tuple(folder / name for name in MAKERS)


def remove_reports(folder: Path) -> None:
    """Removes those of an earlier session.

    Raises:
        ReportError: one of them cannot be removed, so that none could be written.
    """
    with _refusing(folder):
        for name in MAKERS:
            (folder / name).unlink(missing_ok=True)


@contextmanager
def _refusing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReportError(
            f"no reports can be written to `{folder}`: {error.strerror or error}",
            hint="name another folder with `--specdec-report DIR`",
        ) from error


def add_step_summary(data: Mapping[str, Any]) -> str | None:
    """Adds the Markdown to the page of a GitHub job, where there is one.

    What else the step has written counts too: a file beyond the limit is not shown at all.

    Returns:
        What there is to tell of it: a page that cannot be written fails no build.
    """
    name = os.environ.get(STEP_SUMMARY)
    if not name:
        return None
    path = Path(name)
    try:
        num_left = MAX_BYTES - 1 - (path.stat().st_size if path.exists() else 0)
        if num_left < RESERVED_BYTES:
            return f"`{STEP_SUMMARY}` is full: the step has written as much as GitHub shows"
        with path.open("a", encoding="utf-8") as file:
            file.write("\n" + markdown(data, max_bytes=num_left))
    except OSError as error:
        return f"`{STEP_SUMMARY}` cannot be written: {error.strerror or error}"
    return None
