"""`pytest-specdec compare A B`: recordings of two sessions, or of two profiles, beside each other.

Floor 5.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pytest_specdec.comparison import Recorded, compare_profiles
from pytest_specdec.errors import RecordingError
from pytest_specdec.recording_file import read_recording, recorded_files
from pytest_specdec.report.comparison import comparison_lines

# What `add_subparsers` returns has no public name.
Subparsers = Any
Profiles = dict[str, dict[str, Path]]
"""Files by profile and workload."""
Compared = tuple[tuple[str, str], dict[str, Path], dict[str, Path]]
"""The names of two profiles that are one or are compared, and the files of each."""
RECORD = "record a session with `--specdec-record DIR`, and name that folder"


def add_compare(subparsers: Subparsers) -> None:
    """`pytest-specdec compare A B`."""
    parser = subparsers.add_parser(
        "compare",
        help="what moved between two recorded sessions or profiles",
        description=compare.__doc__,
    )
    for name in ("A", "B"):
        parser.add_argument(
            name, type=Path, help="a folder of `--specdec-record`, or a profile's folder in one"
        )
    parser.set_defaults(run=compare)


def compare(options: argparse.Namespace) -> int:
    """Prints what moved from the recordings in folder A to those in folder B."""
    of_one = [recorded_files(each) for each in (options.A, options.B)]
    only: list[str] = []
    if any(of_one):
        pairs = [_two_profiles(options.A, options.B, *of_one)]
    else:
        pairs, only = _two_sessions(options.A, options.B)
    lines: list[str] = []  # all of them, before one is printed: a file may be broken
    for names, old, new in pairs:
        lines += comparison_lines(compare_profiles(names, _recorded(old), _recorded(new)))
    sys.stdout.write("\n".join([*lines, *only]) + "\n")
    return 0


def _two_profiles(
    first: Path, second: Path, old: dict[str, Path], new: dict[str, Path]
) -> Compared:
    """Of which the folders were named, whatever the profiles are called."""
    for folder, files, other in ((first, old, second), (second, new, first)):
        if not files:
            named = ", ".join(f"`{folder / each}`" for each in _profiles(folder))
            raise RecordingError(
                f"`{other}` is the folder of one profile, and `{folder}` of a whole session",
                hint=f"name a profile's folder in it: {named}",
            )
    if not old.keys() & new.keys():
        raise RecordingError(
            f"no workload is in both `{first}` and `{second}`",
            hint=f"recorded in A: {', '.join(old)}; in B: {', '.join(new)}",
        )
    return (first.resolve().name, second.resolve().name), old, new


def _two_sessions(first: Path, second: Path) -> tuple[list[Compared], list[str]]:
    """Profiles of one name beside each other, and what there is to tell of the others."""
    old, new = _profiles(first), _profiles(second)
    pairs = [((name, name), old[name], new[name]) for name in old if name in new]
    if not pairs:
        raise RecordingError(
            f"no profile is in both `{first}` and `{second}`",
            hint=f"recorded in A: {', '.join(old)}; in B: {', '.join(new)}; two profiles are "
            f"compared by their folders, as `{first / next(iter(old))} {second / next(iter(new))}`",
        )
    only = [
        f"profiles only in {where}: {', '.join(sorted(names))}"
        for where, names in (("A", old.keys() - new.keys()), ("B", new.keys() - old.keys()))
        if names
    ]
    return pairs, only


def _profiles(folder: Path) -> Profiles:
    """The files in a session's folder."""
    if not folder.is_dir():
        raise RecordingError(f"no folder of recordings: {folder}", hint=RECORD)
    found = {each.name: recorded_files(each) for each in sorted(folder.iterdir())}
    if not any(found.values()):
        raise RecordingError(f"no recordings in: {folder}", hint=RECORD)
    return {name: files for name, files in found.items() if files}


def _recorded(files: dict[str, Path]) -> Recorded:
    return {name: read_recording(path) for name, path in files.items()}
