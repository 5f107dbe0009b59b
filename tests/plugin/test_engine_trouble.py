"""Engines that die, hang, refuse or are not there: errors that name the cause, never a verdict."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_specdec.hardware import Gpu
from tests.fake_engine.project import FAST, Project, Result, wide

METRICS = ("acceptance", "speedup")
ALL = ("identical[one]", "exercised", "counts", "drift", *METRICS)


def names(workload: str, profile: str = "fast", checks: Sequence[str] = ALL) -> list[str]:
    return [f"{workload}.jsonl::{profile}::{name}" for name in checks]


@pytest.fixture
def ready(project: Project) -> Project:
    return project.workload("code", "one").workload("story", "one").record()


def assert_told_once(result: Result, first: str, later: str) -> None:
    """The first test tells all, the later ones briefly what they did not run for."""
    code, *others = names("code") + names("story")
    assert set(result.outcomes.values()) == {"error"}
    assert first in result.messages[code].splitlines()[0]
    for name in others:
        fact, hint = result.messages[name].splitlines()
        assert fact == f"not run, because earlier {later}"
        assert hint == "hint: see the first error of profile `fast`"


@pytest.mark.parametrize("role", ["baseline", "speculative"])
def test_an_engine_that_dies_is_an_error(ready: Project, role: str) -> None:
    result = ready.fake(**{role: {"on": {"generate": "die"}}}).run("suites")
    assert result.exit_code == 1
    fact = (
        f"the {role} engine of profile `fast` died while generating: killed by SIGKILL; the "
        "system may be out of memory"
    )
    assert_told_once(result, fact, fact)
    log = ready.folder / f".specdec/logs/fast-{role}.log"
    assert result.messages[names("code")[0]].splitlines()[1:] == [
        f"log: {log}",
        "    fake engine: told to die",
    ]
    assert "Traceback" not in result.text


def test_what_ran_before_a_death_keeps_its_verdicts(ready: Project) -> None:
    # Calls 1 to 5 are the warm-up and the passes of the first workload.
    ready.profile(num_blocks=2)
    result = ready.fake(speculative={"on": {"generate#6": "die"}}).run("suites")
    assert result.outcomes == dict.fromkeys(names("code"), "passed") | dict.fromkeys(
        names("story"), "error"
    )
    assert result.exit_code == 1
    assert [each["name"] for each in result.report["profiles"][0]["workloads"]] == ["code"]


@pytest.mark.parametrize(
    ("on", "told"),
    [
        ({"generate#6": "die"}, "died while generating: killed by SIGKILL"),
        (
            {"generate#6": ["request", "vLLM refused the request: too long\nhint: shorten it"]},
            "refused a request: vLLM refused the request: too long\nhint: shorten it",
        ),
    ],
)
def test_what_fails_while_metrics_measure_all_is_told_by_its_own_tests(
    ready: Project, on: dict[str, object], told: str
) -> None:
    # Calls 1 to 5 are those of the first workload, whose metric then has the second one run.
    ready.profile(num_blocks=2)
    result = ready.fake(speculative={"on": on}).run("suites", "-k", "acceptance or speedup")
    assert result.outcomes == dict.fromkeys(
        names("code", checks=METRICS), "passed"
    ) | dict.fromkeys(names("story", checks=METRICS), "error")
    first, later = (result.messages[name] for name in names("story", checks=METRICS))
    assert told in first
    assert "not run" not in first
    assert ("fake engine: told to die" in first) == ("SIGKILL" in told)
    assert later.startswith("not run, because earlier the speculative engine of profile `fast` ")


def test_a_clean_exit_while_loading_is_an_error_too(ready: Project) -> None:
    result = ready.fake(speculative={"on": {"load": "exit"}}).run("suites")
    fact = "the speculative engine of profile `fast` died while loading: exit status 0"
    assert_told_once(result, fact, fact)


def test_a_silent_engine_is_ended(ready: Project) -> None:
    ready.profile(timeouts={"silence_s": 1})
    result = ready.fake(speculative={"on": {"generate": "be silent"}}).run("suites")
    fact = (
        "the speculative engine of profile `fast` was silent for 1 s while generating, and was "
        "ended"
    )
    assert_told_once(result, fact, fact)
    assert result.messages[names("code")[0]].splitlines()[-1] == (
        "hint: if it is slow rather than hung, raise the profile's `timeouts`"
    )


def test_an_engine_that_fails_says_what_it_said(ready: Project) -> None:
    on = {"load": ["failed", "RuntimeError: no memory"]}
    result = ready.fake(baseline={"on": on}).run("suites")
    fact = "the baseline engine of profile `fast` failed while loading: RuntimeError: no memory"
    assert_told_once(result, fact, fact)


def test_an_argument_vllm_does_not_know(ready: Project) -> None:
    on = {"load": ["config", "this vLLM does not know `dtpye` in `engine_args`\nhint: `dtype`?"]}
    result = ready.fake(on=on).run("suites")
    fact = "profile `fast`: this vLLM does not know `dtpye` in `engine_args`"
    assert_told_once(result, fact, fact)


def test_the_next_profile_still_runs(ready: Project) -> None:
    ready.profiles(fast={**FAST, "env": {"FAKE_ENGINE": '{"on": {"generate": "die"}}'}}, other=FAST)
    result = ready.run("suites", "-k", "code", "--specdec-profile=fast", "--specdec-profile=other")
    assert result.outcomes == dict.fromkeys(names("code"), "error") | {
        "code.jsonl::other::identical[one]": "passed",
        **wide("code", "other"),
        "code.jsonl::other::acceptance": "failed",
        "code.jsonl::other::speedup": "failed",
    }
    assert "no stored baseline" in result.message("other::acceptance")


def test_a_refused_request_is_the_error_of_its_workload_alone(ready: Project) -> None:
    refused = ["request", "vLLM refused the request: too long"]
    ready.profile(num_blocks=2)
    result = ready.fake(speculative={"on": {"generate#1": refused}}).run("suites")
    first, *later = names("code")
    assert result.outcomes == dict.fromkeys(names("code"), "error") | dict.fromkeys(
        names("story"), "passed"
    )
    fact = (
        "the speculative engine of profile `fast` refused a request: vLLM refused the request: "
        "too long"
    )
    assert result.messages[first] == fact
    for name in later:
        assert result.messages[name].splitlines() == [
            f"not run, because earlier {fact}",
            "hint: see the first error of workload `code`",
        ]
    # It is not asked again for every test.
    assert len([each for each in result.commands if each["op"] == "generate"]) == 2 + 2 + 8


@pytest.mark.parametrize("child", [False, True])
@pytest.mark.parametrize("how", [None, "die", "be silent"])
def test_nothing_is_left_behind(ready: Project, child: bool, how: str | None) -> None:
    # The fixture's teardown looks for living processes.
    ready.profile(timeouts={"silence_s": 1})
    on = {} if how is None else {"generate#6": how}
    result = ready.fake(is_with_child=child, speculative={"on": on}).run("suites")
    assert ("error" in result.counts) == (how is not None)
    assert len([each for each in result.commands if each["op"] == "child"]) == 2 * child


NOT_IMPORTABLE = {"hello": ["unavailable", "ModuleNotFoundError: No module named 'vllm'"]}


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--specdec-profile=fast",), {}),
        (("--update-baselines",), {}),
        ((), {"CI": "1"}),
    ],
)
def test_a_gate_without_vllm_is_an_error(
    ready: Project, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    result = ready.fake(on=NOT_IMPORTABLE).env(**environment).run("suites", *arguments)
    assert (result.exit_code, result.outcomes) == (4, {})
    assert result.errors[:3] == [
        f"ERROR: vLLM cannot be imported under: {ready.python}",
        "ModuleNotFoundError: No module named 'vllm'",
        f"hint: install it with `{ready.python} -m pip install vllm`, or name an interpreter that "
        "has it with `--specdec-python PATH`",
    ]


def test_without_vllm_and_without_a_gate_tests_skip(ready: Project) -> None:
    ready.file("suites/test_own.py", "def test_own(engine_pair): pass\ndef test_plain(): pass\n")
    result = ready.fake(on=NOT_IMPORTABLE).run("suites")
    assert result.exit_code == 0
    assert result.counts == {"passed": 1, "skipped": 13}
    assert f"vLLM cannot be imported under: {ready.python}" in result.message(
        "story.jsonl::fast::speedup"
    )
    assert not result.loads()


@pytest.mark.parametrize(
    ("path", "reason"),
    [("no/such/python", "No such file"), ("model/config.json", "Permission denied")],
)
def test_an_interpreter_that_cannot_be_started(ready: Project, path: str, reason: str) -> None:
    result = ready.run("suites", "--specdec-profile=fast", f"--specdec-python={path}")
    assert result.exit_code == 4
    assert result.errors[0] == f"ERROR: the interpreter cannot be started: {ready.folder / path}"
    assert reason in result.errors[1]
    assert result.errors[2] == "hint: give one that has vLLM with `--specdec-python PATH`"


def test_an_interpreter_that_dies_while_importing(ready: Project) -> None:
    result = ready.fake(on={"hello": "die"}).run("suites", "--specdec-profile=fast")
    assert result.exit_code == 4
    assert "died while importing vLLM: killed by SIGKILL" in result.errors[0]
    assert "hint: name an interpreter that has vLLM with `--specdec-python PATH`" in result.errors


@pytest.fixture
def gpu(ready: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project on a machine with one GPU."""
    here = Gpu(
        entry="0",
        uuid="GPU-aa11",
        name="NVIDIA B200",
        compute_capability="10.0",
        memory_gib=180.0,
        power_limit_w=1000.0,
        is_mig=False,
    )
    monkeypatch.setattr("pytest_specdec.hardware.visible_gpus", lambda: (here,))
    return ready.profiles(fast=FAST, big={**FAST, "device": "gpu"})


