"""The pair of engines of one profile: started once, taking turns once over each workload.

Floor 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_specdec.engines.loads import Loads
from pytest_specdec.engines.passes import Passes
from pytest_specdec.engines.process import ProcessEngine
from pytest_specdec.engines.protocol import Engine, EngineFacts, IsDecided, Watch
from pytest_specdec.errors import FATAL, EngineDied, EngineUnavailable, SpecdecError
from pytest_specdec.generation import ROLES, Pass, Role, RunPair, TokenScore
from pytest_specdec.leases import Lease
from pytest_specdec.model_files import check_folder, check_vocabulary
from pytest_specdec.observer import Observer
from pytest_specdec.profile import Profile
from pytest_specdec.workload import Prompt, Workload


class EnginePair:
    """Both engines of a profile.

    Nothing starts before it is asked for, and then once: runs are kept by workload, so any number
    of tests may ask for them. When an engine fails, everything asked of the pair later fails at
    once with the same cause.

    Args:
        profile: what to start.
        python: the interpreter that has vLLM.
        log_folder: where each engine's log goes.
        watch: told what goes on.
        lease: the devices that the engines have to themselves; without it, what others leave.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        python: Path,
        log_folder: Path,
        watch: Watch,
        lease: Lease | None = None,
    ) -> None:
        self.profile = profile
        self.num_starts: dict[Role, int] = dict.fromkeys(ROLES, 0)
        self._python = python
        self._log_folder = log_folder
        self._versions: Mapping[str, str | None] = {}
        self._watch = watch
        self._lease = lease
        self._engines: dict[Role, ProcessEngine] = {}
        self._loaded: set[Role] = set()
        observer = Observer(
            profile.device,
            lambda: [engine.pid for engine in self._engines.values()],
            num_gpus=profile.num_gpus,
            visible=lambda: self._devices.get("CUDA_VISIBLE_DEVICES"),
        )
        self._passes = Passes(self.engine, observer=observer, watch=watch)
        self._loads = Loads(
            profile, self._passes, engine=self.engine, close=self._end_all, watch=watch
        )
        self.failure: SpecdecError | None = None
        self.facts: dict[Role, EngineFacts] = {}

    @property
    def versions(self) -> Mapping[str, str | None]:
        """Of vLLM and what is under it; empty before the pair has started."""
        return self._versions

    def plan(self, workloads: Iterable[Workload], *, is_decided: IsDecided | None = None) -> None:
        """Names the workloads that will be asked for: where engines are started more than once,
        each start serves them all.

        Args:
            is_decided: whether a workload's passes so far are enough; asked after each block, or
                after each load where the profile has several. Without it all passes are taken.
        """
        self._loads.plan(workloads, is_decided)

    def check_models(self) -> None:
        """Refuses model folders that are missing or incomplete, without starting anything.

        Raises:
            ModelError: naming the folder and the way to make it.
        """
        for model in (self.profile.target_model, self.profile.draft_model):
            if model is not None:
                check_folder(model, self.profile)

    def start(self) -> None:
        """Starts the engines' processes, checks what can be checked without loading, and waits
        until vLLM is imported. Cheap to call again.

        Raises:
            ModelError: a model folder is missing, or target and draft do not fit together.
            EngineUnavailable: the interpreter cannot import vLLM, or only its CPU build.
            EngineStartError: others have the devices.
        """
        if self._engines:
            return
        self.check_models()
        if self._lease is not None:
            self._lease.take()
        first, *others = ROLES if self.profile.layout == "concurrent" else ROLES[:1]
        # The processes import side by side; only then is either waited for.
        for role in (first, *others):
            self._spawn(role)
        self._watch.phase("importing vLLM")
        self._versions = self._engines[first].versions()
        if self.profile.device == "gpu" and self._versions["cuda"] is None:
            version = self._versions["vllm"]
            raise EngineUnavailable(
                f"profile `{self.profile.name}` needs a GPU, but vLLM {version} under this "
                f"interpreter cannot use one: {self._python}",
                hint="install vLLM's CUDA build there, or name another interpreter with "
                "`--specdec-python PATH`",
            )
        self._engines[first].check_names(self.profile.engine_arguments("speculative"))
        self._check_draft(self._engines[first])

    def begin(self) -> None:
        """As `start`, but a failure is remembered as one of loading is."""
        with self._remembering():
            self.start()

    def engine(self, role: Role) -> Engine:
        """The loaded engine of that role. In the sequential layout the other one ends for it.

        Raises:
            SpecdecError: what kept it from loading.
        """
        with self._remembering():
            self.start()
            if self.profile.layout == "sequential":
                for other in [each for each in self._engines if each != role]:
                    self._end(other)
            if role not in self._engines:
                self._spawn(role)
            if role not in self._loaded:
                self._watch.phase(f"loading the {role} engine")
                facts = self.facts[role] = self._engines[role].load()
                self._loaded.add(role)
                self._watch.phase(f"{role} engine loaded in {facts.load_s:.1f} s")
            return self._engines[role]

    def run(self, workload: Workload) -> RunPair:
        """Both engines' runs over a workload; taken on the first call, kept for later ones."""
        if not self._loads.is_done(workload):
            with self._remembering():
                self._loads.take(workload)
        return self._loads.runs(workload)

    def control(self, workload: Workload, prompts: Sequence[Prompt], *, concurrency: int) -> Pass:
        """The baseline engine's answers once more, in a batch of another kind; not kept.

        Raises:
            SpecdecError: what kept the engine from answering.
        """
        return self._passes.control(workload, prompts, concurrency=concurrency)

    def score(
        self,
        workload: Workload,  # noqa: ARG002  # all that are asked about share the engine
        prompt_token_ids: Sequence[int],
        token_ids: Sequence[int],
    ) -> tuple[TokenScore, ...]:
        """Tokens of an answer under the baseline engine's own distribution; not kept.

        Raises:
            SpecdecError: what kept the engine from scoring.
        """
        return self.engine("baseline").score(prompt_token_ids, token_ids)

    def close(self) -> None:
        """Ends both engines and all they started, and gives their devices back."""
        try:
            self._end_all()
        finally:
            if self._lease is not None:
                self._lease.release()

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        """Keeps a fatal failure, and answers every later call with it instead of trying again."""
        if self.failure is not None:
            cause = str(self.failure).partition("\n")[0]
            raise EngineDied(
                f"not run, because earlier {cause}",
                hint=f"see the first error of profile `{self.profile.name}`",
            )
        try:
            yield
        except FATAL as error:
            self.failure = error
            self.close()
            raise

    def _spawn(self, role: Role) -> None:
        log_path = self._log_folder / f"{self.profile.name}-{role}.log"
        self._engines[role] = ProcessEngine(
            self.profile, role, python=self._python, log_path=log_path, devices=self._devices
        )
        self.num_starts[role] += 1

    @property
    def _devices(self) -> Mapping[str, str]:
        return {} if self._lease is None else self._lease.env

    def _end_all(self) -> None:
        for role in list(self._engines):
            self._end(role)

    def _end(self, role: Role) -> None:
        self._engines.pop(role).close()
        self._loaded.discard(role)

    def _check_draft(self, engine: ProcessEngine) -> None:
        """Only a draft model of its own has a vocabulary of its own."""
        draft = self.profile.draft_model
        if draft is None or self.profile.speculative_config.get("method") not in (
            None,
            "draft_model",
        ):
            return
        check_vocabulary(engine.folder(self.profile.target_model), engine.folder(draft))
