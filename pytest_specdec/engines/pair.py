"""The pair of engines of one profile: started once, taking turns once over each workload.

Floor 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_specdec.engines.cost import Cost
from pytest_specdec.engines.costing import cost_of
from pytest_specdec.engines.draft_alone import DraftAlone
from pytest_specdec.engines.loads import Loads
from pytest_specdec.engines.passes import Passes
from pytest_specdec.engines.peak_memory import peak_memory_bytes
from pytest_specdec.engines.process import ProcessEngine
from pytest_specdec.engines.protocol import Engine, EngineFacts, IsDecided, Watch
from pytest_specdec.engines.step_costing import StepCosting
from pytest_specdec.engines.step_costs import StepCosts
from pytest_specdec.errors import FATAL, EngineDied, EngineUnavailable, SpecdecError
from pytest_specdec.generation import ROLES, Pass, Role, RunPair, TokenScore
from pytest_specdec.leases import Lease
from pytest_specdec.model_files import check_folder, check_vocabulary
from pytest_specdec.model_fit import check_memory, draft_notes
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
        python: the interpreter that has vLLM; the speculative engine's alone, where the profile
            names another one for the baseline engine.
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
        self._versions: dict[str, str | None] = {}
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
        self._draft = DraftAlone(
            profile,
            python=profile.baseline_python or python,
            log_path=log_folder / f"{profile.name}-draft.log",
            watch=watch,
        )
        self._steps = StepCosting(profile, engine=self.engine, draft=self._draft_alone, watch=watch)
        self._peaks: dict[Role, int] = {}
        self._told: set[str] = set()
        self.failure: SpecdecError | None = None
        self.facts: dict[Role, EngineFacts] = {}

    @property
    def versions(self) -> Mapping[str, str | None]:
        """Of vLLM and what is under it, by the speculative engine's interpreter; `baseline_vllm`
        where the other one has its own. Empty before the pair has started."""
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
        """Refuses model folders that are missing or incomplete, and a draft model that is no
        smaller than its target, without starting anything; tells what is unusual, once.

        Raises:
            ModelError: naming the folder and the way to make it, or the sizes.
        """
        check_folder(self.profile.target_model, self.profile)
        for role in ROLES:
            if (draft := self._draft_model(role)) is not None:
                check_folder(draft, self.profile)
            if draft is not None and self._is_draft_model(role):
                self._tell(draft_notes(self.profile, draft))

    def start(self) -> None:
        """Starts the engines' processes, checks what can be checked without loading, and waits
        until vLLM is imported. Cheap to call again.

        Raises:
            ModelError: a model folder is missing, target and draft do not fit together, or the
                memory does not hold them.
            EngineUnavailable: the interpreter cannot import vLLM, or only its CPU build.
            EngineStartError: others have the devices.
        """
        if self._engines:
            return
        self.check_models()
        if self._lease is not None:
            self._lease.take()
        # Only now have the engines of other sessions given their memory back.
        check_memory(self.profile, self._draft_model("speculative"))
        has_two_vllms = self.profile.baseline_python is not None
        # The processes import side by side; only then is either waited for. One that has not
        # loaded takes no place, so two vLLMs are asked at once in the sequential layout too.
        for role in ROLES if self.profile.layout == "concurrent" or has_two_vllms else ROLES[:1]:
            self._spawn(role)
        self._watch.phase("importing vLLM")
        of = {role: self._engines[role if has_two_vllms else ROLES[0]] for role in ROLES}
        self._versions = dict(of["speculative"].versions())
        if has_two_vllms:
            self._versions["baseline_vllm"] = of["baseline"].versions()["vllm"]
        for role, engine in of.items():
            self._check(role, engine)

    def _check(self, role: Role, engine: ProcessEngine) -> None:
        """What can be checked of one engine without loading it, by a process that has its vLLM."""
        versions = engine.versions()
        if self.profile.device == "gpu" and versions["cuda"] is None:
            raise EngineUnavailable(
                f"profile `{self.profile.name}` needs a GPU, but vLLM {versions['vllm']} under "
                f"this interpreter cannot use one: {engine.python}",
                hint="install vLLM's CUDA build there, or name another interpreter "
                f"{engine.naming}",
            )
        engine.check_names(self.profile.engine_arguments(role))
        self._check_draft(role, engine)

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
                for other in self._loaded - {role}:
                    self._end(other)
            if self.profile.layout == "sequential" or role == "speculative":
                self._draft.close()
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

    def cost(self) -> Cost | None:
        """What both engines took so far, those that have ended included; `None` before both have
        loaded."""
        for role in self._loaded:
            self._note_peak(role)
        return cost_of(self.profile, self.facts, self._peaks)

    def step_costs(self, workload: Workload) -> StepCosts | None:
        """What steps of drafting and verifying cost under a workload's load.

        A draft model is loaded alone for it, in the place of the speculative engine, which is
        started again when it is asked for: best asked of all workloads together, at the end.

        Raises:
            SpecdecError: what kept the baseline engine from answering.
        """
        with self._remembering():
            return self._steps.of(workload)

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
        own = self.profile.baseline_python if role == "baseline" else None
        self._engines[role] = ProcessEngine(
            self.profile, role, python=own or self._python, log_path=log_path, devices=self._devices
        )
        self.num_starts[role] += 1

    @property
    def _devices(self) -> Mapping[str, str]:
        return {} if self._lease is None else self._lease.env

    def _draft_alone(self) -> Engine:
        """The draft model loaded alone: beside the baseline engine, or also in its place."""
        for role in list(self._engines):
            if role == "speculative" or self.profile.layout == "sequential":
                self._end(role)
        return self._draft.engine(self._devices)

    def _end_all(self) -> None:
        try:
            for role in list(self._engines):
                self._end(role)
        finally:
            self._draft.close()

    def _note_peak(self, role: Role) -> None:
        """Only while the engine runs is it told."""
        peak = peak_memory_bytes(
            self.profile.device,
            self._engines[role].pid,
            num_gpus=self.profile.num_gpus,
            visible=self._devices.get("CUDA_VISIBLE_DEVICES"),
        )
        if peak is not None:
            self._peaks[role] = max(peak, self._peaks.get(role, 0))

    def _end(self, role: Role) -> None:
        try:
            if role in self._loaded:
                self._note_peak(role)
        finally:
            self._loaded.discard(role)
            self._engines.pop(role).close()

    def _tell(self, notes: Iterable[str]) -> None:
        for note in notes:
            if note not in self._told:
                self._told.add(note)
                self._watch.phase(f"note: {note}")

    def _draft_model(self, role: Role) -> str | None:
        return (self.profile.speculation(role) or {}).get("model")

    def _is_draft_model(self, role: Role) -> bool:
        return (self.profile.speculation(role) or {}).get("method") in (None, "draft_model")

    def _check_draft(self, role: Role, engine: ProcessEngine) -> None:
        """Only a draft model of its own has a vocabulary of its own."""
        draft = self._draft_model(role)
        if draft is None or not self._is_draft_model(role):
            return
        check_vocabulary(engine.folder(self.profile.target_model), engine.folder(draft))
