"""A session is recorded, and judged again where there is no engine: the same outcomes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_specdec.engines.loads import ABBA
from tests.fake_engine.project import FAST, Project, Result
from tests.plugin.recorded import RECORD, REPLAY, edit, read, recording, without_engines

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
TWO = {"id": "two", "content": "ANSWER: 123456789" + "abc" * 9}
SAMPLED = {"id": "drawn", "temperature": 1, "ignore_eos": True}
REFUSED = {"id": "no", "min_p": 0.1, "expect": {"refused": True}}
JSON = {"id": "json", "content": "ANSWER: {}", "expect": {"json_schema": {"type": "object"}}}
DIVERGE = {"prompt": "789abc", "at": 10}
NEAR = {"identity": "near-tie"}


def told(result: Result) -> Any:
    """`report.json`, but for how often engines were started."""
    report = result.report
    for profile in report["profiles"]:
        del profile["num_starts"]
    return report


def replayed(project: Project, *arguments: str) -> Result:
    """Judged again, with no engine."""
    result = without_engines(project).run("suites", REPLAY, *arguments)
    assert result.commands == []
    return result


def check_same(recorded: Result, again: Result) -> None:
    assert again.outcomes == recorded.outcomes
    assert again.messages == recorded.messages
    assert again.exit_code == recorded.exit_code
    assert told(again) == told(recorded)


def known(project: Project, defect: Mapping[str, str]) -> Project:
    """The profile names this defect."""
    project.profile()
    rows = "".join(f"{key} = {value!r}\n" for key, value in defect.items())
    text = (project.folder / "specdec.toml").read_text()
    return project.file("specdec.toml", f"{text}\n[[profiles.fast.known_defects]]\n{rows}")


@pytest.fixture
def stored(project: Project) -> Project:
    """Of all kinds, with stored baselines."""
    project.workload("code", EXACT, TWO, JSON, again=["2-in-flight", "after-sleep"])
    project.workload("drawn", SAMPLED, gated=[]).workload("no", EXACT, REFUSED, gated=[])
    return project.fake(speculative={"refuses": ["min_p"]}).record()


SAID: Mapping[str, Mapping[str, Any]] = {
    "as stored": {},
    "slower": {"speculative": {"step_ms": 20.0, "refuses": ["min_p"]}},
    "less accepted": {"accepted": 2, "speculative": {"refuses": ["min_p"]}},
    "a divergence": {"speculative": {"diverge": DIVERGE, "refuses": ["min_p"]}},
    "two answers of one engine": {"baseline": {"diverge": {**DIVERGE, "calls": [3]}}},
    "nothing drafted": {"drafts": "none"},
    "no counters": {"drafts": "nobody"},
    "a circumstance that is not had": {"unsupported": ["after-sleep"]},
    "a distribution of its own": {"speculative": {"drawn": "likeliest"}},
    "invalid": {"answers": {"{}": "{"}},
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
@pytest.mark.parametrize("settings", [{}, {"layout": "sequential", **NEAR}], ids=["exact", "near"])
def test_the_same_again(
    stored: Project, said: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    stored.profile(**settings).fake(**said)
    recorded = stored.run("suites", RECORD)
    assert recorded.loads()
    check_same(recorded, replayed(stored))


ASKED: Mapping[str, Mapping[str, Any]] = {
    "a control run that differs": {"diverge": {**DIVERGE, "calls": [4]}},
    "a control run that is refused": {"on": {"generate#4": ["request", "no"]}},
    "no scores": {"on": {"score": ["request", "no token is left"]}},
    "an answer that cannot be rescored": {"on": {"score#3": ["request", "too long"]}},
    "an end while it is asked": {"on": {"score": "die"}},
}


@pytest.mark.parametrize("baseline", ASKED.values(), ids=ASKED)
def test_what_the_baseline_engine_said_afterwards(
    project: Project, baseline: Mapping[str, Any]
) -> None:
    project.profile(num_blocks=1, **NEAR).workload("code", EXACT, TWO)
    project.fake(baseline=baseline, speculative={"diverge": DIVERGE})
    check_same(project.run("suites", RECORD), replayed(project))


def test_several_loads_and_profiles(project: Project) -> None:
    several = {**FAST, "num_loads": 2, "num_blocks": 2}
    project.profiles(fast=FAST, loads=several).workload("code", EXACT).workload("story", "one")
    chosen = ("--specdec-profile=fast", "--specdec-profile=loads")
    project.run("suites", RECORD, "--update-baselines", *chosen)
    header = read(recording(project, "story", "loads"))[0]
    assert header["num_starts"] == {"baseline": 2, "speculative": 2}
    recorded = project.run("suites", RECORD, *chosen)
    check_same(recorded, replayed(project, *chosen))


def test_a_selection(project: Project) -> None:
    project.workload("code", EXACT).workload("story", "one")
    project.run("suites", RECORD)
    recorded = project.run("suites", "-k", "story and identical")
    check_same(recorded, replayed(project, "-k", "story and identical"))


def test_log_probabilities_that_are_no_numbers(project: Project) -> None:
    project.workload("code", {**EXACT, "logprobs": 0}).fake(logprob_shift=float("nan"))
    recorded = project.run("suites", RECORD)
    assert "not finite" in recorded.message("logprobs[one]")
    check_same(recorded, replayed(project))


def test_a_recording_says_what_it_is_of(project: Project) -> None:
    project.workload("code", EXACT, TWO).fake(speculative={"diverge": DIVERGE})
    result = project.run("suites", RECORD)
    assert "specdec: recorded to: rec" in result.lines
    lines = read(recording(project))
    header, workload = lines[:2]
    assert (header["what"], header["schema_version"]) == ("header", 1)
    assert header["profile"]["speculative_config"] == FAST["speculative_config"]
    assert header["versions"]["vllm"] == "0.32.0"
    assert header["engines"]["baseline"]["config"]["max_num_seqs"] == 16
    (told_of,) = result.report["profiles"]
    assert header["hardware"].pop("key") in result.text
    assert header["hardware"] == told_of["hardware"]
    assert str(project.folder) not in json.dumps(lines)
    assert [prompt["id"] for prompt in workload["prompts"]] == ["one", "two"]
    whats = [line["what"] for line in lines]
    assert whats == [
        *("header", "workload", "pass", "pass", "pass", "pass", "runs", "sample_scores"),
        *("control", "control", "scoring", "scoring", "end"),
    ]
    assert [line["role"] for line in lines[2:6]] == [*ABBA]


class TestJudgedOtherwise:
    """Recorded once, and judged with what the project says now."""

    def test_a_margin(self, stored: Project) -> None:
        stored.fake(speculative={"step_ms": 11.0, "refuses": ["min_p"]})
        name = "code.jsonl::fast::speedup"
        assert stored.run("suites", RECORD).outcomes[name] == "failed"
        without_engines(stored).profile(tolerances={"speedup_drop": 0.2})
        assert replayed(stored).outcomes[name] == "passed"

    def test_a_known_defect(self, project: Project) -> None:
        project.workload("code", EXACT, TWO).fake(speculative={"diverge": DIVERGE})
        name = "code.jsonl::fast::identical[two]"
        assert project.run("suites", RECORD).outcomes[name] == "failed"
        defect = {"check": "identical", "workload": "code", "versions": "==0.32.0", "reason": "x"}
        result = replayed(known(project, defect))
        assert result.outcomes[name] == "skipped"
        assert "known defect of vLLM ==0.32.0: x" in result.text
        defect["versions"] = ">0.32.0"
        assert replayed(known(project, defect)).outcomes[name] == "failed"

    def test_what_an_answer_is_held_to(self, project: Project) -> None:
        project.workload("code", JSON).run("suites", RECORD)
        strict = {"json_schema": {"type": "object", "required": ["a"]}}
        result = replayed(project.workload("code", {**JSON, "expect": strict}))
        assert result.outcomes["code.jsonl::fast::json[json]"] == "passed"  # both fail alike
        assert "0 of 1 (baseline 0)" in result.text

    def test_near_ties(self, project: Project) -> None:
        project.profile(**NEAR).workload("code", EXACT, TWO)
        project.fake(margin_nats=0.2, speculative={"diverge": DIVERGE})
        name = "code.jsonl::fast::identical[two]"
        assert project.run("suites", RECORD).outcomes[name] == "passed"
        project.profile(**NEAR, tolerances={"near_tie_nats": 0.1})
        result = replayed(project)
        assert result.message("identical[two]").startswith("divergence: ")

    def test_what_was_not_asked_then_is_told(self, project: Project) -> None:
        project.workload("code", EXACT, TWO)
        project.fake(margin_nats=0.2, speculative={"diverge": DIVERGE})
        project.run("suites", RECORD)
        result = replayed(project.profile(**NEAR))
        lines = result.message("identical[two]").splitlines()
        assert lines[0] == "near tie: `two`"
        assert "  margin: 0.2000 nats, by the baseline engine" in lines
        assert lines[-2:] == [
            "  not asked when this was recorded: the scores of 13 tokens",
            "hint: what is asked about a difference follows from the settings and the code of "
            "then: record again with `--specdec-record`",
        ]
        told = "code: questions about differing answers not in the recording: 1"
        assert told in result.section

    def test_nothing_was_asked_at_all(self, project: Project) -> None:
        project.workload("code", EXACT, TWO).fake(speculative={"diverge": DIVERGE})
        project.run("suites", RECORD)

        def forget(lines: list[dict[str, Any]]) -> None:
            lines[:] = [each for each in lines if each["what"] not in ("control", "scoring")]

        edit(recording(project), forget)
        assert replayed(project).message("identical[two]").splitlines()[2:] == [
            "  first: token 6382179",
            "  second: token 2178849",
            "  not asked when this was recorded: the scores of 11 tokens",
            "  not asked when this was recorded: a control run of 2 prompts, 2 in flight",
            "hint: what is asked about a difference follows from the settings and the code of "
            "then: record again with `--specdec-record`",
        ]


def test_a_gpu_night_is_judged_without_a_gpu(project: Project) -> None:
    """As if there had been one: the recording's hardware is what counts."""
    project.workload("code", EXACT).run("suites", RECORD)
    gpu = {"name": "NVIDIA B200", "count": 1, "compute_capability": "10.0", "memory_gib": 180}

    def on_a_gpu(lines: list[dict[str, Any]]) -> None:
        lines[0]["profile"]["device"] = "gpu"
        facts = {"device": "gpu", "name": "NVIDIA B200", "count": 1, "facts": gpu}
        lines[0]["hardware"] = {"key": "nvidia-b200-x1", **facts}

    edit(recording(project), on_a_gpu)
    project.profile(device="gpu", model="org/absent").env(CUDA_VISIBLE_DEVICES="")
    edit(recording(project), lambda lines: lines[0]["profile"].update(model="org/absent"))
    result = replayed(project, "--specdec-gpu")
    assert "1 x NVIDIA B200 (compute capability 10.0)" in result.text
    assert "stored baselines: baselines/nvidia-b200-x1" in result.text
    assert "specdec: replayed from: rec" in result.lines
    assert set(result.outcomes.values()) == {"passed", "failed"}
    assert "no stored baseline" in result.message("speedup")


