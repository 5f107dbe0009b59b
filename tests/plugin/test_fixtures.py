"""Tests of one's own, with our fixtures."""

from __future__ import annotations

import pytest

from tests.fake_engine.project import FAST, Project

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}


@pytest.fixture
def own(project: Project) -> Project:
    return project.workload("prompts", EXACT, folder="tests")


def test_all_fixtures(own: Project) -> None:
    own.file(
        "tests/test_own.py",
        """
        import pytest
        from dataclasses import replace

        @pytest.mark.specdec("prompts.jsonl")
        def test_facts(workload, runs, stored_baseline, specdec_profile, engine_pair):
            assert [prompt.id for prompt in workload.prompts] == ["one"]
            assert runs.baseline.generations[0].text == "abc" * 12
            assert runs.speculative.drafts.acceptance_rate == 0.75
            assert runs.order.count("baseline") == 2
            assert stored_baseline is None
            assert specdec_profile.profile.name == "fast"
            assert specdec_profile.pair is engine_pair

        @pytest.mark.specdec("prompts.jsonl")
        def test_engines(workload, baseline_engine, speculative_engine):
            prompt = workload.prompt("one")
            shorter = replace(prompt, request={**prompt.request, "max_tokens": 5})
            plain = baseline_engine.generate([shorter], concurrency=1)
            drafted = speculative_engine.generate([shorter], concurrency=1)
            assert plain.generations[0].token_ids == drafted.generations[0].token_ids
            assert (plain.num_steps, drafted.num_steps) == (5, 2)
            assert baseline_engine.role == "baseline"
            assert speculative_engine.facts.versions["vllm"] == "0.32.0"
            (score,) = baseline_engine.score(
                plain.generations[0].prompt_token_ids, plain.generations[0].token_ids[:1]
            )
            assert (score.text, score.rank) == ("abc", 1)
        """.replace("\n        ", "\n"),
    )
    result = own.run("tests")
    assert result.outcomes == {
        "tests/test_own.py::test_facts[fast]": "passed",
        "tests/test_own.py::test_engines[fast]": "passed",
    }
    assert result.loads() == ["baseline", "speculative"]


def test_stored_baseline_after_recording(own: Project) -> None:
    own.file(
        "tests/test_own.py",
        "import pytest\n"
        "@pytest.mark.specdec('prompts.jsonl')\n"
        "def test_own(runs, stored_baseline):\n"
        "    assert stored_baseline.workloads['prompts'].acceptance.rate == 0.75\n",
    )
    assert own.run("tests", "--update-baselines").exit_code == 1
    assert own.run("tests").counts == {"passed": 1}


def test_a_marker_of_a_class_or_module(own: Project) -> None:
    own.file(
        "tests/test_own.py",
        "import pytest\n"
        "pytestmark = pytest.mark.specdec('absent.jsonl')\n"
        "@pytest.mark.specdec('prompts.jsonl')\n"
        "class TestOwn:\n"
        "    def test_near(self, workload): assert workload.name == 'prompts'\n",
    )
    result = own.run("tests")
    assert result.outcomes == {"tests/test_own.py::TestOwn::test_near": "passed"}
    assert result.commands == []


def test_a_test_runs_once_for_each_profile_and_each_profile_s_together(own: Project) -> None:
    own.profiles(first=FAST, second=FAST).file(
        "tests/test_own.py",
        "def test_one(engine_pair): pass\n"
        "def test_plain(): pass\n"
        "def test_two(speculative_engine): pass\n",
    )
    result = own.run("tests", "--specdec-profile=first", "--specdec-profile=second")
    assert [each.partition("::")[2] for each in result.outcomes] == [
        "test_plain",
        "test_one[first]",
        "test_two[first]",
        "test_one[second]",
        "test_two[second]",
    ]
    assert result.loads() == ["speculative", "speculative"]


@pytest.mark.parametrize(
    ("marker", "fixture", "message"),
    [
        pytest.param(
            "",
            "runs",
            "`test_own[fast]` uses the `workload` fixture but names no workload\n"
            'hint: mark it: @pytest.mark.specdec("prompts.jsonl")',
            id="no marker",
        ),
        pytest.param(
            "@pytest.mark.specdec()",
            "workload",
            "`test_own` uses the `workload` fixture but names no workload\n"
            'hint: mark it: @pytest.mark.specdec("prompts.jsonl")',
            id="a marker without a name",
        ),
        pytest.param(
            "@pytest.mark.specdec('absent.jsonl')",
            "workload",
            "{folder}/tests/absent.jsonl:1: the file cannot be read: No such file or directory",
            id="no such file",
        ),
        pytest.param(
            "@pytest.mark.specdec('bad.jsonl')",
            "runs",
            "{folder}/tests/bad.jsonl:1: `id` is missing\n"
            "hint: letters, digits, `.`, `_` and `-`: the id is part of the test's name",
            id="a broken file",
        ),
    ],
)
def test_errors_are_messages(own: Project, marker: str, fixture: str, message: str) -> None:
    own.file("tests/bad.jsonl", '{"max_tokens": 3}\n').file(
        "tests/test_own.py", f"import pytest\n{marker}\ndef test_own({fixture}): pass\n"
    )
    result = own.run("tests")
    assert list(result.outcomes.values()) == ["error"]
    assert list(result.messages.values()) == [message.format(folder=own.folder)]


@pytest.mark.parametrize("fixture", ["runs", "baseline_engine", "speculative_engine"])
def test_an_engine_that_fails_is_an_error_without_a_traceback(own: Project, fixture: str) -> None:
    own.fake(on={"load": "exit"}).file(
        "tests/test_own.py",
        f"import pytest\n@pytest.mark.specdec('prompts.jsonl')\ndef test_own({fixture}): pass\n",
    )
    result = own.run("tests")
    assert result.outcomes == {"tests/test_own.py::test_own[fast]": "error"}
    (message,) = result.messages.values()
    assert "engine of profile `fast` died while loading: exit status 0" in message.splitlines()[0]
    assert "Traceback" not in message
    assert ".py" not in message


def test_a_broken_configuration_is_one_error(own: Project) -> None:
    (own.folder / "specdec.toml").unlink()
    own.file("tests/test_own.py", "def test_own(engine_pair): pass\n")
    result = own.run("tests")
    assert result.exit_code == 4
    assert result.errors[0] == f"ERROR: no `specdec.toml` in: {own.folder}"
