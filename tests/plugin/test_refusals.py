"""Bad input: one message that names the place and the way out, and no engine started in vain."""

from __future__ import annotations

import pytest

from tests.fake_engine.project import FAST, Project


@pytest.fixture
def ready(project: Project) -> Project:
    return project.workload("code", "one")


@pytest.mark.parametrize("arguments", [(), ("--specdec-profile=fast",), ("--update-baselines",)])
class TestSettings:
    """The same error whether an option or a suite's presence asks for the gate."""

    def test_an_unknown_key(self, ready: Project, arguments: tuple[str, ...]) -> None:
        result = ready.profile(speculative_confg={}).run("suites", *arguments)
        assert result.exit_code == 4
        assert result.errors[:2] == [
            "ERROR: `specdec.toml`: `profiles.fast.speculative_confg` is not a known key",
            "hint: did you mean `speculative_config`?",
        ]
        assert result.commands == []
        assert "collected" not in result.text or "Error" not in result.text

    def test_no_file(self, ready: Project, arguments: tuple[str, ...]) -> None:
        (ready.folder / "specdec.toml").unlink()
        result = ready.run("suites", *arguments)
        assert result.exit_code == 4
        assert result.errors[:2] == [
            f"ERROR: no `specdec.toml` in: {ready.folder}",
            "hint: create it with a `[profiles.NAME]` table; the README shows one",
        ]

    def test_no_model_folder(self, ready: Project, arguments: tuple[str, ...]) -> None:
        result = ready.profile(model="./absent", setup="make model").run("suites", *arguments)
        assert result.exit_code == 4
        assert result.errors[:2] == [
            f"ERROR: profile `fast`: no model folder: {ready.folder / 'absent'}",
            "hint: make it with: make model",
        ]
        assert result.commands == []


def test_several_files_are_one_error(project: Project) -> None:
    project.workload("code", "one").workload("story", "one").workload("third", "one")
    (project.folder / "specdec.toml").unlink()
    result = project.run("suites")
    assert result.text.count("no `specdec.toml`") == 1


@pytest.mark.parametrize("option", ["--specdec-gpu", "--specdec-profile=fast"])
def test_an_option_needs_the_file_even_without_a_suite(project: Project, option: str) -> None:
    (project.folder / "specdec.toml").unlink()
    project.file("test_plain.py", "def test_plain(): pass\n")
    result = project.run(option)
    assert (result.exit_code, result.outcomes) == (4, {})


def test_an_unknown_profile(ready: Project) -> None:
    result = ready.run("suites", "--specdec-profile=fsat")
    assert result.exit_code == 4
    assert result.errors[:2] == [
        "ERROR: no profile `fsat` in `specdec.toml`",
        "hint: did you mean `fast`?",
    ]


def test_a_gpu_profile_without_a_gpu(ready: Project) -> None:
    ready.profiles(fast=FAST, big={**FAST, "device": "gpu"}).env(CUDA_VISIBLE_DEVICES="")
    for arguments in (("--specdec-gpu",), ("--specdec-profile=big",)):
        result = ready.run("suites", *arguments)
        assert result.exit_code == 4
        assert "GPU" in result.errors[0]
        assert result.outcomes == {}
        assert result.commands == []


def test_no_gpu_profile(ready: Project) -> None:
    result = ready.run("suites", "--specdec-gpu")
    assert result.exit_code == 4
    assert result.errors[:2] == [
        "ERROR: `specdec.toml` has no profile for device: gpu",
        'hint: add a `[profiles.NAME]` table with `device = "gpu"`',
    ]


def test_options_that_contradict_each_other(ready: Project) -> None:
    result = ready.run("suites", "--specdec-gpu", "--specdec-profile=fast")
    assert result.exit_code == 4
    assert result.errors[:2] == [
        "ERROR: `--specdec-gpu` and `--specdec-profile fast` contradict each other",
        "hint: the profile is for device: cpu",
    ]


def test_a_broken_workload_is_an_error_of_its_file_alone(ready: Project) -> None:
    ready.record()
    before = ready.baselines_file().read_bytes()
    ready.workload("broken", {"id": "j", "expect": {"json_schema": {"type": "objekt"}}})
    result = ready.run("suites")
    assert result.exit_code == 2
    assert (
        f"{ready.folder / 'suites/broken.jsonl'}:2: `expect.json_schema`: broken JSON Schema"
        in (result.text)
    )
    assert "Traceback" not in result.text
    assert "1 error" in result.text
    assert result.commands == []
    assert ready.baselines_file().read_bytes() == before


def test_a_broken_workload_can_be_gone_past(ready: Project) -> None:
    ready.record().file("suites/broken.jsonl", "{}\n")
    result = ready.run("suites", "--continue-on-collection-errors")
    assert (result.exit_code, result.counts) == (1, {"passed": 6})


def test_two_workloads_of_one_name(ready: Project) -> None:
    ready.workload("code", "other", folder="suites/deeper")
    result = ready.run("suites")
    assert result.exit_code == 2
    assert "two workloads are named `code`: " in result.text
    assert "hint: rename one; the name is its key in stored baselines" in result.text
    assert "Traceback" not in result.text


def test_two_workloads_of_one_name_in_a_python_test(ready: Project) -> None:
    ready.workload("code", "other", folder="suites/deeper").workload("story", "one").file(
        "suites/test_own.py",
        "import pytest\n@pytest.mark.specdec('deeper/code.jsonl')\ndef test_own(runs): pass\n",
    )
    result = ready.run("suites/code.jsonl", "suites/test_own.py")
    assert result.exit_code == 4
    assert "two workloads are named `code`: " in result.errors[0]
    assert result.commands == []


def test_a_profile_asked_for_twice_runs_once(ready: Project) -> None:
    result = ready.run("suites", "--specdec-profile=fast", "--specdec-profile=fast")
    assert len(result.outcomes) == 6
