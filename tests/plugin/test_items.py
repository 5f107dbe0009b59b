"""Which test items there are, in what order they run, and how often an engine is started."""

from __future__ import annotations

import pytest

from tests.fake_engine.project import FAST, Project, metrics, wide

JSON_ANSWER = {
    "content": 'ANSWER: {"a": 1}',
    "expect": {"json_schema": {"type": "object", "required": ["a"]}},
}
SQL_ANSWER = {
    "content": "ANSWER: SELECT a FROM t;",
    "expect": {"sql": {"dialect": "sqlite", "ddl": "CREATE TABLE t (a INTEGER)"}},
}


def test_a_prompt_gets_the_checks_it_declares(project: Project) -> None:
    project.workload(
        "mixed",
        "plain",
        {"id": "json", **JSON_ANSWER},
        {"id": "sql", **SQL_ANSWER},
        {"id": "warm", "temperature": 1, "max_tokens": 240},
        {"id": "warm-json", "temperature": 1, **JSON_ANSWER},
    )
    result = project.record().run("suites")
    assert result.outcomes == {
        f"mixed.jsonl::fast::{name}": "passed"
        for name in (
            "identical[plain]",
            "identical[json]",
            "json[json]",
            "identical[sql]",
            "sql[sql]",
            "json[warm-json]",
            "exercised",
            "counts",
            "drift",
            "distribution",
            "acceptance",
            "speedup",
        )
    }
    assert result.exit_code == 0


def test_a_failure_points_at_the_line_of_the_prompt(project: Project) -> None:
    project.fake(speculative={"diverge": {"prompt": "about two", "at": 3}})
    result = project.workload("code", "one", "two").run("suites")
    assert "code: identical[two] (fast)" in result.text
    assert (
        "FAILED suites/code.jsonl::fast::identical[two] - Failed: divergence: `two`" in result.text
    )


@pytest.mark.parametrize(
    "arguments", [("--collect-only",), ("--collect-only", "--specdec-profile=fast")]
)
def test_collecting_starts_no_engine(project: Project, arguments: tuple[str, ...]) -> None:
    result = project.workload("code", "one").run("suites", *arguments)
    assert "<MetricItem acceptance>" in result.text
    assert result.exit_code == 0
    assert result.commands == []


def test_deselecting_all_starts_no_engine(project: Project) -> None:
    result = project.workload("code", "one").run("suites", "-k", "nothing")
    assert (result.exit_code, result.commands) == (5, [])


def test_keyword_selects_and_only_its_workload_runs(project: Project) -> None:
    project.workload("code", "one", "two").workload("story", "one").record()
    result = project.run("suites", "-k", "code and two")
    assert result.outcomes == {"code.jsonl::fast::identical[two]": "passed"}
    generated = [each for each in result.commands if each["op"] == "generate"]
    assert {len(each["command"]["requests"]) for each in generated} == {2}


def test_last_failed_runs_what_failed(project: Project) -> None:
    project.workload("code", "one", "two").workload("story", "one").record()
    project.fake(speculative={"diverge": {"prompt": "about two", "at": 3}})
    failed = project.run("suites")
    assert failed.not_passed == {"code.jsonl::fast::identical[two]": "failed"}
    again = project.run("suites", "--lf")
    assert again.outcomes == {"code.jsonl::fast::identical[two]": "failed"}


def test_files_elsewhere_are_no_workloads(project: Project) -> None:
    project.workload("data", "one", folder="elsewhere").file("suites/notes.txt", "")
    result = project.run("elsewhere", "suites")
    assert (result.exit_code, result.commands) == (5, [])
    assert "specdec: " not in result.text


def test_suite_folders_are_configurable(project: Project) -> None:
    project.workload("code", "one", folder="checks/gpu")
    result = project.run("-o", "specdec_suites=checks", "checks")
    assert set(result.outcomes) == {
        f"checks/gpu/code.jsonl::fast::{name}"
        for name in ("identical[one]", "exercised", "counts", "drift", "acceptance", "speedup")
    }


