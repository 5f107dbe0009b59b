"""`--specdec-strict-baselines`: stored workloads that no test asks for fail the build."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from tests.fake_engine.project import FAST, Project, Result

STRICT = "--specdec-strict-baselines"
ENTRIES = "specdec.toml::fast::stored-entries"
OWN = (
    "import pytest\n"
    "def test_plain(): pass\n"
    "@pytest.mark.specdec('own.jsonl')\n"
    "def test_own(runs): pass\n"
)


@pytest.fixture
def recorded(project: Project) -> Project:
    """Two workloads with stored baselines."""
    return project.workload("code", "one").workload("story", "one").record()


@pytest.fixture
def renamed(recorded: Project) -> Project:
    """One of the two has another name now."""
    (recorded.folder / "suites/story.jsonl").rename(recorded.folder / "suites/tale.jsonl")
    return recorded


def entries(result: Result) -> dict[str, str]:
    return {name: word for name, word in result.outcomes.items() if "stored-entries" in name}


def by_ini(project: Project) -> None:
    path = project.folder / "pytest.ini"
    path.write_text(path.read_text() + "specdec_strict_baselines = true\n")


def told(project: Project, names: str) -> str:
    return (
        f"stored, but no test asked for: {names}\n"
        f"file: {project.baselines_file()}\n"
        "hint: run the tests that use them (a partial selection leaves some out), or delete from "
        "`workloads` in the file what no test uses"
    )


def test_what_is_stored_and_asked_for_passes(recorded: Project) -> None:
    result = recorded.run("suites", STRICT)
    assert entries(result) == {ENTRIES: "passed"}
    assert (result.exit_code, result.counts) == (0, {"passed": 13})


def test_what_no_test_asks_for_fails_a_test_of_its_own(renamed: Project) -> None:
    result = renamed.run("suites", STRICT, "--junitxml=junit.xml")
    assert entries(result) == {ENTRIES: "failed"}
    assert result.exit_code == 1
    assert result.message("stored-entries") == told(renamed, "`story`")
    assert f"FAILED {ENTRIES} - Failed: stored, but no test asked" in result.text
    assert "stored, but no test asked for: story" in result.section
    (suite,) = ET.parse(renamed.folder / "junit.xml").getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    (case,) = (each for each in suite.iter("testcase") if each.find("failure") is not None)
    assert (case.get("classname"), case.get("name")) == ("specdec.toml.fast", "stored-entries")


def test_the_way_out_leads_out(renamed: Project) -> None:
    renamed.edit_stored(lambda data: data["workloads"].pop("story"))
    assert entries(renamed.run("suites", STRICT)) == {ENTRIES: "passed"}
    renamed.edit_stored(lambda data: data["workloads"].clear())
    assert entries(renamed.run("suites", STRICT)) == {ENTRIES: "passed"}
    renamed.baselines_file().unlink()
    assert entries(renamed.run("suites", STRICT)) == {ENTRIES: "passed"}


def test_the_ini_file_asks_for_it(renamed: Project) -> None:
    assert entries(renamed.run("suites")) == {}
    by_ini(renamed)
    assert entries(renamed.run("suites")) == {ENTRIES: "failed"}


def test_it_needs_no_engine(renamed: Project) -> None:
    result = renamed.run("suites", STRICT, "-k", "stored-entries")
    assert (result.exit_code, result.outcomes) == (1, {ENTRIES: "failed"})
    assert result.commands == []
    again = renamed.run("suites", STRICT, "--lf")
    assert (again.outcomes, again.commands) == ({ENTRIES: "failed"}, [])
    renamed.fake(on={"hello": ["unavailable", "ModuleNotFoundError: No module named 'vllm'"]})
    assert renamed.run("suites", STRICT).counts == {"failed": 1, "skipped": 12}


def test_collecting_lists_it(recorded: Project) -> None:
    result = recorded.run("suites", STRICT, "--collect-only", "-q")
    assert ENTRIES in result.lines


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("suites", "-k", "code"), {}),
        (("suites", "-k", "not code"), {ENTRIES: "passed"}),
        (("suites", f"--deselect={ENTRIES}"), {}),
        (("suites/code.jsonl", "-k", "acceptance"), {}),
        (("suites/code.jsonl",), {ENTRIES: "failed"}),
    ],
)
def test_a_partial_selection(
    recorded: Project, arguments: tuple[str, ...], expected: dict[str, str]
) -> None:
    result = recorded.run(*arguments, STRICT)
    assert entries(result) == expected
    if "failed" in expected.values():
        assert result.message("stored-entries") == told(recorded, "`story`")


def test_workloads_of_python_tests_are_asked_for(project: Project) -> None:
    project.workload("code", "one").workload("own", "one", folder="tests")
    project.file("tests/test_own.py", OWN).run("suites", "tests", "--update-baselines")
    assert set(project.stored()["workloads"]) == {"code", "own"}
    assert entries(project.run("suites", "tests", STRICT)) == {ENTRIES: "passed"}
    # By a deselected test as well: `-k` says what runs, not what there is.
    result = project.run("suites", "tests", STRICT, "-k", "not own")
    assert entries(result) == {ENTRIES: "passed"}
    assert not any("no test asked for" in line for line in result.section)
    result = project.run("tests", STRICT)
    assert result.message("stored-entries") == told(project, "`code`")


def test_each_profile_has_one(recorded: Project) -> None:
    profiles = ("--specdec-profile=fast", "--specdec-profile=other")
    recorded.profiles(fast=FAST, other=FAST).record("-k", "code", *profiles)
    recorded.edit_stored(
        lambda data: data["workloads"].update(a=data["workloads"]["code"]), "other"
    )
    recorded.edit_stored(
        lambda data: data["workloads"].update(b=data["workloads"]["code"]), "other"
    )
    result = recorded.run("suites", STRICT, *profiles)
    assert entries(result) == {ENTRIES: "passed", ENTRIES.replace("fast", "other"): "failed"}
    assert "no test asked for: `a`, `b`\n" in result.message("other::stored-entries")
    assert result.loads() == ["baseline", "speculative"] * 2


def test_there_is_none_without_a_gate(recorded: Project) -> None:
    recorded.file("tests/test_own.py", "def test_plain(): pass\n")
    result = recorded.run("tests", STRICT)
    assert (result.exit_code, result.outcomes) == (0, {"tests/test_own.py::test_plain": "passed"})
    assert "specdec: " not in result.text


def test_a_gate_that_lost_its_suites_fails(recorded: Project) -> None:
    recorded.file("tests/test_own.py", "def test_plain(): pass\n")
    result = recorded.run("tests", STRICT, "--specdec-profile=fast")
    assert entries(result) == {ENTRIES: "failed"}
    assert result.message("stored-entries") == told(recorded, "`code`, `story`")
    assert result.commands == []


@pytest.mark.parametrize("mode", ["--update-baselines", "--update-baselines=new"])
def test_an_update_is_not_kept_from_recording_a_part(renamed: Project, mode: str) -> None:
    result = renamed.run("suites/tale.jsonl", STRICT, mode)
    assert entries(result) == {ENTRIES: "skipped"}
    assert result.exit_code == 0
    assert result.message("stored-entries") == (
        "Skipped: stored, but no test asked for: `code`, `story`; an update keeps what it did not "
        "measure"
    )
    assert set(renamed.stored()["workloads"]) == {"code", "story", "tale"}
    assert entries(renamed.run("suites", STRICT)) == {ENTRIES: "failed"}


def test_an_update_of_all_passes(recorded: Project) -> None:
    result = recorded.run("suites", STRICT, "--update-baselines")
    assert (result.exit_code, entries(result)) == (0, {ENTRIES: "passed"})


@pytest.mark.parametrize("selection", [(), ("--specdec-profile=fast",)])
def test_a_gate_that_cannot_be_had_is_one_error(
    recorded: Project, selection: tuple[str, ...]
) -> None:
    (recorded.folder / "specdec.toml").unlink()
    result = recorded.run("suites", STRICT, *selection)
    assert result.exit_code == 4
    assert result.text.count("no `specdec.toml`") == 1
    assert "INTERNALERROR" not in result.text


class TestUnderXdist:
    @pytest.fixture(autouse=True)
    def plugin(self) -> None:
        pytest.importorskip("xdist")

    def test_it_is_judged_though_no_engine_starts(self, renamed: Project) -> None:
        renamed.workload("own", "one", folder="tests").file("tests/test_own.py", OWN)
        arguments = ("suites", "tests", STRICT, "-p", "xdist.plugin", "-n", "2", "-k", "entries")
        result = renamed.run(*arguments)
        assert entries(result) == {ENTRIES: "failed"}
        assert result.message("stored-entries").endswith(told(renamed, "`story`"))
        (renamed.folder / "suites/tale.jsonl").rename(renamed.folder / "suites/story.jsonl")
        result = renamed.run(*arguments)
        assert entries(result) == {ENTRIES: "passed"}
        assert result.commands == []

    def test_a_gate_that_cannot_be_had(self, recorded: Project) -> None:
        (recorded.folder / "specdec.toml").unlink()
        result = recorded.run("suites", STRICT, "-p", "xdist.plugin", "-n", "2")
        assert "no `specdec.toml`" in result.text
        assert "INTERNALERROR" not in result.text
