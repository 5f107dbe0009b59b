"""Files to import, made of text or of JSON values, and what is read in them or why not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_specdec.errors import ImportFileError
from pytest_specdec.imports.document import Document, document_of
from pytest_specdec.imports.formats import format_of
from pytest_specdec.imports.imported import ImportedMeasurement


def document(content: str | bytes, *, name: str = "run.txt") -> Document:
    return document_of(name, content.encode() if isinstance(content, str) else content)


def of_json(value: Any, *, name: str = "run.json") -> Document:
    return document(json.dumps(value), name=name)


def of_lines(values: Sequence[Any], *, name: str = "run.jsonl") -> Document:
    return document("".join(json.dumps(value) + "\n" for value in values), name=name)


def read_all(source: Document) -> tuple[ImportedMeasurement, ...]:
    return format_of(source).read(source)


def read(source: Document) -> ImportedMeasurement:
    """The one measurement in it."""
    (measurement,) = read_all(source)
    return measurement


def refused(source: Document) -> str:
    """The one reason, hint included."""
    with pytest.raises(ImportFileError) as caught:
        read_all(source)
    return str(caught.value)