class TestUpdates:
    def test_the_provenance_is_the_recording_s(self, project: Project) -> None:
        project.workload("code", EXACT).fake(versions={"vllm": "0.31.0"})
        project.run("suites", RECORD, "--update-baselines")
        recorded = project.stored()
        project.baselines_file().unlink()
        edit(
            recording(project),
            lambda lines: lines[0].update(recorded_at="2026-01-02T03:04:05+00:00", commit="abc"),
        )
        project.fake()
        assert replayed(project, "--update-baselines").exit_code == 0
        provenance = recorded["workloads"]["code"]["provenance"]
        provenance |= {"date": "2026-01-02", "commit": "abc"}
        assert provenance["versions"]["vllm"] == "0.31.0"
        assert project.stored() == recorded

    def test_passes_that_stopped_early_are_not_stored(self, project: Project) -> None:
        project.workload("code", EXACT).run("suites", RECORD)
        result = replayed(project, "--update-baselines")
        assert result.exit_code == 1
        assert "the recording was stopped when its verdict was sure" in result.message("speedup")
        assert not (project.folder / "baselines").exists()


class TestFixtures:
    def test_of_runs(self, project: Project) -> None:
        project.workload("prompts", EXACT, folder="tests").file(
            "tests/test_own.py",
            "import pytest\n"
            "@pytest.mark.specdec('prompts.jsonl')\n"
            "def test_own(runs, workload, stored_baseline, engine_pair):\n"
            "    assert runs.baseline.generations[0].text == 'abc' * 12\n"
            "    assert engine_pair.run(workload) == runs\n"
            "    assert stored_baseline is None\n",
        )
        assert project.run("tests", RECORD).counts == {"passed": 1}
        result = without_engines(project).run("tests", REPLAY)
        assert (result.counts, result.commands) == ({"passed": 1}, [])

    @pytest.mark.parametrize("role", ["baseline", "speculative"])
    def test_of_engines(self, project: Project, role: str) -> None:
        project.workload("code", EXACT).run("suites", RECORD)
        project.file("tests/test_own.py", f"def test_own({role}_engine): pass\n")
        result = without_engines(project).run("tests", REPLAY)
        assert result.outcomes == {"tests/test_own.py::test_own[fast]": "error"}
        assert list(result.messages.values()) == [
            f"the {role} engine does not run: this session judges recordings: "
            f"{project.folder / 'rec'}\n"
            "hint: run tests that ask an engine themselves without `--specdec-replay`, or leave "
            "them out with `-k` or `--deselect`"
        ]
