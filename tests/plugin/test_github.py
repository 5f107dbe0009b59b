"""Annotations in a job of GitHub Actions: which, where, and no more than GitHub shows."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.fake_engine.project import Project, Result

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
PLAIN = ("--specdec-inconclusive=warn", "-W", "default::UserWarning")
NOISE = [1.0, 0.6, 1.6, 0.7, 1.5]


@pytest.fixture
def github(project: Project) -> Project:
    """As in a job, but for `CI`, which would make a gate of it."""
    project.file(".git/HEAD", "").env(GITHUB_ACTIONS="true")
    return project.workload("code", EXACT, "two").record()


def told(result: Result) -> list[str]:
    return [line for line in result.lines if line.startswith("::")]


def test_what_passes_is_not_remarked_on(github: Project) -> None:
    assert told(github.run("suites")) == []


def test_elsewhere_nothing_is_remarked_on(github: Project) -> None:
    github.env(GITHUB_ACTIONS="false").fake(accepted=2)
    result = github.run("suites")
    assert result.counts["failed"]
    assert told(result) == []


def test_a_failure_stands_at_the_line_of_its_prompt(github: Project) -> None:
    github.fake(speculative={"diverge": {"prompt": "about two", "at": 3}})
    (line,) = told(github.run("suites", "-k", "identical"))
    place, _, message = line.removeprefix("::").partition("::")
    assert place == ("error file=suites/code.jsonl,line=3,title=code%3A identical[two] (fast)")
    assert message.startswith("divergence: `two`%0A  prompt on line 3 of its workload; ")
    assert "\n" not in message


def test_a_metric_has_no_line(github: Project) -> None:
    (line,) = told(github.fake(accepted=2).run("suites", "-k", "acceptance"))
    start = (
        "::error file=suites/code.jsonl,title=code%3A acceptance (fast)::"
        "failed: acceptance rate of `code`: 0.5 is below 0.735%0Anow: 0.5%0A"
    )
    assert line.startswith(start)
    assert "floor: 0.735 (stored less 2%25)" in line


def test_the_path_is_that_in_the_repository(project: Project) -> None:
    """The root is where `.git` is, above pytest's; where there is none, what the job works in."""
    project.env(GITHUB_ACTIONS="true", GITHUB_WORKSPACE=str(project.folder.parent))
    project.workload("code", EXACT).fake(speculative={"diverge": {"prompt": "abc", "at": 3}})
    name = project.folder.name
    (line,) = told(project.run("suites", "-k", "identical"))
    assert line.startswith(f"::error file={name}/suites/code.jsonl,line=2,")
    project.file("suites/.git", "gitdir: elsewhere")
    (line,) = told(project.run("suites", "-k", "identical"))
    assert line.startswith("::error file=code.jsonl,line=2,")
    (project.folder / "suites/.git").unlink()
    project.env(GITHUB_WORKSPACE="/elsewhere")
    (line,) = told(project.run("suites", "-k", "identical"))
    assert line.startswith("::error file=suites/code.jsonl,line=2,")


def test_an_undecided_verdict_that_skips_is_a_warning(github: Project) -> None:
    github.fake(speculative={"wall_factors": NOISE})
    (line,) = told(github.run("suites", *PLAIN))
    start = "::warning file=suites/code.jsonl,title=code%3A speedup (fast)::inconclusive: speedup"
    assert line.startswith(start)


def test_an_undecided_verdict_that_fails_is_an_error(github: Project) -> None:
    github.fake(speculative={"wall_factors": NOISE})
    (line,) = told(github.run("suites", "--specdec-inconclusive=fail"))
    assert line.startswith("::error file=suites/code.jsonl,title=code%3A speedup (fast)::")


def test_a_known_defect_is_a_notice(github: Project) -> None:
    defect = {"check": "counts", "workload": "code", "versions": ">=0.1", "reason": "it miscounts"}
    keys = "\n".join(f'{key} = "{value}"' for key, value in defect.items())
    text = (github.folder / "specdec.toml").read_text()
    github.file("specdec.toml", f"{text}[[profiles.fast.known_defects]]\n{keys}\n")
    github.fake(speculative={"extra_usage": 1})
    (line,) = told(github.run("suites"))
    assert line.startswith(
        "::notice file=suites/code.jsonl,title=code%3A counts (fast)::"
        "known defect of vLLM >=0.1: it miscounts%0Amiscounted%0A"
    )


