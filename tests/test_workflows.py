"""GitHub's workflows keep to its schema, to what zizmor audits, and to rules of our own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.docs.test_reference import first_cells
from tests.workflow_files import FILES, JOBS, ROOT, Job, refused_by_schema

PINNED = re.compile(r"[\w/-]+@(v\d+|[0-9a-f]{40})")
CONFIG = ROOT / ".github/zizmor.yml"
SELF_HOSTED = [job for job in JOBS if "self-hosted" in job.job["runs-on"]]
GUIDE = (ROOT / "docs/guides/ci.md").read_text(encoding="utf-8")
OF_THIS_REPOSITORY = "github.event.pull_request.head.repo.full_name == github.repository"


def audited(*paths: Path) -> set[str]:
    """The audits of zizmor that find something; none of them needs a network."""
    here = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    zizmor = shutil.which("zizmor", path=here)
    assert zizmor, "`zizmor` is not installed\nhint: make setup"
    quiet = ["--offline", "--no-progress", "--quiet", "--no-exit-codes", "--format=json"]
    judged_by = ["--persona=pedantic", "--strict-collection", f"--config={CONFIG}"]
    result = subprocess.run(
        [zizmor, *quiet, *judged_by, *paths], capture_output=True, text=True, check=True
    )
    return {finding["ident"] for finding in json.loads(result.stdout)}


def spoilt(name: str, old: str, new: str, folder: Path) -> Path:
    """A copy of a workflow with a fault in it."""
    text = (ROOT / ".github/workflows" / name).read_text(encoding="utf-8")
    assert old in text
    path = folder / ".github/workflows" / name
    path.parent.mkdir(parents=True)
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_they_keep_to_githubs_schema() -> None:
    assert refused_by_schema(*FILES) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("timeout-minutes:", "timeout-minute:"),
        ("queue: max", "queue: all"),
        ("runs-on:", "runs_on:"),
        ("  pull_request:", "  pull_requests:"),
        ("contents: read", "contents: reed"),
    ],
)
def test_the_schema_sees_a_slip(old: str, new: str, tmp_path: Path) -> None:
    assert "Schema validation errors" in refused_by_schema(
        spoilt("gpu-gate.yml", old, new, tmp_path)
    )


def test_no_audit_finds_anything() -> None:
    assert audited(*FILES) == set()


@pytest.mark.parametrize(
    ("old", "new", "audit"),
    [
        ("make lint", "echo ${{ github.event.pull_request.title }}", "template-injection"),
        ("make lint", "echo ${{ github.head_ref }}", "template-injection"),
        ("permissions:\n  contents: read\n", "", "excessive-permissions"),
        ("contents: read", "contents: write", "excessive-permissions"),
        ("actions/cache@v5", "someone/cache@v5", "unpinned-uses"),
        (
            "concurrency:\n  group: ci-${{ github.ref }}\n  cancel-in-progress: true\n",
            "",
            "concurrency-limits",
        ),
        ("  pull_request:", "  pull_request_target:", "dangerous-triggers"),
    ],
)
def test_the_audits_see_a_danger(old: str, new: str, audit: str, tmp_path: Path) -> None:
    assert audit in audited(spoilt("ci.yml", old, new, tmp_path))


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_actions_are_named_by_major_version_or_commit(job: Job) -> None:
    # zizmor lets `@main` pass for those of GitHub.
    used = [step["uses"] for step in job.job["steps"] if "uses" in step]
    assert used
    assert [each for each in used if not PINNED.fullmatch(each)] == []


@pytest.mark.parametrize("name", ["actions/cache@main", "actions/cache", "actions/cache@5a3ec84"])
def test_other_names_are_seen(name: str) -> None:
    assert not PINNED.fullmatch(name)


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_a_checkout_leaves_no_token_to_what_runs_after_it(job: Job) -> None:
    checkouts = job.uses("actions/checkout")
    assert checkouts
    assert all(each["with"]["persist-credentials"] is False for each in checkouts)


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_a_job_ends_and_leaves_time_to_keep_its_report(job: Job) -> None:
    limits = [step.get("timeout-minutes", 0) for step in job.job["steps"]]
    assert sum(limits) < job.job["timeout-minutes"]


@pytest.mark.parametrize("job", SELF_HOSTED, ids=str)
def test_no_strangers_code_runs_on_a_machine_of_ours(job: Job) -> None:
    if "pull_request" in job.flow["on"]:
        assert OF_THIS_REPOSITORY in job.job["if"]


def test_one_job_a_gpu_and_none_is_cancelled_by_a_later_one() -> None:
    wanted = {"group": "gpu-gate", "queue": "max", "cancel-in-progress": False}
    assert [job for job in SELF_HOSTED if job.flow["concurrency"] != wanted] == []


def test_the_guide_has_every_workflow_that_needs_a_runner_of_ours() -> None:
    assert set(first_cells(GUIDE, "workflow")) == {job.file for job in SELF_HOSTED}


@pytest.mark.parametrize("job", SELF_HOSTED, ids=str)
def test_the_guide_has_a_workflows_labels_and_what_starts_it(job: Job) -> None:
    (row,) = [line for line in GUIDE.splitlines() if line.startswith(f"| `{job.file}` |")]
    _, starts, labels, *_ = row.strip("| ").split(" | ")
    assert re.findall(r"`([^`]+)`", labels) == job.job["runs-on"]
    assert re.findall(r"`([^`]+)`", starts) == [*job.flow["on"]]
