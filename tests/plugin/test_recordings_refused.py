"""Recordings that cannot be judged or written: one error that names the file and the way out."""

from __future__ import annotations

import gzip
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fake_engine.project import FAST, Project, Result
from tests.plugin.recorded import RECORD, REPLAY, edit, read, recording, without_engines
from tests.plugin.test_interruptions import wait_until

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
TWO = {"id": "two", "content": "ANSWER: 123456789" + "abc" * 9}
HEADER = (
    b'{"schema_version": 1, "hardware": {"device": "cpu", "name": "A", "count": 2, "facts": {}}}'
)
AGAIN = "hint: record it again with `--specdec-record`, or restore the file"


@pytest.fixture
def recorded(project: Project) -> Project:
    """Recorded, and without engines."""
    project.workload("code", EXACT, TWO).workload("story", "one")
    assert project.run("suites", RECORD).commands
    return without_engines(project)


def refused(result: Result) -> list[str]:
    """The one error that ends a session before its first test."""
    assert (result.exit_code, result.outcomes, result.commands) == (4, {}, [])
    (start,) = [at for at, line in enumerate(result.errors) if line.startswith("ERROR: ")]
    lines = [line for line in result.errors[start:] if line]
    return [lines[0].removeprefix("ERROR: "), *lines[1:]]


def in_its_tests(result: Result, workload: str = "code") -> list[str]:
    """The error of the workload's first test; the other workload passes or lacks a baseline."""
    words = {name: word for name, word in result.outcomes.items() if name.startswith(workload)}
    assert set(words.values()) == {"error"}
    assert {"passed", "skipped"} >= set(result.outcomes.values()) - {"error"}
    assert result.commands == []
    return result.messages[next(iter(words))].splitlines()


def first_line(**changes: Any) -> Callable[[list[dict[str, Any]]], Any]:
    return lambda lines: lines[0].update(changes)


class TestSessions:
    """What ends the session."""

    def test_both_options(self, recorded: Project) -> None:
        assert refused(recorded.run("suites", RECORD, REPLAY)) == [
            "`--specdec-record` and `--specdec-replay` contradict each other: what is replayed is "
            "recorded already",
            "hint: leave one of them out",
        ]

    def test_no_such_folder(self, recorded: Project) -> None:
        assert refused(recorded.run("suites", "--specdec-replay=absent")) == [
            f"no folder of recordings: {recorded.folder / 'absent'}",
            "hint: record it with `--specdec-record`",
        ]

    def test_a_folder_of_something_else(self, recorded: Project) -> None:
        assert refused(recorded.run("suites", "--specdec-replay=suites")) == [
            f"profile `fast` was not recorded in: {recorded.folder / 'suites'}",
            "hint: record it with `--specdec-record`",
        ]

    @pytest.mark.parametrize("arguments", [("--specdec-profile=other",), ("--specdec-gpu",)])
    def test_a_profile_that_was_not_recorded(
        self, recorded: Project, arguments: tuple[str, ...]
    ) -> None:
        recorded.profiles(fast=FAST, other={**FAST, "device": "gpu"})
        assert refused(recorded.run("suites", REPLAY, *arguments)) == [
            f"profile `other` was not recorded in: {recorded.folder / 'rec'}",
            "hint: choose one with `--specdec-profile`; recorded there: `fast`",
        ]

    def test_engine_settings_of_then(self, recorded: Project) -> None:
        recorded.profile(engine_args={"dtype": "float32"}, env={"A": "b"})
        assert refused(recorded.run("suites", REPLAY)) == [
            f"recording `{recording(recorded)}` was made with other settings of profile `fast`: "
            "`engine_args`, `env`",
            "hint: record it with `--specdec-record` again, or restore the settings as they were; "
            "tolerances and known defects may change",
        ]

    @pytest.mark.parametrize(
        ("key", "change"),
        [
            ("versions", {"vllm": "0.33.0"}),
            ("hardware", {"device": "gpu", "name": "Another", "count": 2, "facts": {}}),
        ],
    )
    def test_parts_of_two_sessions(self, recorded: Project, key: str, change: Any) -> None:
        edit(recording(recorded, "story"), first_line(**{key: change}))
        assert refused(recorded.run("suites", REPLAY)) == [
            f"recordings of one profile were made with different `{key}`: "
            f"`{recording(recorded)}` and `{recording(recorded, 'story')}`",
            "hint: record each session into a folder of its own",
        ]

    @pytest.mark.parametrize(
        ("version", "hint"),
        [
            (2, "hint: upgrade pytest-specdec to the version that recorded it, or record again"),
            (0, AGAIN),
            (None, AGAIN),
            ("1", AGAIN),
        ],
    )
    def test_another_schema(self, recorded: Project, version: Any, hint: str) -> None:
        edit(recording(recorded), first_line(schema_version=version))
        assert refused(recorded.run("suites", REPLAY)) == [
            f"recording `{recording(recorded)}` cannot be read: `schema_version` is {version!r}, "
            "but this pytest-specdec reads 1",
            hint,
        ]

    @pytest.mark.parametrize(
        ("content", "fact"),
        [
            (b"", "its last lines are missing"),
            (b"plain text", "Not a gzipped file (b'pl')"),
            (gzip.compress(b"no json\n"), "line 1 is not JSON: expecting value"),
            (gzip.compress(b"[1]\n"), "line 1 is not a JSON object"),
            (gzip.compress(b"\xff\n"), "line 1 is not UTF-8"),
            (gzip.compress(b'{"schema_version": 1}\n'), "key 'hardware' is missing"),
            (gzip.compress(HEADER), "key 'instruction_set' is missing"),
            (gzip.compress(b"{}\n"), "`schema_version` is None"),
        ],
        # Not of the content: gzip writes the time into it, and workers must agree on names.
        ids=["empty", "text", "no JSON", "array", "no UTF-8", "version", "hardware", "object"],
    )
    def test_a_header_that_cannot_be_read(
        self, recorded: Project, content: bytes, fact: str
    ) -> None:
        recording(recorded).write_bytes(content)
        message, *hints = refused(recorded.run("suites", REPLAY))
        assert message.startswith(f"recording `{recording(recorded)}` cannot be read: {fact}")
        assert hints == [AGAIN]

    def test_a_folder_that_cannot_be_made(self, project: Project) -> None:
        project.workload("code", "one").file("rec", "a file")
        message, hint = refused(project.run("suites", RECORD))
        assert message.startswith(f"no folder for recordings: {project.folder / 'rec'}: ")
        assert hint == "hint: name another one with `--specdec-record DIR`"


