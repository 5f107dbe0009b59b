"""The exit statuses that a CI job goes by, as the README has them."""

from __future__ import annotations

import pytest

from tests.fake_engine.project import Project

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}


@pytest.fixture
def job(project: Project) -> Project:
    """What a job of a CI has: stored baselines, and `CI`."""
    return project.workload("code", EXACT).record().env(CI="true")


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        pytest.param({}, 0, id="all passed"),
        pytest.param({"accepted": 2}, 1, id="a verdict failed"),
        pytest.param({"speculative": {"diverge": {"prompt": "abc", "at": 3}}}, 1, id="a finding"),
        pytest.param({"on": {"load": "exit"}}, 1, id="an engine failed"),
    ],
)
def test_what_the_engines_did(job: Project, settings: dict[str, object], status: int) -> None:
    assert job.fake(**settings).run("suites").exit_code == status


@pytest.mark.parametrize(
    ("file", "text", "status"),
    [
        pytest.param("suites/broken.jsonl", "{", 2, id="a workload cannot be read"),
        pytest.param("specdec.toml", "[profiles.fast]\n", 4, id="no profile can be read"),
        pytest.param("fake-python", "#!/bin/sh\nexit 1\n", 4, id="no vLLM"),
    ],
)
def test_what_cannot_be_run(job: Project, file: str, text: str, status: int) -> None:
    assert job.file(file, text).run("suites").exit_code == status


def test_nothing_stored_fails_a_job(project: Project) -> None:
    project.workload("code", EXACT)
    assert project.run("suites").exit_code == 0
    assert project.env(CI="true").run("suites").exit_code == 1
