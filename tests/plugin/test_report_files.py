"""The report files of a session: which there are, what they say, and the page of a GitHub job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.report.markdown import MAX_BYTES
from tests.fake_engine.project import Project, Result

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
JSON = {
    "id": "json",
    "content": 'ANSWER: {"a": 1}',
    "expect": {"json_schema": {"type": "object"}},
}
NAMES = ("report.json", "report.html", "report.md")


@pytest.fixture
def ready(project: Project) -> Project:
    return project.workload("code", EXACT, JSON).record()


def told(result: Result) -> dict[str, str]:
    return {name: (result.folder / ".specdec" / name).read_text() for name in NAMES}


def workload(result: Result) -> Any:
    return result.report["profiles"][0]["workloads"][0]


@pytest.mark.parametrize(
    ("settings", "verdict"),
    [({}, "passed"), ({"speculative": {"answers": {"ANSWER: {": "[nope]"}}}, "failed")],
)
def test_all_of_them_are_written(ready: Project, settings: dict[str, Any], verdict: str) -> None:
    result = ready.fake(**settings).run("suites")
    texts = told(result)
    assert result.report["verdict"] == verdict
    assert f"<title>{verdict}: speculative decoding gate</title>" in texts["report.html"]
    assert f"Speculative decoding gate: {verdict}\n" in texts["report.md"]
    paths = ", ".join(f".specdec/{name}" for name in NAMES)
    assert result.section[-1] == f"report: {paths}"


def test_a_failure_is_told_with_its_place(ready: Project) -> None:
    result = ready.fake(speculative={"answers": {"ANSWER: {": '{"a": nope}'}}).run("suites")
    data = workload(result)
    (invalid,) = [each for each in data["findings"] if each["check"] == "json"]
    assert (invalid["role"], invalid["answer"], invalid["position"]) == (
        "speculative",
        '{"a": nope}',
        6,
    )
    (differs,) = data["divergences"]
    assert (differs["first"]["text"], differs["second"]["text"], differs["text_position"]) == (
        '{"a": 1}',
        '{"a": nope}',
        6,
    )
    texts = told(result)
    assert "the validator stopped at character 6" in texts["report.html"]
    assert ">>> nope" in texts["report.md"].replace("&gt;", ">")


def test_figures_are_told_now_and_stored(ready: Project) -> None:
    data = workload(ready.fake(accepted=2).run("suites"))
    figures = data["figures"]
    assert figures["acceptance_rate"] == {"now": 0.5, "stored": 0.75, "floor": 0.735}
    assert figures["mean_acceptance_length"] == {"now": 3.0, "stored": 4.0}
    assert figures["acceptance_rate_per_pos"] == {
        "now": [1.0, 1.0, 0.0, 0.0],
        "stored": [1.0, 1.0, 1.0, 0.0],
    }
    assert data["failing"] == ["acceptance", "speedup"]
    assert data["stored"]["versions"]["vllm"] == "0.32.0"
    one, _ = data["prompts"]
    assert one["request"]["messages"][0]["content"] == EXACT["content"]
    assert one["figures"]["acceptance_rate"] == {"now": 0.5, "stored": 0.75}
    assert one["figures"]["speedup"] == 1.0


def test_other_prompts_than_stored_are_not_compared(ready: Project) -> None:
    data = workload(ready.workload("code", EXACT).run("suites"))
    assert data["stored"] is None
    assert data["figures"]["mean_acceptance_length"] == {"now": 4.0, "stored": None}
    assert data["failing"] == []


def test_numbers_that_are_not_stored_are_told_with_the_reason(ready: Project) -> None:
    ready.fake(speculative={"answers": {"ANSWER: {": "[nope]"}})
    result = ready.run("suites", "--update-baselines")
    data = workload(result)
    assert data["failing"] == ["acceptance", "speedup"]
    assert data["not_stored"][0].startswith("answers have defects (2), the first: ")
    assert "not stored: `code`" in told(result)["report.md"]


def test_a_gate_that_cannot_decide_fails(project: Project) -> None:
    project.workload("code", EXACT)
    assert workload(project.run("suites"))["failing"] == []
    result = project.run("suites", "--specdec-profile=fast")
    assert workload(result)["failing"] == ["acceptance", "speedup"]
    assert result.report["verdict"] == "failed"


def test_an_unexpected_pass_of_a_metric_fails(ready: Project) -> None:
    table = (ready.folder / "specdec.toml").read_text()
    ready.file(
        "specdec.toml",
        f'{table}[[profiles.fast.known_defects]]\ncheck = "acceptance"\nworkload = "code"\n'
        'versions = ">=0.1"\nreason = "why"\n',
    )
    result = ready.run("suites")
    assert result.report["verdict"] == "failed"
    assert "unexpected pass" in told(result)["report.md"]


def test_a_workload_that_did_not_run_is_an_error(ready: Project) -> None:
    ready.workload("seeded", {**EXACT, "seed": 1}).fake(refuses=["seed"])
    result = ready.run("suites")
    assert result.report["verdict"] == "error"
    (told_why,) = result.report["profiles"][0]["not_run"].items()
    assert told_why[0] == "seeded"
    assert "`seed` is not supported with speculation" in told_why[1]
    assert "seeded: not run: " in told(result)["report.html"]


def test_a_session_that_ended_before_a_workload_is_an_error(ready: Project) -> None:
    ready.workload("story", EXACT).fake(speculative={"answers": {"ANSWER: {": "[nope]"}})
    result = ready.run("suites", "-x")
    assert result.report["verdict"] == "error"
    assert result.report["profiles"][0]["not_run"] == {"story": "the session ended before it"}


def test_unused_numbers_fail_where_that_is_asked_for(ready: Project) -> None:
    ready.workload("story", EXACT).record()
    (ready.folder / "suites/story.jsonl").unlink()
    assert ready.run("suites").report["verdict"] == "passed"
    assert ready.run("suites", "--specdec-strict-baselines").report["verdict"] == "failed"


def test_those_of_an_older_session_do_not_stay(ready: Project) -> None:
    ready.run("suites")
    ready.fake(on={"hello": "exit"}).run("suites", "-x")
    assert "passed" not in "".join(
        path.read_text()[:300] for path in (ready.folder / ".specdec").glob("report.*")
    )


def summary_of(ready: Project, before: str | None) -> tuple[Result, str]:
    path = ready.folder / "step-summary.md"
    if before is not None:
        path.write_text(before)
    result = ready.env(GITHUB_STEP_SUMMARY=str(path)).run("suites")
    return result, path.read_text() if path.exists() else ""


@pytest.mark.parametrize("before", [None, "", "# Built\n"])
def test_the_page_of_a_github_job_is_added_to(ready: Project, before: str | None) -> None:
    result, text = summary_of(ready, before)
    assert text == f"{before or ''}\n{told(result)['report.md']}"
    assert result.section[-1].startswith("report: ")


def test_no_more_is_added_than_github_takes(ready: Project) -> None:
    result, text = summary_of(ready, "x" * (MAX_BYTES - 900))
    assert len(text.encode()) <= MAX_BYTES
    assert "**Cut:**" in text
    result, text = summary_of(ready, "x" * (MAX_BYTES - 100))
    assert text == "x" * (MAX_BYTES - 100)
    assert result.section[-1] == (
        "`GITHUB_STEP_SUMMARY` is full: the step has written as much as GitHub shows"
    )


def test_a_page_that_cannot_be_written_fails_nothing(ready: Project) -> None:
    result = ready.env(GITHUB_STEP_SUMMARY=str(Path("nowhere") / "x")).run("suites")
    assert result.exit_code == 0
    assert result.section[-1] == (
        "`GITHUB_STEP_SUMMARY` cannot be written: No such file or directory"
    )


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_folder_that_cannot_be_is_one_error_before_an_engine_starts(
    project: Project, num_workers: int
) -> None:
    project.workload("code", EXACT).file("taken", "")
    workers = ("-p", "xdist.plugin", f"-n{num_workers}") if num_workers else ()
    result = project.run("suites", "--specdec-report=taken", *workers)
    assert (result.exit_code, result.outcomes) == (4, {})
    assert "INTERNALERROR" not in result.text
    assert result.errors[:2] == [
        f"ERROR: no reports can be written to `{project.folder / 'taken'}`: Not a directory",
        "hint: name another folder with `--specdec-report DIR`",
    ]
    assert not [each for each in result.commands if each["op"] == "load"]


def test_a_folder_that_can_no_longer_be_written_fails_the_session(project: Project) -> None:
    """Verdicts and stored numbers are told all the same."""
    project.workload("code", EXACT)
    project.file(
        "suites/test_full.py",
        "import os\ndef test_full(engine_pair): os.makedirs('report/report.html')\n",
    )
    result = project.run("suites", "--specdec-report=report", "--update-baselines")
    assert result.not_passed == {}
    assert result.exit_code == 1
    assert "INTERNALERROR" not in result.text
    folder = project.folder / "report"
    assert f"no reports can be written to `{folder}`: Is a directory" in result.section
    assert any(line.startswith("stored baselines written: ") for line in result.section)
    assert not any(line.startswith("report: ") for line in result.section)