class TestWorkloads:
    """What makes all tests of one workload an error."""

    def test_one_that_was_not_recorded(self, recorded: Project) -> None:
        recording(recorded).unlink()
        assert in_its_tests(recorded.run("suites", REPLAY)) == [
            f"workload `code` was not recorded in: {recorded.folder / 'rec' / 'fast'}",
            "hint: record it with `--specdec-record`; recorded there: `story`",
        ]

    @pytest.mark.parametrize(
        ("prompts", "header", "fact"),
        [
            ([EXACT], {}, "prompts were changed, added or taken out: two"),
            (
                [{**EXACT, "content": "Hi"}, TWO, {**TWO, "id": "new"}],
                {},
                "prompts were changed, added or taken out: one, new",
            ),
            (
                [EXACT, TWO, {"id": "no", "min_p": 0.1, "expect": {"refused": True}}],
                {},
                "prompts were changed, added or taken out: no",
            ),
            ([TWO, EXACT], {}, "its prompts stand in another order"),
            ([EXACT, TWO], {"concurrency": 2}, "`concurrency` was 1 and is 2"),
            (
                [EXACT, TWO],
                {"again": ["2-in-flight", "after-sleep"]},
                "`again` names what was not tried: 2-in-flight, after-sleep",
            ),
        ],
    )
    def test_one_that_asks_something_else_now(
        self, recorded: Project, prompts: list[Any], header: Any, fact: str
    ) -> None:
        recorded.workload("code", *prompts, **header)
        assert in_its_tests(recorded.run("suites", REPLAY)) == [
            f"recording `{recording(recorded)}` is not of what `code` asks now",
            fact,
            "hint: record it with `--specdec-record` again, or restore the workload as it was",
        ]

    def test_one_that_was_not_timed(self, project: Project) -> None:
        project.workload("code", EXACT, gated=[]).run("suites", RECORD)
        result = without_engines(project).workload("code", EXACT).run("suites", REPLAY)
        assert "`gated` names acceptance, speedup, and nothing was timed" in in_its_tests(result)

    def test_what_is_not_asked_any_more_is_no_matter(self, project: Project) -> None:
        project.workload("code", EXACT, TWO, again=["2-in-flight"]).run("suites", RECORD)
        without_engines(project).workload("code", EXACT, TWO, gated=[])
        result = project.run("suites", REPLAY)
        assert set(result.outcomes.values()) == {"passed"}
        assert result.report["profiles"][0]["workloads"][0]["runs"]["retakes"] == []

    def test_one_cut_short(self, recorded: Project) -> None:
        path = recording(recorded)
        path.write_bytes(path.read_bytes()[:-40])
        assert in_its_tests(recorded.run("suites", REPLAY)) == [
            f"recording `{path}` cannot be read: it was cut short",
            AGAIN,
        ]

    @pytest.mark.parametrize(
        ("change", "fact"),
        [
            (lambda lines: lines[:-1], "its last lines are missing"),
            (lambda lines: lines[:-2] + lines[-1:], "it was changed after it was written"),
            (lambda lines: [*lines, lines[-2]], "it was changed after it was written"),
            (lambda lines: [*lines[:3], {}, *lines[3:]], "key 'what' is missing"),
        ],
    )
    def test_one_that_was_changed(
        self,
        recorded: Project,
        change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
        fact: str,
    ) -> None:
        path = recording(recorded)
        rows = "".join(json.dumps(line) + "\n" for line in change(read(path)))
        if "lines are" not in fact:
            rows = rows.replace(": ", ":").replace(", ", ",")
        path.write_bytes(gzip.compress(rows.encode()))
        assert in_its_tests(recorded.run("suites", REPLAY)) == [
            f"recording `{path}` cannot be read: {fact}",
            AGAIN,
        ]

    @pytest.mark.parametrize(
        ("change", "fact"),
        [
            (lambda lines: lines.pop(1), "key 'workload' is missing"),
            (lambda lines: lines[2]["pass"].pop("wall_s"), "key 'wall_s' is missing"),
            (lambda lines: lines[2].update({"pass": 3}), "it is no recording: "),
            (lambda lines: lines[1].update(prompts=[{"id": "one"}]), "it is no recording: "),
        ],
    )
    def test_one_of_another_shape(
        self, recorded: Project, change: Callable[[list[dict[str, Any]]], Any], fact: str
    ) -> None:
        edit(recording(recorded), change)
        message, hint = in_its_tests(recorded.run("suites", REPLAY))
        assert message.startswith(f"recording `{recording(recorded)}` cannot be read: {fact}")
        assert hint == AGAIN

    def test_later_tests_name_the_first_error(self, recorded: Project) -> None:
        recording(recorded).unlink()
        result = recorded.run("suites/code.jsonl", REPLAY)
        assert result.message("identical[two]").splitlines() == [
            "not run, because earlier workload `code` was not recorded in: "
            f"{recorded.folder / 'rec' / 'fast'}",
            "hint: see the first error of workload `code`",
        ]


