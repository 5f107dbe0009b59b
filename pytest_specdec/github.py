"""Annotations out of pytest's reports, for a job of GitHub Actions. Floor 5.

It goes by reports alone, which is all that the controller of pytest-xdist has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.report.annotations import Annotation, Level

# Names that report.properties gives; importing it would load the gate into sessions without one.
CHECK, VERDICT, KNOWN_DEFECT = "specdec_check", "specdec_verdict", "specdec_known_defect"
UNDECIDED = ("inconclusive", "no stored baseline", "incomparable")
_PLACE = re.compile(r".+\.jsonl:(\d+): ")


def annotations_of(stats: Mapping[str, Sequence[Any]], rootdir: Path) -> list[Annotation]:
    """What there is to remark on our tests, the worst first: what could not run, then what failed,
    then what could not be decided; and of each check of each workload one before any has two."""
    ranked = [
        (_rank(report), _group(report), _annotation(report, level, rootdir))
        for level, report in _ours(stats)
    ]
    seen: dict[object, int] = {}
    order = []
    for rank, group, annotation in ranked:
        seen[group] = seen.get(group, 0) + 1
        order.append((rank, seen[group], annotation))
    return [each for _, _, each in sorted(order, key=lambda each: each[:2])]


def _ours(stats: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Level, Any]]:
    for report in (*stats.get("error", ()), *stats.get("failed", ())):
        if _is_unread_workload(report) or CHECK in _properties(report):
            yield "error", report
    for report in stats.get("skipped", ()):
        if CHECK in _properties(report):
            yield "warning", report
    for report in stats.get("xfailed", ()):
        if KNOWN_DEFECT in _properties(report):
            yield "notice", report


def _is_unread_workload(report: Any) -> bool:
    return isinstance(report, pytest.CollectReport) and report.nodeid.endswith(".jsonl")


def _properties(report: Any) -> dict[str, Any]:
    return dict(getattr(report, "user_properties", ()))


def _rank(report: Any) -> int:
    if report.when != "call":
        return 0
    return 2 if _properties(report).get(VERDICT) in UNDECIDED else 1


def _group(report: Any) -> object:
    return report.location and report.location[0], _properties(report).get(CHECK)


def _annotation(report: Any, level: Level, rootdir: Path) -> Annotation:
    file, index, title = report.location
    message = _text(report)
    line = None if index is None else index + 1
    if _is_unread_workload(report) and (place := _PLACE.match(message)):
        line = int(place[1])
    return Annotation(
        level=level,
        file=_in_repository(rootdir / file, rootdir),
        line=line,
        title=title,
        message=message,
    )


def _text(report: Any) -> str:
    """The failure text, or the reason of a skip or of an expected failure."""
    if (reason := getattr(report, "wasxfail", None)) is not None:
        return str(reason).removeprefix("reason: ")
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return str(report.longrepr)  # `longreprtext` puts the worker of pytest-xdist first


def _in_repository(path: Path, rootdir: Path) -> str:
    """The path from the root of the repository, or of what the job checked out without git."""
    path = Path(os.path.normpath(path))
    roots = [each for each in path.parents if (each / ".git").exists()][:1]
    workspace = os.environ.get("GITHUB_WORKSPACE")
    roots += [Path(workspace)] if workspace else []
    root = next((each for each in (*roots, rootdir) if path.is_relative_to(each)), None)
    return (path if root is None else path.relative_to(root)).as_posix()
