"""Under pytest-xdist: engines are not shared between workers, so nothing of ours runs."""

from __future__ import annotations

import pytest

from tests.fake_engine.project import Project, metrics, wide

pytest.importorskip("xdist")

MESSAGE = (
    "engines cannot be shared between the workers of pytest-xdist yet\n"
    "hint: run the suites without `-n`"
)


@pytest.mark.parametrize("arguments", [(), ("--specdec-profile=fast", "--update-baselines")])
def test_every_item_is_an_error_and_no_engine_starts(
    project: Project, arguments: tuple[str, ...]
) -> None:
    project.workload("code", "one").file(
        "suites/test_own.py", "def test_own(engine_pair): pass\ndef test_plain(): pass\n"
    )
    result = project.run("suites", "-p", "xdist.plugin", "-n", "2", *arguments)
    assert result.exit_code == 1
    assert result.outcomes == {
        "test_own.py::test_plain": "passed",
        "test_own.py::test_own[fast]": "error",
        "code.jsonl::fast::identical[one]": "error",
        **dict.fromkeys(wide("code"), "error"),
        **metrics("code", "error"),
    }
    for message in result.messages.values():
        assert message.endswith(MESSAGE)
        assert "Error" not in message
    assert result.commands == []
    assert not (project.folder / "baselines").exists()


def test_a_gate_that_cannot_be_had_is_no_internal_error(project: Project) -> None:
    project.workload("code", "one").file("specdec.toml", "[profiles.fast]\n")
    result = project.run("suites", "-p", "xdist.plugin", "-n", "2")
    assert result.exit_code != 0
    assert "`specdec.toml`: " in result.text
    assert "INTERNALERROR" not in result.text


def test_without_workers_all_runs(project: Project) -> None:
    result = project.workload("code", "one").run("suites", "-p", "xdist.plugin", "-n", "0")
    assert result.counts == {"passed": 4, "skipped": 2}
