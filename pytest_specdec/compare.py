"""`pytest-specdec compare A B`: the recordings of two sessions beside each other. Floor 5."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pytest_specdec.comparison import Recorded, compare_profile
from pytest_specdec.errors import RecordingError
from pytest_specdec.recording_file import read_recording, recorded_files
from pytest_specdec.report.comparison import comparison_lines

# What `add_subparsers` returns has no public name.
Subparsers = Any
RECORD = "record a session with `--specdec-record DIR`, and name that folder"


def add_compare(subparsers: Subparsers) -> None:
    """`pytest-specdec compare A B`."""
    parser = subparsers.add_parser(
        "compare", help="what moved between two recorded sessions", description=compare.__doc__
    )
    for name in ("A", "B"):
        parser.add_argument(name, type=Path, help="a folder of `--specdec-record`")
    parser.set_defaults(run=compare)


def compare(options: argparse.Namespace) -> int:
    """Prints what moved from the recordings in folder A to those in folder B."""
    old, new = (_profiles(each) for each in (options.A, options.B))
    both = [name for name in old if name in new]
    if not both:
        raise RecordingError(
            f"no profile is in both `{options.A}` and `{options.B}`",
            hint=f"recorded in A: {', '.join(old)}; in B: {', '.join(new)}",
        )
    lines: list[str] = []  # all of them, before one is printed: a file may be broken
    for name in both:
        lines += comparison_lines(compare_profile(name, _recorded(old[name]), _recorded(new[name])))
    for where, names in (("A", old.keys() - new.keys()), ("B", new.keys() - old.keys())):
        if names:
            lines.append(f"profiles only in {where}: {', '.join(sorted(names))}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _profiles(folder: Path) -> dict[str, dict[str, Path]]:
    """The files in a folder, by profile and workload."""
    if not folder.is_dir():
        raise RecordingError(f"no folder of recordings: {folder}", hint=RECORD)
    found = {each.name: recorded_files(each) for each in sorted(folder.iterdir())}
    if not any(found.values()):
        raise RecordingError(f"no recordings in: {folder}", hint=RECORD)
    return {name: files for name, files in found.items() if files}


def _recorded(files: dict[str, Path]) -> Recorded:
    return {name: read_recording(path) for name, path in files.items()}
