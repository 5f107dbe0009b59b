"""Files of recordings: gzip JSON lines, `DIR/PROFILE/WORKLOAD.jsonl.gz`.

A file is written beside itself and renamed, so that a session that is killed leaves whole files or
none. Its last line has the digest of all others: what was cut short or changed afterwards is
refused, and is never half a recording. Floor 1.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pytest_specdec.errors import RecordingError
from pytest_specdec.json_text import JsonError, loads
from pytest_specdec.recording import Header, Recording
from pytest_specdec.recording_lines import (
    SCHEMA_VERSION,
    Line,
    header_from_json,
    lines_of,
    recording_of,
)
from pytest_specdec.whole_file import written_whole

SUFFIX = ".jsonl.gz"
END = "end"
COMPRESSION = 6  # the default of 9 takes several times as long for a few percent
RECORD_AGAIN = "record it again with `--specdec-record`, or restore the file"


def recorded_files(folder: Path) -> dict[str, Path]:
    """The files of one profile's folder, by workload."""
    return {path.name.removesuffix(SUFFIX): path for path in sorted(folder.glob(f"*{SUFFIX}"))}


def write_recording(folder: Path, recording: Recording) -> Path:
    """Writes one profile's recording of one workload into the profile's folder.

    Raises:
        RecordingError: it cannot be written; a file that is there is left as it is.
    """
    path = folder / f"{recording.workload.name}{SUFFIX}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as raw, _compressed(raw) as file:
            digest = hashlib.sha256()
            for line in lines_of(recording):
                row = _row(line)
                digest.update(row)
                file.write(row)
            file.write(_row({"what": END, "sha256": digest.hexdigest()}))
    except (OSError, ValueError) as error:
        raise RecordingError(
            f"recording `{path}` cannot be written: {_reason(error)}",
            hint="name another folder with `--specdec-record DIR`",
        ) from error
    return path


def read_header(path: Path) -> Header:
    """What a file is of; the rest of it is not read.

    Raises:
        RecordingError: it cannot be read, or is of another schema.
    """
    with _refusing(path):
        return header_from_json(next(_lines(path)))


def read_recording(path: Path) -> Recording:
    """The whole file.

    Raises:
        RecordingError: it cannot be read, was cut short or changed, or is of another schema.
    """
    with _refusing(path):
        return recording_of(path, _lines(path))


def _lines(path: Path) -> Iterator[Line]:
    """All lines but the last, which they are held to; the first one's schema is checked first."""
    digest = hashlib.sha256()
    with gzip.open(path, "rb") as file:
        for number, row in enumerate(file, start=1):
            line = _object(path, number, row)
            if line.get("what") == END:
                if line.get("sha256") != digest.hexdigest() or file.read(1):
                    raise unreadable(path, "it was changed after it was written")
                return
            digest.update(row)
            if number == 1:
                _check_schema(path, line)
            yield line
    raise unreadable(path, "its last lines are missing")


def _object(path: Path, number: int, row: bytes) -> Mapping[str, Any]:
    try:
        value = loads(row.decode())
    except UnicodeDecodeError:
        raise unreadable(path, f"line {number} is not UTF-8") from None
    except JsonError as error:
        raise unreadable(path, f"line {number} is not JSON: {error.fact}") from None
    if not isinstance(value, dict):
        raise unreadable(path, f"line {number} is not a JSON object")
    return value


def _check_schema(path: Path, header: Line) -> None:
    version = header.get("schema_version")
    if version == SCHEMA_VERSION:
        return
    hint = RECORD_AGAIN
    if isinstance(version, int) and version > SCHEMA_VERSION:
        hint = "upgrade pytest-specdec to the version that recorded it, or record again"
    raise RecordingError(
        f"recording `{path}` cannot be read: `schema_version` is {version!r}, but this "
        f"pytest-specdec reads {SCHEMA_VERSION}",
        hint=hint,
    )


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Whatever is wrong with a file, in one error that names it."""
    try:
        yield
    except FileNotFoundError:
        raise RecordingError(f"no recording: `{path}`", hint=RECORD_AGAIN) from None
    except EOFError:
        raise unreadable(path, "it was cut short") from None
    except (OSError, zlib.error) as error:
        raise unreadable(path, _reason(error)) from None
    except KeyError as error:
        raise unreadable(path, f"key {error} is missing") from None
    except (AttributeError, TypeError, ValueError, StopIteration) as error:
        raise unreadable(path, f"it is no recording: {error}") from None


def unreadable(path: Path, fact: str) -> RecordingError:
    """The error that says `fact` about a file."""
    return RecordingError(f"recording `{path}` cannot be read: {fact}", hint=RECORD_AGAIN)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _row(line: Line) -> bytes:
    return json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _compressed(raw: IO[bytes]) -> gzip.GzipFile:
    """Without name and time of the file that it is written to: equal recordings are equal files."""
    return gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=COMPRESSION, mtime=0)
