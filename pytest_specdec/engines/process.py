"""An engine in a process of its own: starts the worker under a chosen interpreter, talks to it,
watches the clock, ends it, and explains what went wrong. Floor 1.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_specdec.engines.pipe import Pipe, PipeClosed, PipeSilent
from pytest_specdec.engines.protocol import EngineFacts, Progress
from pytest_specdec.errors import (
    ConfigError,
    EngineDied,
    EngineError,
    EngineStartError,
    EngineTimeout,
    EngineUnavailable,
    SpecdecError,
)
from pytest_specdec.generation import Pass, Role, TokenScore
from pytest_specdec.profile import Device, Profile
from pytest_specdec.workload import Prompt

WORKER = Path(__file__).with_name("worker.py")
LOG_TAIL_LINES = 15
CLOSE_GRACE_S = 10.0

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


class ProcessEngine:
    """One engine of a profile's pair.

    The process is started at once, so that two engines import vLLM side by side; `load` waits
    for it. It must be created on a thread that lives as long as the engine: on Linux the worker
    ends with the thread that started it.

    Args:
        profile: the pair's profile.
        role: which of the two this is.
        python: the interpreter that has vLLM.
        log_path: where the engine's own output goes; overwritten.
    """

    def __init__(self, profile: Profile, role: Role, *, python: Path, log_path: Path) -> None:
        self.role: Role = role
        self.log_path = log_path
        self._profile = profile
        self._python = python
        self._facts: EngineFacts | None = None
        self._versions: Mapping[str, str | None] | None = None
        self._doing = "importing vLLM"
        self._process, self._pipe = self._spawn()
        self._send("hello", profile.timeouts.import_s)

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid

    @property
    def facts(self) -> EngineFacts:
        """Known once `load` has returned."""
        if self._facts is None:
            raise EngineStartError(f"the {self} is not loaded")
        return self._facts

    def __str__(self) -> str:
        return f"{self.role} engine of profile `{self._profile.name}`"

    def versions(self) -> Mapping[str, str | None]:
        """Waits until the worker has imported vLLM.

        Raises:
            EngineUnavailable: if it cannot.
        """
        if self._versions is None:
            self._versions = self._reply(self._profile.timeouts.import_s)
        return self._versions

    def folder(self, model: str) -> Path:
        """The local folder of a model's configuration and tokenizer, fetched if need be."""
        self.versions()
        return Path(
            self._call(
                "folder", f"looking up `{model}`", self._profile.timeouts.load_s, model=model
            )
        )

    def check_names(self, engine_args: Mapping[str, Any]) -> None:
        """Refuses arguments whose names this vLLM does not know; loads nothing.

        Raises:
            ConfigError: naming the key, with a suggestion.
        """
        self.versions()
        self._call(
            "check_names", "checking", self._profile.timeouts.load_s, engine_args=dict(engine_args)
        )

    def load(self) -> EngineFacts:
        """Loads the model.

        Raises:
            EngineUnavailable: vLLM cannot be imported.
            EngineStartError: the engine did not load.
        """
        versions = self.versions()
        reply = self._call(
            "load",
            "loading",
            self._profile.timeouts.load_s,
            engine_args=self._profile.engine_arguments(self.role),
        )
        self._facts = EngineFacts(versions=versions, load_s=reply["load_s"], config=reply["config"])
        return self._facts

    def generate(
        self, prompts: Sequence[Prompt], *, concurrency: int, progress: Progress | None = None
    ) -> Pass:
        reply = self._call(
            "generate",
            "generating",
            self._profile.timeouts.silence_s,
            progress,
            requests=[prompt.request for prompt in prompts],
            concurrency=concurrency,
        )
        return Pass.from_json(
            {
                **reply,
                "generations": [
                    {**answer, "prompt_id": prompt.id}
                    for prompt, answer in zip(prompts, reply["generations"], strict=True)
                ],
            }
        )

    def score(
        self, prompt_token_ids: Sequence[int], token_ids: Sequence[int]
    ) -> tuple[TokenScore, ...]:
        reply = self._call(
            "score",
            "scoring",
            self._profile.timeouts.silence_s,
            prompt_token_ids=list(prompt_token_ids),
            token_ids=list(token_ids),
        )
        return tuple(TokenScore(**each) for each in reply)

    def close(self) -> None:
        """Asks the worker to end, then ends its whole process group."""
        if self._process.poll() is None:
            with contextlib.suppress(PipeClosed, PipeSilent):
                self._pipe.send({"op": "shutdown"}, silence_s=1)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(CLOSE_GRACE_S if self._doing == "idle" else 0.1)
        self._kill()

    def _spawn(self) -> tuple[subprocess.Popen[bytes], Pipe]:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        commands_read, commands_write = os.pipe()
        replies_read, replies_write = os.pipe()
        try:
            with self.log_path.open("wb") as log:
                process = subprocess.Popen(
                    [str(self._python), str(WORKER), str(commands_read), str(replies_write)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=self._environment(),
                    cwd=self.log_path.parent,
                    pass_fds=(commands_read, replies_write),
                    # A group of its own: Ctrl-C reaches pytest alone, and all that the engine
                    # starts can be ended with it.
                    start_new_session=True,
                )
        except OSError as error:
            os.close(commands_write)
            os.close(replies_read)
            raise EngineUnavailable(
                f"the interpreter cannot be started: {self._python}\n{error}",
                hint="give one that has vLLM with `--specdec-python PATH`",
            ) from error
        finally:
            os.close(commands_read)
            os.close(replies_write)
        os.set_blocking(commands_write, False)
        return process, Pipe(read_fd=replies_read, write_fd=commands_write)

    def _environment(self) -> dict[str, str]:
        device = self._profile.device
        # What the caller has set wins over our defaults, and the profile over both.
        return {
            **COMMON_ENV,
            **DEVICE_ENV[device],
            **os.environ,
            "SPECDEC_DEVICE": device,
            **self._profile.env,
        }

    def _call(
        self,
        operation: str,
        doing: str,
        silence_s: float,
        progress: Progress | None = None,
        /,
        **arguments: Any,
    ) -> Any:
        self._doing = doing
        self._send(operation, silence_s, **arguments)
        return self._reply(silence_s, progress)

    def _send(self, operation: str, silence_s: float, **arguments: Any) -> None:
        try:
            self._pipe.send({"op": operation, **arguments}, silence_s=silence_s)
        except (PipeClosed, PipeSilent) as error:
            raise self._gone(error, silence_s) from None

    def _reply(self, silence_s: float, progress: Progress | None = None) -> Any:
        while True:
            try:
                message = self._pipe.receive(silence_s=silence_s)
            except (PipeClosed, PipeSilent) as error:
                raise self._gone(error, silence_s) from None
            if "progress" in message:
                if progress is not None:
                    progress(message["progress"])
                continue
            if "error" in message:
                raise self._refused(**message["error"])
            self._doing = "idle"
            return message["result"]

    def _refused(self, *, kind: str, message: str) -> SpecdecError:
        """The error for what the worker itself reported."""
        if kind == "config":
            return ConfigError(f"profile `{self._profile.name}`: {message}")
        if kind == "unavailable":
            return EngineUnavailable(
                f"vLLM cannot be imported under: {self._python}\n{message}",
                hint=f"install it with `{self._python} -m pip install vllm`, or name an "
                "interpreter that has it with `--specdec-python PATH`",
            )
        if kind == "request":
            return EngineError(f"the {self} refused a request: {message}")
        self._kill()
        return self._failure(f"the {self} failed while {self._doing}: {message}\n{self._log()}")

    def _gone(self, error: Exception, silence_s: float) -> EngineError:
        """The error for a worker that says nothing any more; ends what is left of it."""
        if isinstance(error, PipeSilent) and self._process.poll() is None:
            self._kill()
            return EngineTimeout(
                f"the {self} was silent for {silence_s:g} s while {self._doing}, and was ended\n"
                f"{self._log()}",
                hint="if it is slow rather than hung, raise the profile's `timeouts`",
            )
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_GRACE_S)
        ending = _ending(self._process.poll())
        self._kill()
        return self._failure(f"the {self} died while {self._doing}: {ending}\n{self._log()}")

    def _failure(self, message: str) -> EngineError:
        """The error for an engine that cannot go on, by how far it came."""
        if self._versions is None:
            return EngineUnavailable(
                message, hint="name an interpreter that has vLLM with `--specdec-python PATH`"
            )
        return EngineStartError(message) if self._facts is None else EngineDied(message)

    def _kill(self) -> None:
        """Ends the process group, stragglers included, and closes the pipe; once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._pipe.close()

    def _log(self) -> str:
        """The log's tail and place, for messages."""
        try:
            lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        tail = "\n".join(f"    {line}" for line in lines[-LOG_TAIL_LINES:])
        return f"log: {self.log_path}\n{tail}".rstrip()


def _ending(returncode: int | None) -> str:
    """How a process ended, in words."""
    if returncode is None:
        return "its pipe closed"
    if returncode < 0:
        name = signal.Signals(-returncode).name
        likely = "; the system may be out of memory" if name == "SIGKILL" else ""
        return f"killed by {name}{likely}"
    return f"exit status {returncode}"
