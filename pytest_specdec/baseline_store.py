"""The store: reading and writing the files under `baselines/`.

A file is read whole and checked against the shipped JSON Schema, or refused with the way out and
left as it is. It is written beside itself and renamed, so that a kill at any moment leaves the old
file or the new one. Floor 3; only the process that controls the session may save.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_specdec.errors import StoredBaselineError
from pytest_specdec.json_text import JsonError, loads
from pytest_specdec.stored_baseline import (
    SCHEMA_VERSION,
    UPDATE_OPTION,
    StoredBaseline,
    rounded,
)
from pytest_specdec.whole_file import written_whole


@dataclass(frozen=True, slots=True)
class BaselineStore:
    """The files `<hardware key>/<profile>.json` in one folder."""

    folder: Path

    def path(self, hardware_key: str, profile: str) -> Path:
        """Where that baseline is stored, whether it is there or not.

        Raises:
            StoredBaselineError: for a name that would leave the folder.
        """
        for name in (hardware_key, profile):
            if name in {"", ".", ".."} or not {"/", "\\", "\0"}.isdisjoint(name):
                raise StoredBaselineError(
                    f"no file can be named after: {name!r}",
                    hint="use letters, digits, `.`, `_` and `-` in names of profiles",
                )
        return self.folder / hardware_key / f"{profile}.json"

    def load(self, hardware_key: str, profile: str) -> StoredBaseline | None:
        """What the file says; `None` when there is none.

        Raises:
            StoredBaselineError: the file cannot be read; it is left as it is.
        """
        path = self.path(hardware_key, profile)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(path, str(error)) from None
        try:
            data = loads(text)
        except JsonError as error:
            raise _unreadable(path, _position(text, error)) from None
        defect = _defect(data)
        if defect is not None:
            raise _unreadable(path, defect)
        return StoredBaseline.from_json(data)

    def save(self, baseline: StoredBaseline) -> Path:
        """Writes the baseline to its file, and returns where that is.

        Raises:
            StoredBaselineError: it does not satisfy the schema, or the file cannot be written; the
                old file is left as it is.
        """
        path = self.path(baseline.hardware_key, baseline.profile)
        data = _rounded_all(baseline.to_json())
        try:
            text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
            defect = _defect(data)
        except ValueError as error:
            defect = str(error)
        if defect is not None:
            raise StoredBaselineError(f"`{path}` is not written: {defect}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(path) as file:
                file.write(f"{text}\n".encode())
        except OSError as error:
            raise StoredBaselineError(
                f"`{path}` cannot be written: {error.strerror or error}",
                hint="the numbers are not stored; make the folder writable and run again",
            ) from error
        return path

    def hardware_keys(self, profile: str) -> tuple[str, ...]:
        """The kinds of hardware that this profile has a stored baseline for."""
        return tuple(sorted(path.parent.name for path in self.folder.glob(f"*/{profile}.json")))


def _rounded_all(value: Any) -> Any:
    if isinstance(value, float):
        return rounded(value)
    if isinstance(value, Mapping):
        return {key: _rounded_all(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded_all(each) for each in value]
    return value


def _defect(data: Any) -> str | None:
    """What the schema has against the data, by place."""
    from pytest_specdec.json_schemas import defect_by_shipped

    return defect_by_shipped("stored_baseline.schema.json", data, version=SCHEMA_VERSION)


def _position(text: str, error: JsonError) -> str:
    if error.position is None:
        return f"it is not JSON: {error.fact}"
    line = text.count("\n", 0, error.position) + 1
    return f"line {line} is not JSON: {error.fact}"


def _unreadable(path: Path, defect: str) -> StoredBaselineError:
    return StoredBaselineError(
        f"stored baseline `{path}` cannot be read: {defect}",
        hint="restore it from version control, or delete it and record again with "
        f"`{UPDATE_OPTION}`",
    )
