"""An engine in a process of its own: starts the worker under a chosen interpreter, talks to it,
watches the clock, ends it, and explains what went wrong. Floor 1.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pytest_specdec.engines.pipe import Pipe, PipeClosed, PipeGarbled, PipeSilent
from pytest_specdec.engines.protocol import EngineFacts, Progress
from pytest_specdec.errors import (
    CircumstanceUnsupported,
    ConfigError,
    EngineDied,
    EngineError,
    EngineStartError,
    EngineTimeout,
    EngineUnavailable,
    RequestRefused,
    SpecdecError,
)
from pytest_specdec.generation import Pass, Role, TokenScore
from pytest_specdec.profile import Device, Profile
from pytest_specdec.workload import Prompt

WORKER = Path(__file__).with_name("worker.py")
LOG_TAIL_LINES = 15
LOG_TAIL_BYTES = 1 << 16
CLOSE_GRACE_S = 10.0
# A killed process that the kernel cannot end, as with a hung driver, must not hang pytest too.
KILL_GRACE_S = 30.0
# How often a silent worker is looked at.
LOOK_S = 1.0

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
        self._num_unanswered = 0
        self._process, self._pipe = self._spawn()
        # One that is dead already is told of when it is asked, as any other.
        with contextlib.suppress(EngineError):
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
        self,
        prompts: Sequence[Prompt],
        *,
        concurrency: int,
        circumstance: str | None = None,
        progress: Progress | None = None,
    ) -> Pass:
        reply = self._call(
            "generate",
            "generating",
            self._profile.timeouts.silence_s,
            progress,
            requests=[prompt.request for prompt in prompts],
            concurrency=concurrency,
            circumstance=circumstance,
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
        return tuple(TokenScore.from_json(each) for each in reply)

    def close(self) -> None:
        """Asks the worker to end, then ends its whole process group."""
        try:
            if not self._has_ended():
                with contextlib.suppress(PipeClosed, PipeSilent):
                    self._pipe.send({"op": "shutdown"}, silence_s=1)
                    self._has_ended(CLOSE_GRACE_S if self._doing == "idle" else 0.1)
        finally:
            # Also when a second Ctrl-C arrives while it is waited for.
            self._kill()

    def _spawn(self) -> tuple[subprocess.Popen[bytes], Pipe]:
        log = self._open_log()
        commands_read, commands_write = os.pipe()
        replies_read, replies_write = os.pipe()
        try:
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
            log.close()
        os.set_blocking(commands_write, False)
        return process, Pipe(read_fd=replies_read, write_fd=commands_write)

    def _open_log(self) -> BinaryIO:
        try:
            self.log_path.parent.mkdir(parents=True, exist_ok=True)
            return self.log_path.open("wb")
        except OSError as error:
            raise EngineStartError(
                f"the log of the {self} cannot be written: {self.log_path}\n{error}",
                hint="name another folder with `--specdec-report DIR`",
            ) from error

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
        deadline = time.monotonic() + self._profile.timeouts.pass_s
        self._send(operation, silence_s, **arguments)
        # Loading has a limit of its own, and is silent until it is over.
        return self._reply(silence_s, progress, None if operation == "load" else deadline)

    def _send(self, operation: str, silence_s: float, **arguments: Any) -> None:
        self._num_unanswered += 1
        try:
            self._pipe.send({"op": operation, **arguments}, silence_s=silence_s)
        except (PipeClosed, PipeSilent) as error:
            raise self._gone(error, silence_s) from None

    def _reply(
        self,
        silence_s: float,
        progress: Progress | None = None,
        deadline: float | None = None,
    ) -> Any:
        while True:
            message = self._receive(silence_s)
            # Replies come in the order of the commands; an earlier one's is still to come when its
            # caller was interrupted.
            is_own = self._num_unanswered == 1
            if "progress" in message:
                if deadline is not None and time.monotonic() > deadline:
                    raise self._too_slow(message["progress"])
                if is_own and progress is not None:
                    progress(message["progress"])
                continue
            if not {"result", "error"} & message.keys():
                raise self._garbled(repr(message))
            self._num_unanswered -= 1
            if not is_own:
                continue
            if "error" in message:
                raise self._refused(**message["error"])
            self._doing = "idle"
            return message["result"]

    def _receive(self, silence_s: float) -> dict[str, Any]:
        """The next message of whatever command.

        In between it is seen whether the worker lives: processes that it started may hold its end
        of the pipe open.
        """
        deadline = time.monotonic() + silence_s
        while True:
            remaining_s = deadline - time.monotonic()
            try:
                return self._pipe.receive(silence_s=min(remaining_s, LOOK_S))
            except PipeGarbled as error:
                raise self._garbled(str(error)) from None
            except PipeClosed as error:
                raise self._gone(error, silence_s) from None
            except PipeSilent as error:
                if remaining_s <= LOOK_S or self._has_ended():
                    raise self._gone(error, silence_s) from None

    def _refused(self, *, kind: str, message: str) -> SpecdecError:
        """The error for what the worker itself reported."""
        if kind == "config":
            return ConfigError(f"profile `{self._profile.name}`: {message}")
        if kind == "unavailable":
            self._kill()
            return EngineUnavailable(
                f"vLLM cannot be imported under: {self._python}\n{message}",
                hint=f"install it with `{self._python} -m pip install vllm`, or name an "
                "interpreter that has it with `--specdec-python PATH`",
            )
        if kind == "request":
            self._doing = "idle"
            return RequestRefused(f"the {self} refused a request: {message}")
        if kind == "unsupported":
            self._doing = "idle"
            return CircumstanceUnsupported(f"the {self}: {message}")
        self._kill()
        return self._failure(f"the {self} failed while {self._doing}: {message}\n{self._log()}")

    def _too_slow(self, progress: Mapping[str, int]) -> EngineTimeout:
        """The error for a worker that goes on and on; ends it."""
        self._kill()
        so_far = ", ".join(f"{name} {count}" for name, count in sorted(progress.items()))
        return EngineTimeout(
            f"the {self} took more than {self._profile.timeouts.pass_s:g} s while {self._doing}, "
            f"and was ended; so far: {so_far}\n{self._log()}",
            hint="if the work is that long, raise the profile's `timeouts.pass_s`; if it was not "
            "before, the engine has become slower",
        )

    def _garbled(self, said: str) -> EngineError:
        """The error for a worker that says what is no message of ours; ends it."""
        self._kill()
        return self._failure(
            f"the {self} sent what is no reply while {self._doing}: {said}\n{self._log()}"
        )

    def _gone(self, error: Exception, silence_s: float) -> EngineError:
        """The error for a worker that says nothing any more; ends what is left of it."""
        if isinstance(error, PipeSilent) and not self._has_ended():
            self._kill()
            return EngineTimeout(
                f"the {self} was silent for {silence_s:g} s while {self._doing}, and was ended\n"
                f"{self._log()}",
                hint="if it is slow rather than hung, raise the profile's `timeouts`",
            )
        has_ended = self._has_ended(CLOSE_GRACE_S)
        self._kill()
        ending = _ending(self._process.returncode if has_ended else None)
        return self._failure(f"the {self} died while {self._doing}: {ending}\n{self._log()}")

    def _failure(self, message: str) -> EngineError:
        """The error for an engine that cannot go on, by how far it came."""
        if self._versions is None:
            return EngineUnavailable(
                message, hint="name an interpreter that has vLLM with `--specdec-python PATH`"
            )
        return EngineStartError(message) if self._facts is None else EngineDied(message)

    def _has_ended(self, timeout_s: float = 0.0) -> bool:
        """Whether the worker has ended by itself within that time.

        Only `_kill` reaps it: until then its id, which is its group's too, cannot become that of
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

    def _kill(self) -> None:
        """Ends the process group, stragglers included, and closes the pipe; once."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_GRACE_S)
        self._pipe.close()

    def _log(self) -> str:
        """The log's tail and place, for messages."""
        try:
            with self.log_path.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(0, size - LOG_TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            lines = []
        tail = "\n".join(f"    {line}" for line in lines[-LOG_TAIL_LINES:])
        return f"log: {self.log_path}\n{tail}".rstrip()


def _ending(returncode: int | None) -> str:
    """How a process ended, in words."""
    if returncode is None:
        return "its pipe closed"
    if returncode < 0:
        known = {each.value: each.name for each in signal.Signals}
        name = known.get(-returncode, f"signal {-returncode}")
        likely = "; the system may be out of memory" if name == "SIGKILL" else ""
        return f"killed by {name}{likely}"
    return f"exit status {returncode}"
