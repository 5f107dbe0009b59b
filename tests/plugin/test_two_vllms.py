"""A profile whose baseline engine has its own vLLM, or its own way to speculate."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake_engine.project import FAST, SPECULATIVE, Project, Result
from tests.plugin.recorded import RECORD, REPLAY, without_engines

OLD = {"python": "old/python", "speculative_config": SPECULATIVE}
SHORTER = {"speculative_config": {**SPECULATIVE, "num_speculative_tokens": 3}}
GATED = {"gated": ["speedup"], "num_blocks": 2, "tolerances": {"min_speedup": 0.97}}
ONE = {"id": "one", "content": "ANSWER: " + "abc" * 12}


@pytest.fixture
def upgrade(project: Project) -> Project:
    """An old vLLM against a new one, which does as well."""
    project.interpreter("old/python", role="baseline").profile(**GATED, baseline=OLD)
    return project.workload("code", ONE).fake(baseline={"versions": {"vllm": "0.29.0"}})


@pytest.fixture
def drafts(project: Project) -> Project:
    """Drafts of three tokens against drafts of four, of one vLLM."""
    return project.workload("code", ONE).profile(**GATED, baseline=SHORTER)


def gate(project: Project, *arguments: str) -> Result:
    return project.run("suites", "--specdec-profile=fast", *arguments)


def told(result: Result, operation: str) -> dict[str, Any]:
    """What each engine was told to do, by role."""
    return {
        each["role"]: each["command"]["engine_args"].get("speculative_config")
        for each in result.commands
        if each["op"] == operation
    }


def test_an_upgrade_is_gated_without_stored_numbers(upgrade: Project) -> None:
    result = gate(upgrade)
    assert (result.exit_code, result.counts) == (0, {"passed": 5})
    assert told(result, "load") == {"baseline": SPECULATIVE, "speculative": SPECULATIVE}
    assert result.passes("code") == ["baseline", "speculative", "speculative", "baseline"] * 2
    line = "engines differ in (baseline / speculative): vllm 0.29.0 / 0.32.0"
    assert line in result.section
    assert "profile fast; vLLM 0.32.0 (baseline engine: 0.29.0), torch 2.13.0; " in result.text


def test_the_speculative_engine_s_versions_are_those_of_the_session(upgrade: Project) -> None:
    result = gate(upgrade, "--junit-xml=junit.xml")
    (profile,) = result.report["profiles"]
    assert (profile["versions"]["vllm"], profile["versions"]["baseline_vllm"]) == (
        "0.32.0",
        "0.29.0",
    )
    assert profile["engines"]["baseline"]["versions"]["vllm"] == "0.29.0"
    assert profile["profile"]["baseline"] == OLD
    junit = (upgrade.folder / "junit.xml").read_text()
    assert 'name="specdec_vllm" value="0.32.0"' in junit
    assert 'name="specdec_baseline_vllm" value="0.29.0"' in junit


@pytest.mark.parametrize(("versions", "word"), [("==0.32.0", "skipped"), ("==0.29.0", "failed")])
def test_known_defects_are_those_of_the_speculative_engine_s_vllm(
    upgrade: Project, versions: str, word: str
) -> None:
    defect = f'check = "identical"\nworkload = "code"\nversions = "{versions}"\nreason = "why"\n'
    settings = (upgrade.folder / "specdec.toml").read_text()
    upgrade.file("specdec.toml", f"{settings}[[profiles.fast.known_defects]]\n{defect}")
    diverging = {"diverge": {"prompt": "abc", "at": 3}}
    result = gate(upgrade.fake(speculative=diverging))
    assert result.outcomes["code.jsonl::fast::identical[one]"] == word


def test_a_slower_new_vllm_fails_and_says_what_it_is(upgrade: Project) -> None:
    result = gate(upgrade.fake(speculative={"step_ms": 20.0, "accepted": 1}))
    assert result.not_passed == {"code.jsonl::fast::speedup": "failed"}
    lines = result.message("speedup").splitlines()
    assert lines[0] == "failed: speedup of `code`: 0.285714 is below 0.97"
    assert [line for line in lines if " by the " in line] == [
        "tokens per step: 3.25 by the baseline engine, 1.85714 by the speculative engine "
        "(speedup 42.9% lower by it)",
        "ms a step: 10 by the baseline engine, 20 by the speculative engine (speedup 50% lower "
        "by it)",
    ]
    assert lines[-1] == (
        "hint: the speculative engine is slower against the baseline engine than the profile "
        "allows: see what differs between them, or lower `min_speedup`"
    )


def test_without_a_minimum_there_is_nothing_to_hold_the_speedup_to(upgrade: Project) -> None:
    result = gate(upgrade.profile(**{**GATED, "tolerances": {}}, baseline=OLD))
    assert result.not_passed == {"code.jsonl::fast::speedup": "failed"}
    assert result.message("speedup").splitlines()[-1] == (
        "hint: set `min_speedup` in `tolerances` of the profile, or record one: "
        "`pytest suites --specdec-profile fast --update-baselines`"
    )


def test_a_plain_baseline_engine_is_no_reference(project: Project) -> None:
    """That speculation pays at all says nothing of what it did before."""
    result = gate(project.workload("code", ONE).profile(**GATED))
    assert "no stored baseline" in result.message("speedup")


@pytest.mark.parametrize("baseline", [OLD, {"python": "old/python"}])
def test_a_divergence_does_not_blame_speculation(
    upgrade: Project, baseline: dict[str, Any]
) -> None:
    upgrade.profile(**GATED, baseline=baseline)
    result = gate(upgrade.fake(speculative={"diverge": {"prompt": "abc", "at": 3}}))
    lines = result.message("identical[one]").splitlines()
    assert lines[0] == "divergence: `one`"
    assert "  margin: 2.0000 nats, by the baseline engine" in lines
    assert lines[-1] == (
        "hint: rounding does not explain it, one of the engines changed the answer; run the prompt "
        "in a profile without `baseline`, with the vLLM and the `speculative_config` of each"
    )


def test_two_ways_to_speculate(drafts: Project) -> None:
    result = gate(drafts.fake(baseline_tokens=3, baseline={"accepted": 2}))
    assert (result.exit_code, result.counts) == (0, {"passed": 5})
    assert told(result, "load") == {
        "baseline": SHORTER["speculative_config"],
        "speculative": SPECULATIVE,
    }
    line = "engines differ in (baseline / speculative): speculative_config.num_speculative_tokens 3"
    assert f"{line} / 4" in result.section
    assert "baseline engine:" not in result.text
    (workload,) = result.report["profiles"][0]["workloads"]
    assert workload["measurement"]["baseline"]["tokens_per_step"] == pytest.approx(13 / 5)


def test_a_baseline_engine_that_is_to_speculate_must_draft(drafts: Project) -> None:
    result = gate(drafts.fake(baseline_tokens=3, baseline={"drafts": "none"}))
    assert result.message("exercised").splitlines()[:2] == [
        "nothing drafted",
        "  draft tokens in the baseline engine's first pass: 0",
    ]


def test_counts_of_the_baseline_engine_are_held_to_its_own_drafts(drafts: Project) -> None:
    """Four tokens of a draft of three are one too many."""
    result = gate(drafts.fake(baseline_tokens=3, baseline={"accepted": 4}))
    assert (
        "  baseline engine, pass 1, `one`: a step gave 5 tokens, more than 3 draft tokens and "
        "one" in result.message("counts").splitlines()
    )


def test_what_both_engines_refuse_is_refused(drafts: Project) -> None:
    refused = {"id": "min", "min_p": 0.1, "temperature": 1, "expect": {"refused": True}}
    drafts.workload("unsupported", refused, ONE, gated=[])
    result = gate(drafts.fake(baseline_tokens=3, refuses=["min_p"]))
    assert result.outcomes["unsupported.jsonl::fast::refused[min]"] == "passed"


def test_sampled_answers_of_both_are_scored_by_the_baseline_engine(upgrade: Project) -> None:
    drawn = {"id": "drawn", "temperature": 1, "max_tokens": 240}
    upgrade.workload("code", drawn, gated=[])
    result = gate(upgrade)
    assert result.outcomes["code.jsonl::fast::distribution"] == "passed"
    assert {each["role"] for each in result.commands if each["op"] == "score"} == {"baseline"}


@pytest.mark.parametrize("baseline", [OLD, SHORTER])
def test_one_engine_at_a_time(project: Project, baseline: dict[str, Any]) -> None:
    project.interpreter("old/python", role="baseline").workload("code", ONE)
    project.profile(**GATED, baseline=baseline, layout="sequential")
    result = gate(project.fake(baseline_tokens=3, baseline={"versions": {"vllm": "0.29.0"}}))
    assert result.counts == {"passed": 5}
    assert result.passes("code") == ["baseline"] * 4 + ["speculative"] * 4
    assert result.report["profiles"][0]["num_starts"] == {"baseline": 1, "speculative": 1}
    assert result.report["profiles"][0]["versions"]["vllm"] == "0.32.0"


def test_each_vllm_is_asked_for_the_names_it_is_told(upgrade: Project) -> None:
    unknown = ["config", "this vLLM does not know `n` in `speculative_config`"]
    result = gate(upgrade.fake(baseline={"on": {"check_names": unknown}}))
    assert result.exit_code == 4
    assert "ERROR: profile `fast`: this vLLM does not know `n`" in result.text


@pytest.mark.parametrize(
    ("settings", "fact", "hint"),
    [
        (
            {"baseline": {"on": {"hello": ["unavailable", "No module named 'vllm'"]}}},
            "ERROR: vLLM cannot be imported under: {old}",
            "or name an interpreter that has it as `baseline.python` of profile `fast`",
        ),
        (
            {"baseline": {"on": {"hello": "die"}}},
            "ERROR: the baseline engine of profile `fast` died while importing vLLM",
            "hint: name an interpreter that has vLLM as `baseline.python` of profile `fast`",
        ),
        (
            {"on": {"hello": ["unavailable", "none"]}, "baseline": {"on": {}}},
            "ERROR: vLLM cannot be imported under: {new}",
            "or name an interpreter that has it with `--specdec-python PATH`",
        ),
    ],
)
def test_what_an_interpreter_lacks_is_told_of_that_one(
    upgrade: Project, settings: dict[str, Any], fact: str, hint: str
) -> None:
    result = gate(upgrade.fake(**settings))
    assert result.exit_code == 4
    old, new = upgrade.folder / "old/python", upgrade.python
    assert result.errors[0].startswith(fact.format(old=old, new=new))
    assert hint in "\n".join(result.errors)


def test_an_interpreter_that_is_not_there(upgrade: Project) -> None:
    upgrade.profile(**GATED, baseline={**OLD, "python": "older/python"})
    result = gate(upgrade)
    assert (result.exit_code, result.commands) == (4, [])
    assert result.errors[0] == (
        f"ERROR: the interpreter cannot be started: {upgrade.folder / 'older/python'}"
    )
    assert result.errors[2] == (
        "hint: give one that has vLLM as `baseline.python` of profile `fast`"
    )


def test_a_draft_model_of_the_baseline_engine_must_be_there(project: Project) -> None:
    missing = {"speculative_config": {"model": "./draft", "num_speculative_tokens": 3}}
    result = gate(project.workload("code", ONE).profile(**GATED, baseline=missing))
    assert result.exit_code == 4
    assert f"no model folder: {project.folder / 'draft'}" in result.errors[0]


def test_a_recording_is_judged_where_the_interpreters_are_not(upgrade: Project) -> None:
    before = gate(upgrade, RECORD)
    assert before.exit_code == 0
    without_engines(upgrade).profile(**GATED, baseline={**OLD, "python": "elsewhere/python"})
    result = gate(upgrade, REPLAY)
    assert (result.exit_code, result.counts) == (0, before.counts)
    assert "vllm 0.29.0 / 0.32.0" in "\n".join(result.section)


def test_a_recording_of_another_baseline_engine_is_not_taken(drafts: Project) -> None:
    assert gate(drafts.fake(baseline_tokens=3), RECORD).counts["passed"]
    result = gate(without_engines(drafts).profile(**GATED), REPLAY)
    assert result.exit_code == 4
    assert "other settings of profile `fast`: `baseline.speculative_config`" in result.text


def test_stored_numbers_know_the_old_vllm(upgrade: Project) -> None:
    upgrade.record("--specdec-profile=fast").fake(baseline={"versions": {"vllm": "0.30.0"}})
    stored = upgrade.stored()["workloads"]["code"]["provenance"]["versions"]
    assert (stored["vllm"], stored["baseline_vllm"]) == ("0.32.0", "0.29.0")
    result = gate(upgrade)
    line = "changed since the numbers were stored: baseline_vllm 0.29.0 -> 0.30.0"
    assert line in result.section


def test_a_profile_without_the_table_says_nothing_of_two(project: Project) -> None:
    project.workload("code", ONE).profiles(fast=FAST)
    result = project.run("suites")
    assert "baseline_vllm" not in result.report["profiles"][0]["versions"]
    assert result.report["profiles"][0]["config_differences"] == {}
