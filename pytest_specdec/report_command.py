"""`pytest-specdec report`: the page and the Markdown again, of a saved `report.json`. Floor 5."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_specdec.errors import ReportError
from pytest_specdec.report.html import html_page
from pytest_specdec.report.markdown import markdown
from pytest_specdec.report.saved import read_report
from pytest_specdec.whole_file import written_whole

# What `add_subparsers` returns has no public name.
Subparsers = Any


def add_report(subparsers: Subparsers) -> None:
    """`pytest-specdec report REPORT_JSON`."""
    parser = subparsers.add_parser(
        "report", help="make report.html and report.md of a report.json", description=report.__doc__
    )
    parser.add_argument("report", type=Path, metavar="REPORT_JSON")
    parser.add_argument("--html", type=Path, metavar="PATH", help="where to write the page")
    parser.add_argument("--markdown", type=Path, metavar="PATH", help="where to write the Markdown")
    parser.set_defaults(run=report)


def report(options: argparse.Namespace) -> int:
    """Makes what is asked for; with neither option both, beside REPORT_JSON."""
    data = read_report(options.report)
    html, md = options.html, options.markdown
    if html is None and md is None:
        html, md = (options.report.with_suffix(suffix) for suffix in (".html", ".md"))
    _write(html, html_page, data)
    _write(md, markdown, data)
    return 0


def _write(
    path: Path | None, make: Callable[[Mapping[str, Any]], str], data: Mapping[str, Any]
) -> None:
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as file:
            file.write(make(data).encode())
    except OSError as error:
        raise ReportError(
            f"`{path}` cannot be written: {error.strerror or error}",
            hint="name a file in a folder that can be written",
        ) from None
    sys.stdout.write(f"{path}\n")
