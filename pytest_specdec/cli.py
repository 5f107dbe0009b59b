"""The command `pytest-specdec`: what is of use without a test session.

A subcommand is one function that adds its parser and says what runs; `SUBCOMMANDS` lists them.
Exit status: 0 done, 2 bad input. Floor 5.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_specdec.compare import add_compare
from pytest_specdec.errors import ConfigError, SpecdecError
from pytest_specdec.imports.formats import FORMATS, Measurements, import_file
from pytest_specdec.report.action_benchmark import action_benchmark_json
from pytest_specdec.report.flat import flat_json
from pytest_specdec.report.measurements import measurements_json
from pytest_specdec.report_command import add_report

# What `add_subparsers` returns has no public name.
Subparsers = Any
EXPORTS = ("flat", "github-action-benchmark")


def parser() -> argparse.ArgumentParser:
    """What the command understands."""
    command = argparse.ArgumentParser(
        prog="pytest-specdec",
        description="measurements of speculative decoding: in, out and side by side",
    )
    subparsers = command.add_subparsers(required=True, metavar="COMMAND")
    for add in SUBCOMMANDS:
        add(subparsers)
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one subcommand; its exit status."""
    options = parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except SpecdecError as error:
        sys.stderr.write(f"pytest-specdec: error: {error}\n")
        return 2


def add_import(subparsers: Subparsers) -> None:
    """`pytest-specdec import FILE`."""
    parser = subparsers.add_parser(
        "import", help="read what another tool measured", description=import_.__doc__
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument(
        "--format",
        metavar="NAME",
        help=f"one of {', '.join(FORMATS)}; told by the content if left out",
    )
    parser.add_argument(
        "--before",
        type=Path,
        metavar="FILE",
        help="an earlier scrape of the same server, to take off (`prometheus` only)",
    )
    parser.add_argument(
        "--to", choices=("json", *EXPORTS), default="json", help="what to print (default: json)"
    )
    _add_better(parser)
    parser.set_defaults(run=import_)


def import_(options: argparse.Namespace) -> int:
    """Reads FILE and prints its measurements."""
    _check(options)
    _write(import_file(options.file, format_name=options.format, before=options.before), options)
    return 0


def add_export(subparsers: Subparsers) -> None:
    """`pytest-specdec export REPORT_JSON`."""
    parser = subparsers.add_parser(
        "export", help="turn a session's report.json into other formats", description=export.__doc__
    )
    parser.add_argument("report", type=Path, metavar="REPORT_JSON")
    parser.add_argument("--to", choices=EXPORTS, required=True, help="what to print")
    _add_better(parser)
    parser.set_defaults(run=export)


def export(options: argparse.Namespace) -> int:
    """Reads a session's `report.json` and prints the speculative engine's measurements."""
    _check(options)
    _write(import_file(options.report, format_name="session-report"), options)
    return 0


SUBCOMMANDS = (add_import, add_export, add_compare, add_report)


def _add_better(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--better",
        choices=("bigger", "smaller"),
        help="which figures github-action-benchmark gets: a file of it has one direction "
        "(default: bigger)",
    )


def _check(options: argparse.Namespace) -> None:
    """Refuses an option that would do nothing."""
    if options.better is not None and options.to != "github-action-benchmark":
        raise ConfigError(
            f"`--better` does nothing with `--to {options.to}`",
            hint="leave it out, or add `--to github-action-benchmark`",
        )


def _write(measurements: Measurements, options: argparse.Namespace) -> None:
    """The text on stdout, and what its reader must know on stderr."""
    if options.to == "flat":
        text = flat_json(measurements)
    elif options.to == "json":
        text = measurements_json(measurements)
    else:
        text = action_benchmark_json(measurements, better=options.better or "bigger")
    sys.stdout.write(text)
    for note in dict.fromkeys(note for each in measurements for note in each.notes):
        sys.stderr.write(f"note: {note}\n")
