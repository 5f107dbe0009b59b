"""Whatever ends a process that writes, and at whatever moment: the old file, or the new one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec import whole_file as module
from pytest_specdec.whole_file import written_whole
from tests import killed
from tests.killed import Kill

# The highest that Linux gives, and one more.
NO_PROCESS = 4194304


def write(path: Path, text: str = "new") -> None:
    with written_whole(path) as file:
        file.write(text.encode())


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.json"
    path.write_text("old")
    return path


def test_the_new_file_takes_the_name_when_it_is_whole(path: Path) -> None:
    with written_whole(path) as file:
        file.write(b"n" * 20_000)
        assert path.read_text() == "old"
        file.write(b"ew")
        assert path.read_text() == "old"
    assert path.read_text() == "n" * 20_000 + "ew"
    assert names(path.parent) == ["file.json"]


def test_who_may_read_the_old_file_may_read_the_new_one(path: Path) -> None:
    path.chmod(0o600)
    write(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_first_file(tmp_path: Path) -> None:
    write(tmp_path / "file.json")
    assert (tmp_path / "file.json").read_text() == "new"


@pytest.mark.parametrize("error", [OSError(28, "No space left"), KeyboardInterrupt(), ValueError()])
def test_who_gives_up_leaves_the_old_file_alone(path: Path, error: BaseException) -> None:
    def give_up() -> None:
        with written_whole(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        give_up()
    assert path.read_text() == "old"
    assert names(path.parent) == ["file.json"]


def test_what_the_killed_left_goes_and_nothing_else(path: Path) -> None:
    kept = [
        f".file.json.{os.getppid()}.tmp",  # of one that may be writing now
        f".file.json2.{NO_PROCESS}.tmp",
        ".file.json.mine.tmp",
        "file.json.tmp",
    ]
    for name in (*kept, f".file.json.{NO_PROCESS}.tmp"):
        (path.parent / name).touch()
    write(path)
    assert names(path.parent) == sorted([*kept, "file.json"])


def test_names_are_no_patterns(tmp_path: Path) -> None:
    kept = tmp_path / f".a.{NO_PROCESS}.tmp"
    kept.touch()
    write(tmp_path / "[a]")
    assert names(tmp_path) == [kept.name, "[a]"]


def test_a_link_stays_one(path: Path) -> None:
    (path.parent / "folder").mkdir()
    link = path.parent / "folder" / "link"
    link.symlink_to("../file.json")
    write(link)
    assert link.is_symlink()
    assert path.read_text() == "new"


def test_what_is_no_file_is_written_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe)
    assert os.read(end, 99) == b"new"
    os.close(end)
    assert pipe.is_fifo()
    with pytest.raises(IsADirectoryError):
        write(tmp_path)
    assert names(tmp_path) == ["pipe"]


def test_a_folder_that_cannot_be_synchronised_is_no_failure(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synchronise = os.fsync

    def fsync(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):  # noqa: PTH112
            raise OSError(22, "Invalid argument")
        synchronise(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write(path)
    assert path.read_text() == "new"


@pytest.fixture(scope="module")
def kills(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A save of a stored baseline, killed at all moments there are."""
    folder = tmp_path_factory.mktemp("kills") / "baselines"
    environment = {**os.environ, "PYTHONPATH": str(Path(module.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, killed.__file__, str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(("kind", "before"), [("over an old one", "old"), ("new", "none")])
def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(
    kills: dict[str, list[Kill]], kind: str, before: str
) -> None:
    *found, survived = kills[kind]
    assert (survived["moment"], survived["left"]) == ("", "new")
    moments = [each["moment"] for each in found]
    replaced = moments.index("after replace")
    assert [each["left"] for each in found] == [before] * replaced + ["new"] * (
        len(found) - replaced
    )
    # Nothing is renamed before it is on the disk, nor is over before its name is.
    order = ["amid write, at 20000", "after write", "after fsync", "before replace"]
    assert [each for each in moments[:replaced] if each in order] == order
    assert moments[replaced:].count("after fsync") == 1
    # Half a file is never under a name that is read, and the next one who writes removes it.
    beside = [name for each in found for name in each["beside"]]
    assert beside
    assert all(name.startswith(".ngram.json.") and name.endswith(".tmp") for name in beside)
    assert all(each["after"] == ["ngram.json"] for each in kills[kind])
