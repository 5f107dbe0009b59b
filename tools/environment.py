"""What `tools/setup.py` is made of: running a command with progress, venvs, pip and its errors.

Standard library only; must parse under Pythons too old to run it. It knows nothing of what is
installed: which packages, which model, which folder is `setup.py`'s business.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

LOG = "specdec-setup.log"
REPORT_EVERY_S = 5
UNREACHABLE = re.compile(
    r"NewConnectionError|ConnectTimeout|ProxyError|NameResolutionError|Read timed out|"
    r"Connection refused|Retrying \(Retry\("
)


class SetupError(Exception):
    """The environment cannot be made; `str` of it is the whole message, hint included."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(f"{message}\nhint: {hint}")


class PackageMissing(SetupError):
    """No index that pip asks has the package."""


class CommandFailed(Exception):
    """A command ended badly; `output` is what it said."""

    def __init__(self, output: str) -> None:
        super().__init__(output)
        self.output = output


def say(line: str) -> None:
    """Shows what is being done."""
    print(f"setup: {line}", flush=True)


def run(command: list[str], *, log: Path, cwd: Path) -> None:
    """Runs `command` into `log` and shows the log's last line every few seconds.

    Raises:
        CommandFailed: with the command's part of the log.
    """
    began = time.monotonic()
    with log.open("ab") as output:
        start = output.tell()
        process = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            while True:
                try:
                    status = process.wait(timeout=REPORT_EVERY_S)
                    break
                except subprocess.TimeoutExpired:
                    line = _in_short(_said(log, start))
                    say(f"{time.monotonic() - began:4.0f} s  {line}")
        except BaseException:  # interrupted: leave no process behind
            process.terminate()
            process.wait()
            raise
    if status != 0:
        raise CommandFailed(_said(log, start))


def _said(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(start)
        return file.read().decode(errors="replace")


def _in_short(output: str) -> str:
    """The last line of pip's output, without addresses and lists of names."""
    lines = (line.strip() for line in reversed(output.split("\n")))
    last = next((line for line in lines if line and not line.startswith("WARNING:")), "working")
    if last.startswith("Installing collected packages:"):
        num_packages = last.count(",") + 1
        return "unpacking " + ("it" if num_packages == 1 else f"{num_packages} packages")
    last = re.sub(r"\S+/([^/\s#]+)\S*", r"\1", last)
    return last if len(last) <= 80 else last[:77] + "..."


def python_of(venv: Path) -> Path:
    """The interpreter of `venv`."""
    return venv / "bin" / "python"


def site_packages(venv: Path) -> Path:
    """Where `venv` keeps its packages."""
    found = sorted((venv / "lib").glob("python3.*/site-packages"))
    if len(found) != 1:
        raise SetupError(f"`{venv.name}` is no virtual environment", hint=f"rm -r {venv.name}")
    return found[0]


def make_venv(venv: Path, *, with_pip: bool) -> None:
    """Makes `venv`, unless it is there and whole; one cut short or moved is made anew."""
    if venv.exists() and not (venv / "pyvenv.cfg").is_file() and any(venv.iterdir()):
        raise SetupError(
            f"`{venv.name}` is there and is no virtual environment", hint="move it out of the way"
        )
    if is_whole(venv, with_pip=with_pip):
        return
    say(f"making {venv.name} with Python {sys.version.split()[0]}")
    shutil.rmtree(venv, ignore_errors=True)
    options = [] if with_pip else ["--without-pip"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "venv", *options, str(venv)],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise SetupError(f"`venv` cannot run: {error}", hint="use another python3") from None
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip().split("\n")[-1]
        raise SetupError(
            f"`{venv.name}` cannot be made: {said}",
            hint="python3 -m venv must work; on Debian and Ubuntu: apt install python3-venv",
        )


def is_whole(venv: Path, *, with_pip: bool) -> bool:
    """Whether the interpreter starts and knows itself to be here, and pip is there if wanted."""
    question = "import sys; print(sys.prefix)" + ("; import pip" if with_pip else "")
    try:
        done = subprocess.run(
            [str(python_of(venv)), "-c", question], capture_output=True, text=True, check=False
        )
    except OSError:
        return False
    if done.returncode != 0 or done.stdout.strip() != str(venv):
        return False
    return not with_pip or str(venv) in (venv / "bin" / "pip").read_text(encoding="utf-8")


def discard_half_installed(site: Path) -> None:
    """Forgets packages whose installation was cut short, so that pip installs them again.

    pip writes `RECORD` last and takes any `.dist-info` folder for an installed package.
    """
    for info in site.glob("*.dist-info"):
        if not (info / "RECORD").is_file():
            say(f"{info.name[: -len('.dist-info')]} was cut short: again")
            shutil.rmtree(info)
    for stashed in site.glob("~*"):  # what pip put aside and did not come to delete
        shutil.rmtree(stashed, ignore_errors=True)


def not_installed(requirements: Iterable[str], site: Path) -> list[str]:
    """Those of the `name==version` requirements that `site` does not have."""
    present = {
        f"{_canonical(found.metadata['Name'])}=={found.version}"
        for found in importlib.metadata.distributions(path=[str(site)])
    }
    pairs = (requirement.partition("==") for requirement in requirements)
    return [
        f"{name}=={version}"
        for name, _, version in pairs
        if f"{_canonical(name)}=={version}" not in present
    ]


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pip_install(
    arguments: list[str], *, pip: Path, into: Path, root: Path, options: Iterable[str] = ()
) -> None:
    """`pip install` with the pip of the venv `pip` into the venv `into`.

    Raises:
        SetupError: in one message, whatever pip said; `PackageMissing` if no index has it.
    """
    log = into / LOG
    command = [str(python_of(pip)), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    command += ["--no-color", "--python", str(python_of(into)), "install", "--no-deps"]
    command += [
        "--no-warn-script-location",
        "--no-compile",
        "--progress-bar",
        "off",
        *options,
        *arguments,
    ]
    try:
        run(command, log=log, cwd=root)
    except CommandFailed as failed:
        raise explained(failed.output, log=log.relative_to(root)) from None


def compile_all(venv: Path, *, root: Path) -> None:
    """Byte-compiles on every core, which pip does on one, and only what is new.

    Left to the first import, old escape sequences in others' code would warn in users' tests.
    """
    command = [str(python_of(venv)), "-m", "compileall", "-qq", "-j", "0", str(site_packages(venv))]
    with contextlib.suppress(CommandFailed):  # some carry files not meant for this Python
        run(command, log=venv / LOG, cwd=root)


def explained(output: str, *, log: Path) -> SetupError:
    """pip's many lines as one error: the fact, then what to do."""
    missing = re.search(r"No matching distribution found for (\S+)", output)
    if "No space left on device" in output:
        return SetupError("the disk is full", hint="free some space and run it again")
    if UNREACHABLE.search(output):
        return SetupError(
            "the package index cannot be reached",
            hint=f"check the network and `pip config list`, then run it again; the log is {log}",
        )
    if missing:
        return PackageMissing(
            f"no package index has `{missing[1]}` for Python {sys.version.split()[0]}",
            hint=f"Python 3.11 has every package; pip's own words are in {log}",
        )
    errors = re.findall(r"^ERROR: (.*)$", output, flags=re.MULTILINE)
    fact = errors[-1] if errors else _in_short(output)
    return SetupError(f"pip failed: {fact}", hint=f"run it again; the log is {log}")
