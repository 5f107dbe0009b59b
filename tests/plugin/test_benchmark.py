"""With pytest-benchmark: its file holds the engines' passes, and its own tools read them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from tests.fake_engine.project import FAST, Project, Result

pytest.importorskip("pytest_benchmark")

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
WITH = ("-p", "pytest_benchmark.plugin")
NAMES = ["code[fast-baseline]", "code[fast-speculative]"]
OURS = "pytest_specdec.errors.BenchmarkWarning"
SPEEDUP = "code.jsonl::fast::speedup"


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at the CPU takes longer than all the rest; and these tests may run under xdist."""
    import pytest_benchmark.plugin

    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)

    monkeypatch.setattr(pytest_benchmark.plugin, "get_cpu_info", lambda: {"brand_raw": "a CPU"})


@pytest.fixture
def recorded(project: Project) -> Project:
    project.fake(wall_factors=[1.0, 1.01, 0.99])
    return project.workload("code", EXACT).workload("open", EXACT, gated=["acceptance"]).record()


def benchmarked(project: Project, *arguments: str, file: str = "b.json") -> tuple[Result, Any]:
    """A session, and the file that it wrote, or none."""
    result = project.run("suites", *WITH, f"--benchmark-json={file}", *arguments)
    path = project.folder / file
    return result, json.loads(path.read_text()) if path.exists() and path.stat().st_size else None


def test_an_entry_for_each_timed_workload_and_engine(recorded: Project) -> None:
    result, written = benchmarked(recorded)
    assert result.exit_code == 0
    baseline, speculative = written["benchmarks"]
    assert [baseline["name"], speculative["name"]] == NAMES
    node = f"suites/{SPEEDUP}"
    assert [each["fullname"] for each in (baseline, speculative)] == [
        f"{node}[fast-baseline]",
        f"{node}[fast-speculative]",
    ]
    assert {each["group"] for each in (baseline, speculative)} == {"code"}
    assert speculative["params"] == {"profile": "fast", "engine": "speculative"}
    workload = result.report["profiles"][0]["workloads"][0]
    for role, entry in (("baseline", baseline), ("speculative", speculative)):
        seconds = [each["wall_s"] for each in workload["runs"][role]["passes"]]
        stats = entry["stats"]
        assert stats["data"] == seconds
        assert stats["rounds"] == len(seconds) > 3
        assert stats["mean"] == pytest.approx(fmean(seconds))
        assert stats["stddev"] == pytest.approx(stdev(seconds))
        assert stats["ops"] == pytest.approx(1 / fmean(seconds))
    assert baseline["extra_info"].keys() == {"output_tokens_per_s", "num_output_tokens"}
    extra = speculative["extra_info"]
    assert (extra["acceptance_rate"], extra["mean_acceptance_length"]) == (0.75, 4.0)
    assert (extra["verdict"], extra["num_output_tokens"]) == ("passed", 13)
    ratio = extra["output_tokens_per_s"] / baseline["extra_info"]["output_tokens_per_s"]
    assert extra["speedup"] == pytest.approx(ratio, abs=1e-5)


def test_as_github_action_benchmark_reads_it(recorded: Project) -> None:
    """Its extractor for pytest: a name of its own for each, and three numbers."""
    _, written = benchmarked(recorded)
    for bench in written["benchmarks"]:
        stats = bench["stats"]
        numbers = [stats[each] for each in ("ops", "stddev", "mean")]
        assert all(isinstance(each, float) and each > 0 for each in numbers)
        assert isinstance(stats["rounds"], int)
    assert len({bench["fullname"] for bench in written["benchmarks"]}) == 2


def test_a_regression_is_in_the_file_too(recorded: Project) -> None:
    result, written = benchmarked(recorded.fake(speculative={"step_ms": 20.0}))
    assert result.not_passed == {SPEEDUP: "failed"}
    assert [each["name"] for each in written["benchmarks"]] == NAMES
    assert written["benchmarks"][1]["extra_info"]["verdict"] == "failed"


def test_several_profiles_have_names_of_their_own(project: Project) -> None:
    project.profiles(fast=FAST, other=FAST).workload("code", EXACT)
    _, written = benchmarked(project, "--specdec-profile=fast", "--specdec-profile=other")
    assert [each["name"] for each in written["benchmarks"]] == [
        *NAMES,
        "code[other-baseline]",
        "code[other-speculative]",
    ]


def test_the_command_line_compares_two_files(recorded: Project) -> None:
    benchmarked(recorded, file="one.json")
    benchmarked(recorded.fake(speculative={"step_ms": 20.0}), file="two.json")
    compared = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", "compare", "one.json", "two.json"],
        cwd=recorded.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in NAMES:
        assert compared.stdout.count(name) == 2
    assert "benchmark 'code': 4 tests" in compared.stdout


def test_a_session_compares_with_a_saved_one(recorded: Project) -> None:
    recorded.run("suites", *WITH, "--benchmark-save=before")
    (saved,) = Path(recorded.folder / ".benchmarks").glob("*/*_before.json")
    assert [each["name"] for each in json.loads(saved.read_text())["benchmarks"]] == NAMES
    recorded.fake(speculative={"step_ms": 40.0})
    result = recorded.run("suites", *WITH, "--benchmark-compare")
    assert result.text.count("code[fast-speculative] (NOW)") == 1


