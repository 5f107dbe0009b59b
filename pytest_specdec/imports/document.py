"""A file to import: its text, and its JSON values where it is JSON or JSON lines.

Everything a hostile or a broken file can be is refused here, so that the formats read text and
values. Floor 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_specdec.errors import ImportFileError


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One file.

    Attributes:
        name: its path as the user gave it; every message begins with it.
        text: decoded, line ends as they are.
        rows: its JSON values: one of a JSON file, one for each line of a file of JSON lines; `None`
            where it is neither.
        json_error: why it is no JSON; `None` where it is.
    """

    name: str
    text: str
    rows: tuple[Any, ...] | None
    json_error: str | None

    @property
    def label(self) -> str:
        """What its measurement is called: the file's name without folder and suffix."""
        return Path(self.name).stem

    @property
    def tables(self) -> tuple[Mapping[str, Any], ...]:
        """The JSON objects among its values; those of a list too."""
        rows = self.rows or ()
        if len(rows) == 1 and isinstance(rows[0], list):
            rows = tuple(rows[0])
        return tuple(row for row in rows if isinstance(row, dict))

    @property
    def table(self) -> Mapping[str, Any]:
        """The one JSON object that it is; empty where it is none."""
        rows = self.rows or ()
        return rows[0] if len(rows) == 1 and isinstance(rows[0], dict) else {}

    @property
    def seems_json(self) -> bool:
        """Whether somebody meant it to be JSON."""
        return self.text.lstrip()[:1] in ("{", "[")


def read_document(path: Path) -> Document:
    """The file at `path`.

    Raises:
        ImportFileError: when there is no such file, or it is empty or no text.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ImportFileError(
            f"`{path}` cannot be read: {error.strerror}", hint="check the path and its permissions"
        ) from None
    return document_of(str(path), content)


def document_of(name: str, content: bytes) -> Document:
    """A file's content. Raises ImportFileError when it is empty or no text."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ImportFileError(
            f"`{name}` is not UTF-8 text: byte {error.start} is {content[error.start]:#04x}",
            hint="unpack a compressed file, and save a text file as UTF-8",
        ) from None
    if "\0" in text:
        raise ImportFileError(
            f"`{name}` is binary: character {text.index(chr(0))} is a null",
            hint="give the text or JSON that the tool wrote",
        )
    if not text.strip():
        raise ImportFileError(
            f"`{name}` is empty", hint="did the tool that wrote it end in an error?"
        )
    rows, error_text = _json_rows(text)
    return Document(name=name, text=text, rows=rows, json_error=error_text)


def _json_rows(text: str) -> tuple[tuple[Any, ...] | None, str | None]:
    """All JSON values, or else why there are none."""
    try:
        return (json.loads(text),), None
    except RecursionError:
        return None, "it is nested too deeply"
    except ValueError as error:
        told = str(error)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    rows: list[Any] = []
    for number, line in lines:
        try:
            rows.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            # Of lines that began as JSON the one that is not tells more than the whole does.
            return None, f"line {number}: {error}" if rows and _holds_tables(rows) else told
    return tuple(rows), None


def _holds_tables(rows: list[Any]) -> bool:
    return all(isinstance(row, dict) for row in rows)