def test_the_cpu_build_cannot_gate_a_gpu(gpu: Project) -> None:
    result = gpu.run("suites", "--specdec-gpu")
    assert result.exit_code == 4
    assert result.errors[0] == (
        "ERROR: profile `big` needs a GPU, but vLLM 0.32.0 under this interpreter cannot use one: "
        f"{gpu.python}"
    )
    assert result.errors[1].startswith("hint: install vLLM's CUDA build there")


def test_the_cpu_build_cannot_be_what_a_gpu_is_gated_against(gpu: Project) -> None:
    own = {"python": "old/python", "speculative_config": FAST["speculative_config"]}
    gpu.interpreter("old/python", role="baseline").profiles(
        big={**FAST, "device": "gpu", "baseline": own}
    )
    gpu.fake(versions={"cuda": "13.0"}, baseline={"versions": {"vllm": "0.29.0"}})
    result = gpu.run("suites", "--specdec-gpu")
    assert result.exit_code == 4
    assert result.errors[:2] == [
        "ERROR: profile `big` needs a GPU, but vLLM 0.29.0 under this interpreter cannot use one: "
        f"{gpu.folder / 'old/python'}",
        "hint: install vLLM's CUDA build there, or name another interpreter as `baseline.python` "
        "of profile `big`",
    ]


