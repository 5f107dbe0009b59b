"""Any file is read as text or JSON, or refused with one reason: empty, binary, cut off, missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_specdec.errors import ImportFileError
from pytest_specdec.imports.document import document_of, read_document


def refused(content: bytes) -> str:
    with pytest.raises(ImportFileError) as caught:
        document_of("run.json", content)
    return str(caught.value)


@pytest.mark.parametrize("content", [b"", b" \n\n", b"\xef\xbb\xbf"])
def test_an_empty_file(content: bytes) -> None:
    assert refused(content) == (
        "`run.json` is empty\nhint: did the tool that wrote it end in an error?"
    )


def test_a_binary_file() -> None:
    assert "`run.json` is not UTF-8 text: byte 1 is 0x8b" in refused(b"\x1f\x8b\x08\x00")
    assert "`run.json` is binary: character 2 is a null" in refused(b"{}\0")


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("none.json", "No such file or directory"),
        (".", "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, fact: str) -> None:
    with pytest.raises(ImportFileError, match=fact) as caught:
        read_document(tmp_path / name)
    assert f"`{tmp_path / name}` cannot be read" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('{"a": 1}', ({"a": 1},)),
        ('\ufeff[{"a": 1}]', ([{"a": 1}],)),
        ('{"a": 1}\n\n{"a": 2}\r\n', ({"a": 1}, {"a": 2})),
        ("INFO a log\n", None),
    ],
)
def test_json_values(text: str, rows: tuple[object, ...] | None) -> None:
    document = document_of("run.json", text.encode())
    assert document.rows == rows
    assert (document.json_error is None) == (rows is not None)


def test_tables() -> None:
    one = document_of("a/run.json", b'{"a": 1}')
    assert (one.table, one.tables, one.label) == ({"a": 1}, ({"a": 1},), "run")
    several = document_of("run.json", b'[{"a": 1}, 2, {"b": 1}]')
    assert (several.table, several.tables) == ({}, ({"a": 1}, {"b": 1}))
    assert document_of("run.json", b"7").tables == ()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"a": 1,', "Expecting property name enclosed in double quotes: line 1 column 9"),
        (b'{"a": 1}\n{"a": 2}\n{"a"', "line 3: "),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "limit"),
    ],
)
def test_what_is_no_json_says_why(content: bytes, why: str) -> None:
    document = document_of("run.json", content)
    assert document.rows is None
    assert document.seems_json
    assert why in str(document.json_error)
