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

from pytest_specdec.pytest_reports import properties_of, reason_of
from pytest_specdec.report.annotations import Annotation, Level
from pytest_specdec.report.property_names import CHECK, KNOWN_DEFECT, PROFILE, VERDICT

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
        # Of a user's own tests what fails the build is told, and all else is the user's.
        if _is_unread_workload(report) or {CHECK, PROFILE} & properties_of(report).keys():
            yield "error", report
    for report in stats.get("skipped", ()):
        if CHECK in properties_of(report):
            yield "warning", report
    for report in stats.get("xfailed", ()):
        if KNOWN_DEFECT in properties_of(report):
            yield "notice", report


def _is_unread_workload(report: Any) -> bool:
    return isinstance(report, pytest.CollectReport) and report.nodeid.endswith(".jsonl")


def _rank(report: Any) -> int:
    if report.when != "call":
        return 0
    return 2 if properties_of(report).get(VERDICT) in UNDECIDED else 1


def _group(report: Any) -> object:
    return report.location and report.location[0], properties_of(report).get(CHECK)


def _annotation(report: Any, level: Level, rootdir: Path) -> Annotation:
    file, index, title = report.location
    message = reason_of(report)
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


def _in_repository(path: Path, rootdir: Path) -> str:
    """The path from the root of the repository, or of what the job checked out without git."""
    path = Path(os.path.normpath(path))
    roots = [each for each in path.parents if (each / ".git").exists()][:1]
    workspace = os.environ.get("GITHUB_WORKSPACE")
    roots += [Path(workspace)] if workspace else []
    root = next((each for each in (*roots, rootdir) if path.is_relative_to(each)), None)
    return (path if root is None else path.relative_to(root)).as_posix()