def test_a_gpu_has_stored_baselines_of_its_own(gpu: Project) -> None:
    gpu.fake(versions={"cuda": "13.0"}).record("--specdec-gpu")
    assert gpu.baselines_file("big").parent.name == "nvidia-b200-x1"
    result = gpu.run("suites", "--specdec-gpu")
    assert (result.exit_code, result.counts) == (0, {"passed": 12})
    assert "1 x NVIDIA B200 (compute capability 10.0)" in result.text


def test_a_gpu_the_profile_does_not_accept(gpu: Project) -> None:
    needs = {"compute_capability": ["9.x"], "memory_gib": 60}
    gpu.profiles(big={**FAST, "device": "gpu", "requires": needs})
    result = gpu.run("suites", "--specdec-gpu")
    assert result.exit_code == 4
    assert result.errors[:3] == [
        "ERROR: profile `big` needs 1 GPU of compute capability 9.x with at least 60 GiB",
        "here: NVIDIA B200 (Blackwell, compute capability 10.0, 180 GiB)",
        "hint: choose a profile for this GPU with `--specdec-profile`, another GPU with "
        "CUDA_VISIBLE_DEVICES, or change the profile's `requires`",
    ]


def test_report_json_names_the_failure_and_is_never_an_older_session_s(ready: Project) -> None:
    ready.run("suites")
    result = ready.fake(baseline={"on": {"generate": "die"}}).run("suites")
    (profile,) = result.report["profiles"]
    assert profile["workloads"] == []
    assert "the baseline engine of profile `fast` died while generating" in profile["failure"]