class TestWriting:
    def test_a_file_that_cannot_be_written(self, project: Project) -> None:
        project.workload("code", EXACT)
        recording(project).mkdir(parents=True)
        result = project.run("suites", RECORD)
        (name,) = [name for name, word in result.outcomes.items() if word == "error"]
        message, hint = result.messages[name].splitlines()
        assert message.startswith(f"recording `{recording(project)}` cannot be written: ")
        assert hint == "hint: name another folder with `--specdec-record DIR`"
        assert [path.name for path in recording(project).parent.iterdir()] == ["code.jsonl.gz"]

    def test_a_killed_session_leaves_whole_files(self, project: Project) -> None:
        project.workload("code", EXACT).workload("story", "one")
        # The second workload's warm-up.
        project.fake(speculative={"on": {"generate#4": "be silent"}})
        process = project.start("suites", RECORD)
        try:
            wait_until(lambda: any(each.get("call") == 4 for each in project.commands()))
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=60)
        finally:
            process.kill()
            process.communicate()
        assert project.engines_left_behind() == []
        assert [path.name for path in files(project)] == ["code.jsonl.gz"]
        without_engines(project).fake()
        result = project.run("suites", REPLAY, "-k", "code")
        assert set(result.outcomes.values()) == {"passed", "skipped"}


def files(project: Project) -> list[Path]:
    return sorted(path for path in (project.folder / "rec").rglob("*") if path.is_file())


class TestSettings:
    """The ini file's twins."""

    @pytest.fixture
    def ini(self, project: Project) -> Callable[[str], Project]:
        text = (project.folder / "pytest.ini").read_text()
        return lambda lines: project.file("pytest.ini", text + lines)

    def test_record_and_replay(self, ini: Callable[[str], Project]) -> None:
        project = ini("specdec_record = rec\n").workload("code", EXACT)
        outcomes = project.run("suites").outcomes
        assert recording(project).is_file()
        without_engines(ini("specdec_replay = rec\n"))
        result = project.run("suites")
        assert (result.outcomes, result.commands) == (outcomes, [])

    def test_the_command_line_comes_first(self, ini: Callable[[str], Project]) -> None:
        project = ini("specdec_record = rec\n").workload("code", EXACT)
        project.run("suites")
        assert without_engines(project).run("suites", REPLAY).commands == []

    def test_both(self, ini: Callable[[str], Project]) -> None:
        project = ini("specdec_record = rec\nspecdec_replay = rec\n").workload("code", EXACT)
        assert refused(project.run("suites"))[1:] == ["hint: leave one of them out"]
