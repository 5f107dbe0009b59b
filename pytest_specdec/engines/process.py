"""An engine in a process of its own: talks to the worker under a chosen interpreter, watches the
clock, and explains what went wrong. Floor 1.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_specdec.engines.pipe import PipeClosed, PipeGarbled, PipeSilent
from pytest_specdec.engines.protocol import EngineFacts, Progress
from pytest_specdec.engines.worker_process import WorkerProcess, ending, worker_environment
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
from pytest_specdec.profile import Profile
from pytest_specdec.workload import Prompt

CLOSE_GRACE_S = 10.0
# How often a silent worker is looked at.
LOOK_S = 1.0


class ProcessEngine:
    """One engine of a profile's pair.

    The process is started at once, so that two engines import vLLM side by side; `load` waits
    for it. It must be created on a thread that lives as long as the engine: on Linux the worker
    ends with the thread that started it.

    Args:
        profile: the pair's profile.
        role: which of the two this is.
        python: the interpreter that has its vLLM.
        log_path: where the engine's own output goes; overwritten.
        devices: environment variables that show it no other devices than its own.
    """

    def __init__(
        self,
        profile: Profile,
        role: Role,
        *,
        python: Path,
        log_path: Path,
        devices: Mapping[str, str] | None = None,
    ) -> None:
        self.role: Role = role
        self.log_path = log_path
        self.python = python
        self._profile = profile
        self._facts: EngineFacts | None = None
        self._versions: Mapping[str, str | None] | None = None
        self._doing = "importing vLLM"
        self._num_unanswered = 0
        self._process = WorkerProcess(
            str(self),
            python=python,
            naming=self.naming,
            log_path=log_path,
            env=worker_environment(profile.device, {**profile.env, **(devices or {})}),
        )
        # One that is dead already is told of when it is asked, as any other.
        with contextlib.suppress(EngineError):
            self._send("hello", profile.timeouts.import_s)

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid

    @property
    def naming(self) -> str:
        """How a person names another interpreter for it, for hints."""
        if self.role == "baseline" and self._profile.baseline_python is not None:
            return f"as `baseline.python` of profile `{self._profile.name}`"
        return "with `--specdec-python PATH`"

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
            if not self._process.has_ended():
                with contextlib.suppress(PipeClosed, PipeSilent):
                    self._process.pipe.send({"op": "shutdown"}, silence_s=1)
                    self._process.has_ended(CLOSE_GRACE_S if self._doing == "idle" else 0.1)
        finally:
            # Also when a second Ctrl-C arrives while it is waited for.
            self._process.kill()

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
            self._process.pipe.send({"op": operation, **arguments}, silence_s=silence_s)
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
                return self._process.pipe.receive(silence_s=min(remaining_s, LOOK_S))
            except PipeGarbled as error:
                raise self._garbled(str(error)) from None
            except PipeClosed as error:
                raise self._gone(error, silence_s) from None
            except PipeSilent as error:
                if remaining_s <= LOOK_S or self._process.has_ended():
                    raise self._gone(error, silence_s) from None

    def _refused(self, *, kind: str, message: str) -> SpecdecError:
        """The error for what the worker itself reported."""
        if kind == "config":
            return ConfigError(f"profile `{self._profile.name}`: {message}")
        if kind == "unavailable":
            self._process.kill()
            return EngineUnavailable(
                f"vLLM cannot be imported under: {self.python}\n{message}",
                hint=f"install it with `{self.python} -m pip install vllm`, or name an "
                f"interpreter that has it {self.naming}",
            )
        if kind == "request":
            self._doing = "idle"
            return RequestRefused(f"the {self} refused a request: {message}")
        if kind == "unsupported":
            self._doing = "idle"
            return CircumstanceUnsupported(f"the {self}: {message}")
        self._process.kill()
        return self._failure(
            f"the {self} failed while {self._doing}: {message}\n{self._process.log()}"
        )

    def _too_slow(self, progress: Mapping[str, int]) -> EngineTimeout:
        """The error for a worker that goes on and on; ends it."""
        self._process.kill()
        so_far = ", ".join(f"{name} {count}" for name, count in sorted(progress.items()))
        return EngineTimeout(
            f"the {self} took more than {self._profile.timeouts.pass_s:g} s while {self._doing}, "
            f"and was ended; so far: {so_far}\n{self._process.log()}",
            hint="if the work is that long, raise the profile's `timeouts.pass_s`; if it was not "
            "before, the engine has become slower",
        )

    def _garbled(self, said: str) -> EngineError:
        """The error for a worker that says what is no message of ours; ends it."""
        self._process.kill()
        return self._failure(
            f"the {self} sent what is no reply while {self._doing}: {said}\n{self._process.log()}"
        )

    def _gone(self, error: Exception, silence_s: float) -> EngineError:
        """The error for a worker that says nothing any more; ends what is left of it."""
        if isinstance(error, PipeSilent) and not self._process.has_ended():
            self._process.kill()
            return EngineTimeout(
                f"the {self} was silent for {silence_s:g} s while {self._doing}, and was ended\n"
                f"{self._process.log()}",
                hint="if it is slow rather than hung, raise the profile's `timeouts`",
            )
        has_ended = self._process.has_ended(CLOSE_GRACE_S)
        self._process.kill()
        how = ending(self._process.returncode if has_ended else None)
        return self._failure(f"the {self} died while {self._doing}: {how}\n{self._process.log()}")

    def _failure(self, message: str) -> EngineError:
        """The error for an engine that cannot go on, by how far it came."""
        if self._versions is None:
            return EngineUnavailable(
                message, hint=f"name an interpreter that has vLLM {self.naming}"
            )
        return EngineStartError(message) if self._facts is None else EngineDied(message)