def test_engines_are_loaded_once_whatever_asks(project: Project) -> None:
    project.workload("code", "one").workload("story", "one").workload("own", "one", folder=".")
    project.file(
        "suites/test_own.py",
        "import pytest\n"
        "@pytest.mark.specdec('../own.jsonl')\n"
        "def test_own(runs, baseline_engine, speculative_engine): pass\n",
    )
    result = project.run("suites")
    assert result.loads() == ["baseline", "speculative"]
    assert len(result.outcomes) == 13


def test_profiles_run_one_after_the_other_and_their_tests_together(project: Project) -> None:
    project.profiles(first=FAST, second=FAST)
    project.workload("code", "one").workload("story", "one")
    result = project.run(
        "suites", "--specdec-profile=second", "--specdec-profile=first", "--update-baselines"
    )
    assert result.exit_code == 0
    assert [name.split("::")[1] for name in result.outcomes] == ["second"] * 12 + ["first"] * 12
    assert result.loads() == ["baseline", "speculative"] * 2
    events = [each["op"] for each in result.commands if each["op"] in ("start", "end")]
    assert events == ["start", "start", "end", "end"] * 2


def test_tests_that_need_no_engine_run_first(project: Project) -> None:
    project.workload("code", "one").file("suites/test_own.py", "def test_plain(): pass\n")
    result = project.run("suites")
    assert next(iter(result.outcomes)) == "test_own.py::test_plain"


def test_a_default_profile_is_named_in_the_file(project: Project) -> None:
    project.profiles(default={"cpu": "second"}, first=FAST, second=FAST)
    result = project.workload("code", "one").run("suites")
    assert set(result.outcomes) == {
        "code.jsonl::second::identical[one]",
        *wide("code", "second"),
        *metrics("code", "skipped", "second"),
    }


def test_sequential_layout_keeps_one_engine_alive(project: Project) -> None:
    project.profile(layout="sequential").workload("code", "one").workload("story", "one")
    result = project.record().run("suites")
    assert result.counts == {"passed": 12}
    alive: set[int] = set()
    for each in result.commands:
        if each["op"] == "start":
            assert not alive
            alive.add(each["pid"])
        elif each["op"] == "end":
            alive.remove(each["pid"])
    assert result.loads() == ["baseline", "speculative"]


def test_sequential_layout_asks_the_baseline_engine_again_about_a_divergence(
    project: Project,
) -> None:
    project.profile(layout="sequential").workload("code", "one").workload("story", "one")
    project.fake(speculative={"diverge": {"prompt": "about one", "at": 3}})
    result = project.run("suites", "-k", "identical")
    assert "margin: 2.0000 nats" in result.message("code.jsonl::fast::identical[one]")
    assert "margin: 2.0000 nats" in result.message("story.jsonl::fast::identical[one]")


def test_passes_alternate_after_a_warm_up(project: Project) -> None:
    result = project.profile(num_blocks=1).workload("code", "one").run("suites")
    generated = [each for each in result.commands if each["op"] == "generate"]
    assert [each["role"] for each in generated] == [
        "baseline",
        "speculative",
        *("baseline", "speculative", "speculative", "baseline"),
    ]
    tokens = [each["command"]["requests"][0]["max_tokens"] for each in generated]
    assert tokens[2:] == [40] * 4
    assert max(tokens[:2]) < 10


def test_requests_and_concurrency_reach_the_engine_as_written(project: Project) -> None:
    prompt = {"id": "one", "temperature": 0.5, "stop": ["x"], "expect": {"json_schema": True}}
    result = project.workload("code", prompt, concurrency=3).run("suites")
    (command,) = {
        str(each["command"])
        for each in result.commands
        if each["op"] == "generate" and each["call"] > 1
    }
    assert command == str(
        {
            "op": "generate",
            "requests": [
                {
                    "max_tokens": 40,
                    "messages": [{"role": "user", "content": "Say something about one."}],
                    "temperature": 0.5,
                    "stop": ["x"],
                }
            ],
            "concurrency": 3,
            "circumstance": None,
        }
    )
