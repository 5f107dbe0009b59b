"""The worker as a process of the system: its environment, its log, its end. Floor 1.

`process` talks to it and says what became of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from pytest_specdec.engines.pipe import Pipe
from pytest_specdec.errors import EngineStartError, EngineUnavailable
from pytest_specdec.profile import Device

WORKER = Path(__file__).with_name("worker.py")
LOG_TAIL_LINES = 15
LOG_TAIL_BYTES = 1 << 16
# A killed process that the kernel cannot end, as with a hung driver, must not hang pytest too.
KILL_GRACE_S = 30.0

COMMON_ENV = {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "INFO", "PYTHONUNBUFFERED": "1"}
DEVICE_ENV: Mapping[Device, Mapping[str, str]] = {
    "cpu": {
        # One process an engine, so that its end is the engine's end and its log has the cause.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        # vLLM would bind both engines to the same cores and keep one core for itself.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        # Idle threads of the waiting engine must sleep, not spin on the working one's cores.
        "KMP_BLOCKTIME": "1",
        "KMP_TPAUSE": "0",
    },
    # NVML counts GPUs by their place on the bus; CUDA's own default is by their speed.
    "gpu": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
}


class WorkerProcess:
    """One worker, started at once, in a process group of its own.

    Args:
        name: the engine's, for messages.
        python: the interpreter.
        naming: how a person names another one, for hints.
        log_path: where its output goes; overwritten.
        env: its environment.

    Raises:
        EngineUnavailable: the interpreter cannot be started.
        EngineStartError: the log cannot be written.
    """

    def __init__(
        self, name: str, *, python: Path, naming: str, log_path: Path, env: Mapping[str, str]
    ) -> None:
        self._log_path = log_path
        log = _open_log(name, log_path)
        commands_read, commands_write = os.pipe()
        replies_read, replies_write = os.pipe()
        try:
            self._process = subprocess.Popen(
                [str(python), str(WORKER), str(commands_read), str(replies_write)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=log_path.parent,
                pass_fds=(commands_read, replies_write),
                # A group of its own: Ctrl-C reaches pytest alone, and all that the engine
                # starts can be ended with it.
                start_new_session=True,
            )
        except OSError as error:
            os.close(commands_write)
            os.close(replies_read)
            raise EngineUnavailable(
                f"the interpreter cannot be started: {python}\n{error}",
                hint=f"give one that has vLLM {naming}",
            ) from error
        finally:
            os.close(commands_read)
            os.close(replies_write)
            log.close()
        os.set_blocking(commands_write, False)
        self.pipe = Pipe(read_fd=replies_read, write_fd=commands_write)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Known once it was killed."""
        return self._process.returncode

    def has_ended(self, timeout_s: float = 0.0) -> bool:
        """Whether the worker has ended by itself within that time.

        Only `kill` reaps it: until then its id, which is its group's too, cannot become that of
        a process of somebody else.
        """
        deadline = time.monotonic() + timeout_s
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while self._process.returncode is None:
            with contextlib.suppress(ChildProcessError):
                if os.waitid(os.P_PID, self.pid, flags) is None:
                    if time.monotonic() >= deadline:
                        return False
                    time.sleep(0.01)
                    continue
            break
        return True

    def kill(self) -> None:
        """Ends the process group, stragglers included, and closes the pipe; once."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_GRACE_S)
        self.pipe.close()

    def log(self) -> str:
        """The log's tail and place, for messages."""
        try:
            with self._log_path.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(0, size - LOG_TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            lines = []
        tail = "\n".join(f"    {line}" for line in lines[-LOG_TAIL_LINES:])
        return f"log: {self._log_path}\n{tail}".rstrip()


def worker_environment(device: Device, of_the_profile: Mapping[str, str]) -> dict[str, str]:
    """What the caller has set wins over our defaults, and the profile over both."""
    return {
        **COMMON_ENV,
        **DEVICE_ENV[device],
        **os.environ,
        "SPECDEC_DEVICE": device,
        **of_the_profile,
    }


def ending(returncode: int | None) -> str:
    """How a process ended, in words."""
    if returncode is None:
        return "its pipe closed"
    if returncode < 0:
        known = {each.value: each.name for each in signal.Signals}
        name = known.get(-returncode, f"signal {-returncode}")
        likely = "; the system may be out of memory" if name == "SIGKILL" else ""
        return f"killed by {name}{likely}"
    return f"exit status {returncode}"


def _open_log(name: str, path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")
    except OSError as error:
        raise EngineStartError(
            f"the log of the {name} cannot be written: {path}\n{error}",
            hint="name another folder with `--specdec-report DIR`",
        ) from error
