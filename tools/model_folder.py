"""Folders of models that are built here: whole and as expected, or not there."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / ".models" / "smollm2-135m-instruct"
DRAFT = ROOT / ".models" / "smollm2-draft"
EAGLE = ROOT / ".models" / "smollm2-eagle"


class BuildError(Exception):
    """The model cannot be built; `str` of it is the whole message, hint included."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(f"{message}\nhint: {hint}")


def make_whole(folder: Path, *, digests: Path, write: Callable[[Path], None]) -> None:
    """Makes `folder`, or leaves it alone when it is whole; never leaves half a model there.

    Args:
        digests: the file with the expected SHA-256 of each file.
        write: writes the model's files into a folder that exists.

    Raises:
        BuildError: what came out is not the expected model.
    """
    if folder.is_dir() and not differences(folder, digests):
        say(f"{folder.name} is complete")
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_over in folder.parent.glob(f"{folder.name}.part-*"):
        shutil.rmtree(left_over)
    part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=folder.parent))
    try:
        part.chmod(0o755)
        write(part)
        say("checking digests")
        if wrong := differences(part, digests):
            raise BuildError(
                f"the model built here is not the expected one: {', '.join(wrong)}",
                hint="`make clean setup`; after a change of the model, run its tool with "
                "`--accept`",
            )
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    say(f"{folder.name} is complete")


def accept(digests: Path, write: Callable[[Path], None]) -> None:
    """Writes the digests of a model that is built from scratch to `digests`."""
    with tempfile.TemporaryDirectory() as temporary:
        write(Path(temporary))
        write_json(digests, digests_of(Path(temporary)))


def needed(path: Path, hint: str) -> Path:
    """`path`, which a model is built of.

    Raises:
        BuildError: it is not there; `hint` says what makes it.
    """
    if not path.is_file():
        raise BuildError(f"a part of the model is not here: {path}", hint=hint)
    return path


def digests_of(folder: Path) -> dict[str, str]:
    """SHA-256 of every file in `folder`, by name."""
    return {path.name: digest_of(path) for path in sorted(folder.iterdir())}


def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def differences(folder: Path, digests: Path) -> list[str]:
    """Names of the files that are missing, foreign or not what the file of digests says."""
    expected = json.loads(digests.read_text(encoding="utf-8"))
    found = digests_of(folder)
    return sorted(
        name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)
    )


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes `value` the same way on every machine."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def say(line: str) -> None:
    """Shows what is being done."""
    print(f"model: {line}", flush=True)


def status_of(build: Callable[[], None]) -> int:
    """The exit status of a program that builds; what failed is one clear message."""
    try:
        build()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"the model cannot be written: {error}", file=sys.stderr)
        print("hint: it needs 800 MB in `.models/`", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: no model was built\nhint: the same command again", file=sys.stderr)
        return 130
    return 0


def build_program(
    arguments: list[str] | None,
    *,
    about: str,
    folder: Path,
    digests: Path,
    write: Callable[[Path], None],
) -> int:
    """The `main` of a tool that makes one folder; 1 and one clear message if that fails."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(
        "--accept",
        action="store_true",
        help=f"write requirements/{digests.name} from what is built",
    )
    if parser.parse_args(arguments).accept:
        return status_of(lambda: accept(digests, write))
    return status_of(lambda: make_whole(folder, digests=digests, write=write))
