"""`--specdec-inconclusive`: what a verdict that could not be reached does to its test."""

from __future__ import annotations

import pytest

from tests.fake_engine.project import Project, metrics

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
NOISE = [1.0, 0.6, 1.6, 0.7, 1.5]
SPEEDUP = "code.jsonl::fast::speedup"
# A session within ours has our filter, by which warnings are errors.
PLAIN = ("-W", "default")


@pytest.fixture
def noisy(project: Project) -> Project:
    """Stored baselines, and now timings that scatter."""
    project.workload("code", EXACT).record()
    return project.fake(speculative={"wall_factors": NOISE})


def chosen(project: Project, by: str, word: str) -> tuple[str, ...]:
    """Arguments that choose it, by an option or by the ini file."""
    if by == "ini":
        path = project.folder / "pytest.ini"
        path.write_text(path.read_text() + f"specdec_inconclusive = {word}\n")
        return ()
    return (f"--specdec-inconclusive={word}",)


@pytest.mark.parametrize("by", ["option", "ini"])
@pytest.mark.parametrize("gate", [(), ("--specdec-profile=fast",)])
class TestChosen:
    def test_fail(self, noisy: Project, by: str, gate: tuple[str, ...]) -> None:
        result = noisy.run("suites", *gate, *chosen(noisy, by, "fail"))
        assert (result.exit_code, result.not_passed) == (1, {SPEEDUP: "failed"})
        assert result.message("speedup").startswith("inconclusive: speedup of `code`\nnow: ")
        assert "InconclusiveWarning" not in result.text

    def test_warn(self, noisy: Project, by: str, gate: tuple[str, ...]) -> None:
        result = noisy.run("suites", "-q", *PLAIN, *gate, *chosen(noisy, by, "warn"))
        assert (result.exit_code, result.not_passed) == (0, {SPEEDUP: "skipped"})
        reason = result.message("speedup")
        assert reason.startswith("Skipped: inconclusive: speedup of `code`; ")
        assert "pairs of passes would decide: set `num_blocks = " in reason
        assert "1 skipped, 1 warning in " in result.text
        at = result.lines.index(f"suites/{SPEEDUP}")
        file = noisy.folder / "suites/code.jsonl"
        title = f"  {file}:0: InconclusiveWarning: inconclusive: speedup of `code`"
        assert result.lines[at + 1] == title
        assert [line.split(":")[0].strip() for line in result.lines[at + 2 : at + 6]] == [
            "now",
            "interval",
            "stored",
            "floor",
        ]


def test_the_warning_of_a_process(noisy: Project) -> None:
    result = noisy.run_subprocess("suites", "-q", "--specdec-inconclusive=warn")
    assert result.exit_code == 0
    assert ":0: InconclusiveWarning: inconclusive: speedup of `code`" in result.text


@pytest.mark.parametrize("word", ["fail", "warn"])
@pytest.mark.parametrize(("environment", "outcome"), [({}, "skipped"), ({"CI": "1"}, "failed")])
def test_other_undecided_verdicts_are_not_touched(
    project: Project, word: str, environment: dict[str, str], outcome: str
) -> None:
    project.workload("code", EXACT).env(**environment)
    arguments = ("suites", f"--specdec-inconclusive={word}")
    assert project.run(*arguments).not_passed == metrics("code", outcome)
    project.run("suites", "--update-baselines", "--update-baselines-in-ci")
    project.workload("code", EXACT, "two")
    incomparable = project.run(*arguments)
    assert incomparable.not_passed == metrics("code", outcome)
    assert "incomparable: " in incomparable.message("speedup")
    assert "InconclusiveWarning" not in incomparable.text


def test_the_option_goes_before_the_ini_file(noisy: Project) -> None:
    chosen(noisy, "ini", "fail")
    result = noisy.run("suites", "--specdec-inconclusive=warn", *PLAIN)
    assert result.not_passed == {SPEEDUP: "skipped"}


@pytest.mark.parametrize(
    "category", ["pytest_specdec.errors.InconclusiveWarning", "UserWarning", ""]
)
def test_a_warning_made_an_error_fails_with_the_verdict(noisy: Project, category: str) -> None:
    filtered = f"error::{category}" if category else "error"
    result = noisy.run("suites", "--specdec-inconclusive=warn", "-W", filtered)
    assert (result.exit_code, result.not_passed) == (1, {SPEEDUP: "failed"})
    lines = result.message("speedup").splitlines()
    assert lines[0] == "inconclusive: speedup of `code`"
    assert lines[-1].startswith("hint: ")
    assert "Traceback" not in result.text


def test_an_unknown_word_of_the_option_is_told(noisy: Project) -> None:
    result = noisy.run("suites", "--specdec-inconclusive=ignore")
    assert result.exit_code == 4
    message = "error: argument --specdec-inconclusive: `ignore` is neither `fail` nor `warn`"
    assert sum(message in line for line in result.errors) == 1
    assert result.commands == []


def test_an_unknown_word_of_the_ini_file_is_told(noisy: Project) -> None:
    result = noisy.run("suites", *chosen(noisy, "ini", "ignore"))
    assert result.exit_code == 4
    assert result.errors[0] == (
        "ERROR: ini setting `specdec_inconclusive`: `ignore` is neither `fail` nor `warn`"
    )
    assert "Traceback" not in result.text
    assert result.commands == []