def test_an_expected_failure_of_the_user_s_is_the_user_s(github: Project) -> None:
    github.file(
        "conftest.py",
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    items[0].add_marker(pytest.mark.xfail(reason='known'))\n"
        "    items[1].add_marker(pytest.mark.skip(reason='slow'))\n",
    )
    github.fake(speculative={"diverge": {"prompt": "abc", "at": 3}})
    result = github.run("suites", "-k", "identical")
    assert result.counts == {"skipped": 2}
    assert told(result) == []


def test_tests_of_others_are_left_to_others(github: Project) -> None:
    github.file("suites/test_own.py", "def test_own(): assert False")
    result = github.run("suites")
    assert result.not_passed == {"test_own.py::test_own": "failed"}
    assert told(result) == []


def test_an_engine_that_dies_is_told_once_and_counted(github: Project) -> None:
    result = github.fake(on={"load": "exit"}).run("suites")
    assert result.counts == {"error": 7}
    first, second, rest = told(result)
    assert first.startswith("::error file=suites/code.jsonl,line=2,title=code%3A identical[one]")
    assert "::the baseline engine of profile `fast` died while loading: exit status 0%0A" in first
    assert "::not run, because earlier the baseline engine" in second
    assert rest == "::error::and 5 more tests failed: the job's log has all"


def test_the_worst_comes_first_and_each_check_before_any_comes_again(github: Project) -> None:
    names = [f"p{number}" for number in range(12)]
    github.workload("code", *names).workload("story", *names)
    github.fake(speculative={"diverge": {"prompt": "about", "at": 3}})
    result = github.run("suites", "--specdec-profile=fast")
    assert result.counts["failed"] == 28
    lines = told(result)
    assert len(lines) == 10
    titles = [line.partition("title=")[2].partition(" (fast)")[0] for line in lines[:-1]]
    assert titles == [
        "code%3A identical[p0]",
        "story%3A identical[p0]",
        "code%3A identical[p1]",
        "story%3A identical[p1]",
        "code%3A identical[p2]",
        "story%3A identical[p2]",
        "code%3A identical[p3]",
        "story%3A identical[p3]",
        "code%3A identical[p4]",
    ]
    assert lines[-1] == "::error::and 19 more tests failed: the job's log has all"


def test_a_workload_that_cannot_be_read_is_told_at_its_line(github: Project) -> None:
    github.file("suites/broken.jsonl", '{"id": "a", "messages": []}\nnot json\n')
    result = github.run("suites")
    assert result.exit_code == 2
    (line,) = told(result)
    assert line.startswith("::error file=suites/broken.jsonl,line=2,title=suites/broken.jsonl::")
    assert "broken.jsonl:2: not JSON at column 1" in line


def test_an_answer_cannot_speak_for_the_job(github: Project) -> None:
    """Neither in an annotation nor in pytest's own lines can it begin a command."""
    text = "{\n::error::y\r\n\x1b[31m\0\ud800%0A"
    prompt: Any = {"id": "j", "expect": {"json_schema": {"type": "object"}}}
    github.workload("code", prompt).fake(speculative={"answers": {"about j": text}})
    github.fake(baseline={"answers": {"about j": "{}"}}, speculative={"answers": {"about j": text}})
    result = github.run("suites", "-k", "json[j]")
    (line,) = told(result)
    assert line.startswith("::error file=suites/code.jsonl,line=2,title=code%3A json[j] (fast)::")
    assert r"\x1b[31m" in line
    assert "%250A" in line
    assert not any(each in result.text for each in "\x1b\0\ud800")


def test_under_xdist_the_controller_tells(github: Project) -> None:
    pytest.importorskip("xdist")
    github.fake(on={"load": "exit"})
    result = github.run("suites", "-p", "xdist.plugin", "-n", "2")
    assert result.counts == {"error": 7}
    lines = told(result)
    # What pytest says of the worker does not come first.
    assert re.match(r"::error file=suites/code\.jsonl,.*title=code%3A .* \(fast\)::\w", lines[0])
    assert re.match(r"::error::and \d more tests failed", lines[-1])