def test_beside_benchmarks_of_others(recorded: Project) -> None:
    recorded.file("suites/test_own.py", "def test_own(benchmark): benchmark.pedantic(int)")
    _, written = benchmarked(recorded)
    assert [each["name"] for each in written["benchmarks"]] == ["test_own", *NAMES]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--benchmark-disable", "--benchmark-json=b.json"), id="disabled"),
        pytest.param((), id="nothing to keep"),
    ],
)
def test_what_is_not_asked_for_is_not_there(recorded: Project, arguments: tuple[str, ...]) -> None:
    result = recorded.run("suites", *WITH, *arguments)
    assert (result.exit_code, result.not_passed) == (0, {})
    assert "benchmark 'code'" not in result.text
    path = recorded.folder / "b.json"
    assert not path.exists() or not path.read_text()
    assert "BenchmarkWarning" not in result.text
    assert "nothing was timed" not in result.text


NOTHING = (
    "pytest-benchmark: nothing was timed, so that its JSON has no entries, and nothing is saved"
)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("suites/open.jsonl",), id="nothing is timed"),
        pytest.param(("suites", "-k", "not speedup"), id="deselected"),
        pytest.param(("suites", "--benchmark-skip"), id="skipped"),
    ],
)
def test_a_file_without_entries_where_nothing_was_timed(
    recorded: Project, arguments: tuple[str, ...]
) -> None:
    benchmarked(recorded)  # an older file, which must not be taken for this session's
    # With warnings as errors, pytest-benchmark's own warning would end in a traceback.
    result = recorded.run(
        *arguments, *WITH, "--benchmark-json=b.json", "--benchmark-autosave", "-W", "error"
    )
    assert (result.exit_code, result.not_passed) == (0, {})
    assert json.loads((recorded.folder / "b.json").read_text())["benchmarks"] == []
    assert not list(recorded.folder.glob(".benchmarks/**/*.json"))
    assert result.text.count(NOTHING) == 1
    assert "BenchmarkWarning" not in result.text


def test_what_is_saved_last_has_entries(recorded: Project) -> None:
    recorded.run("suites", *WITH, "--benchmark-save=before")
    recorded.run("suites/open.jsonl", *WITH, "--benchmark-save=nothing")
    result = recorded.run("suites", *WITH, "--benchmark-compare")
    assert "code[fast-speculative] (NOW)" in result.text


def test_benchmarks_alone_are_none_of_the_gate_s_tests(recorded: Project) -> None:
    seen = len(recorded.commands())
    result = recorded.run("suites", *WITH, "--benchmark-only")
    assert set(result.outcomes.values()) == {"skipped"}
    assert not any(each["op"] == "load" for each in recorded.commands()[seen:])


def test_without_it_nothing_else_is_missing(recorded: Project) -> None:
    with_it, _ = benchmarked(recorded)
    without = recorded.run("suites")
    assert without.outcomes == with_it.outcomes
    assert without.section == with_it.section


def test_under_xdist_it_keeps_nothing(recorded: Project) -> None:
    pytest.importorskip("xdist")
    _, written = benchmarked(recorded, "-p", "xdist.plugin", "-n", "2")
    assert written is None


class TestAnotherShape:
    """A pytest-benchmark that is not built as those known is told, and ends nothing."""

    @pytest.fixture(params=["no class", "other arguments", "no list", "no session"])
    def other(
        self, recorded: Project, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
    ) -> Project:
        import pytest_benchmark.stats

        in_session = {
            "no list": "bs.benchmarks = ()",
            "no session": "config.pluginmanager.unregister(bs)",
        }
        if request.param == "no class":
            monkeypatch.delattr(pytest_benchmark.stats, "Metadata")
        elif request.param == "other arguments":
            monkeypatch.setattr(pytest_benchmark.stats, "Metadata", lambda fixture: None)
        else:
            recorded.file(
                "suites/conftest.py",
                "def pytest_collection_finish(session):\n"
                "    config = session.config\n"
                "    bs = config.pluginmanager.get_plugin('pytest-benchmark')\n"
                f"    {in_session[request.param]}\n",
            )
        return recorded

    def test_is_warned_of(self, other: Project) -> None:
        result = other.run("suites", *WITH, "--benchmark-json=b.json", "-W", f"default::{OURS}")
        assert result.not_passed == {}
        assert "BenchmarkWarning: this pytest-benchmark takes no times from elsewhere: " in (
            result.text
        )
        assert "hint: what it keeps lacks the gate's passes" in result.text


def test_another_shape_as_an_error_fails_with_the_same_text(
    recorded: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pytest_benchmark.stats

    monkeypatch.delattr(pytest_benchmark.stats, "Metadata")
    result, _ = benchmarked(recorded, "-W", f"error::{OURS}")
    assert result.not_passed == {SPEEDUP: "failed"}
    first, hint = result.message("speedup").splitlines()
    assert first.startswith("this pytest-benchmark takes no times from elsewhere: AttributeError")
    assert hint.startswith("hint: ")
