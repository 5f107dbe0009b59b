"""Writes `docs/reference/settings.md` out of the options and the profile's own fields.

python tools/reference.py            writes the file
python tools/reference.py --check    exit status 1 if it is out of date
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_specdec.catalogue import CHECKS
from pytest_specdec.conditions import Limits
from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.options import add_options
from pytest_specdec.profile import (
    RESERVED_ENGINE_ARGS,
    BaselineEngine,
    Profile,
    Requires,
    Timeouts,
    Tolerances,
)
from pytest_specdec.workload import METRICS
from pytest_specdec.worth_it_settings import WorthItSettings

REFERENCE = Path(__file__).parent.parent / "docs/reference/settings.md"
SET_BY_THE_FILE = ("name", "root")


class Options:
    """Stands in for pytest's parser, and keeps what is declared on it."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []
        self.ini: list[tuple[str, str, object]] = []

    def getgroup(self, *_: object) -> Options:
        return self

    def addoption(self, name: str, **declared: object) -> None:
        metavar = declared.get("metavar")
        shown = name if metavar is None else f"{name} {metavar}"
        if declared.get("nargs") == "?":
            shown = f"{name}[={metavar}]"
        self.rows.append((shown, str(declared["help"])))

    def addini(self, name: str, meaning: str, **declared: object) -> None:
        self.ini.append((name, meaning, declared["default"]))


def reference() -> str:
    """The page's text."""
    options = Options()
    add_options(options)  # type: ignore[arg-type]
    lines = [
        "# Reference",
        "",
        "Made by `python tools/reference.py` from the code; do not edit.",
        "",
        "## Options",
        "",
        *_table(("option", "meaning"), ((f"`{name}`", text) for name, text in options.rows)),
        "",
        "## Ini settings",
        "",
        "In `pyproject.toml` under `[tool.pytest.ini_options]`, or in `pytest.ini`.",
        "",
        *_table(
            ("setting", "meaning", "default"),
            (
                (f"`{name}`", meaning, _shown(name, default))
                for name, meaning, default in options.ini
            ),
        ),
        "",
        "## `specdec.toml`",
        "",
        "`[default]` names the profiles used when none is chosen: `cpu = NAME` or a list of them.",
        "",
    ]
    for title, cls in (
        ("[profiles.NAME]", Profile),
        ("[profiles.NAME.baseline]", BaselineEngine),
        ("[profiles.NAME.tolerances]", Tolerances),
        ("[profiles.NAME.limits]", Limits),
        ("[profiles.NAME.timeouts]", Timeouts),
        ("[profiles.NAME.requires]", Requires),
        ("[profiles.NAME.worth_it]", WorthItSettings),
        ("[[profiles.NAME.known_defects]]", KnownDefect),
    ):
        rows = ((f"`{key}`", text, default) for key, text, default in _fields(cls))
        lines += [f"### `{title}`", "", *_table(("key", "meaning", "default"), rows), ""]
        if cls is Profile:
            lines += [f"`engine_args` cannot set {_names(RESERVED_ENGINE_ARGS)}.", ""]
    lines += [f"`check` is one of {_names((*CHECKS, *METRICS))}.", ""]
    return "\n".join(lines)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _shown(name: str, default: object) -> str:
    if name == "specdec_python":
        return "`pytest's own interpreter`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    text = " ".join(default) if isinstance(default, list) else str(default)
    return f"`{text}`" if text else "unset"


def _fields(cls: type) -> Iterator[tuple[str, str, str]]:
    for field in dataclasses.fields(cls):
        if field.name in SET_BY_THE_FILE:
            continue
        if field.default is not dataclasses.MISSING:
            default = "unset" if field.default is None else f"`{_toml(field.default)}`"
        else:
            is_optional = field.default_factory is not dataclasses.MISSING
            default = "empty, or as below" if is_optional else "required"
        yield field.name, field.metadata["help"], default


def _toml(value: object) -> str:
    return json.dumps(list(value)) if isinstance(value, tuple) else str(value)


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def main() -> int:
    """Writes or checks the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    if not parser.parse_args().check:
        REFERENCE.write_text(reference(), encoding="utf-8")
        return 0
    if REFERENCE.read_text(encoding="utf-8") == reference():
        return 0
    print(
        "docs/reference/settings.md is out of date\nhint: python tools/reference.py",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
