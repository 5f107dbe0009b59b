"""The pair of engines of one profile: started once, taking turns once over each workload.

Floor 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_specdec.engines.process import ProcessEngine
from pytest_specdec.engines.protocol import Engine, EngineFacts, Progress, Watch
from pytest_specdec.engines.taken import Taken
from pytest_specdec.errors import (
    FATAL,
    CircumstanceUnsupported,
    EngineDied,
    EngineError,
    EngineUnavailable,
    RequestRefused,
    SpecdecError,
)
from pytest_specdec.generation import (
    ROLES,
    Pass,
    Refusal,
    Role,
    RunPair,
    SampleScores,
)
from pytest_specdec.model_files import check_folder, check_vocabulary
from pytest_specdec.observer import Observer
from pytest_specdec.profile import Profile
from pytest_specdec.workload import Prompt, Workload

ABBA: tuple[Role, ...] = ("baseline", "speculative", "speculative", "baseline")
WARM_UP_TOKENS = 4
IsDecided = Callable[[Workload, RunPair], bool]


def _never(_workload: Workload, _runs: RunPair) -> bool:
    return False


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
    """

    def __init__(
        self,
        profile: Profile,
        *,
        python: Path,
        log_folder: Path,
        watch: Watch,
    ) -> None:
        self.profile = profile
        self.num_starts: dict[Role, int] = dict.fromkeys(ROLES, 0)
        self._python = python
        self._log_folder = log_folder
        self._workloads: dict[Path, Workload] = {}
        self._versions: Mapping[str, str | None] = {}
        self._watch = watch
        self._engines: dict[Role, ProcessEngine] = {}
        self._loaded: set[Role] = set()
        self._taken: dict[Path, Taken] = {}
        self._done: set[Path] = set()
        self._refused: dict[Path, EngineError] = {}
        self._is_decided: IsDecided = _never
        self._observer = Observer(
            profile.device,
            lambda: [engine.pid for engine in self._engines.values()],
            num_gpus=profile.requires.num_gpus,
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
        self._workloads = {workload.path: workload for workload in workloads}
        self._is_decided = is_decided or _never

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
        """
        if self._engines:
            return
        self.check_models()
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
        if workload.path not in self._done:
            with self._remembering():
                self._take(workload)
            self._done |= self._taken.keys() | self._refused.keys()
        if workload.path in self._refused:
            raise self._refused[workload.path]
        return self._run_pair(workload)

    def control(self, workload: Workload, prompts: Sequence[Prompt], *, concurrency: int) -> Pass:
        """The baseline engine's answers once more, in a batch of another kind; not kept.

        Raises:
            SpecdecError: what kept the engine from answering.
        """
        what = f"{workload.name}: control run of the baseline engine"
        self._watch.phase(f"{what} over {len(prompts)} prompts, {concurrency} in flight")
        return self.engine("baseline").generate(
            prompts, concurrency=concurrency, progress=self._progress(what, len(prompts))
        )

    def close(self) -> None:
        """Ends both engines and all they started."""
        for role in list(self._engines):
            self._end(role)

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

    def _take(self, workload: Workload) -> None:
        """Takes the passes over a workload; where engines must be started again for more of them,
        over all planned ones, so that each start serves all."""
        alone = self.profile.layout == "concurrent" and self.profile.num_loads == 1
        planned = {} if alone else self._workloads
        workloads = {**planned, workload.path: workload}.values()
        waiting = [each for each in workloads if each.path not in self._done]
        for load in range(self.profile.num_loads):
            if load:
                waiting = [each for each in waiting if not self._is_enough(each)]
                if not waiting:
                    return
                self._watch.phase(f"load {load + 1} of at most {self.profile.num_loads}")
                self.close()
            if self.profile.layout == "concurrent":
                for each in waiting:
                    self._guarded(each, self._take_blocks)
            else:
                for role in ROLES:
                    for each in waiting:
                        self._guarded(each, partial(self._take_half, role))
            for each in waiting:
                self._guarded(each, self._rescore)

    def _guarded(self, workload: Workload, take: Callable[[Workload], None]) -> None:
        """A workload whose requests are refused does not keep the others from running."""
        if workload.path in self._refused:
            return
        try:
            take(workload)
        except FATAL:
            raise
        except EngineError as error:
            self._refused[workload.path] = error

    def _take_blocks(self, workload: Workload) -> None:
        """One load's ABBA blocks, until they are enough."""
        if not workload.gated:
            self._take_once(workload)
            return
        blocks = self.profile.num_blocks
        self._announce(workload, f"up to {len(ABBA) * blocks} passes")
        for role in ROLES:
            self._warm_up(role, workload)
        for block in range(blocks):
            self._add_passes(workload, ABBA, f"block {block + 1} of {blocks}")
            if self.profile.num_loads == 1 and self._is_enough(workload):
                break
        for role in ROLES:
            self._take_again(role, workload)
        self._end_load(workload)

    def _take_once(self, workload: Workload) -> None:
        """The passes that nobody times."""
        if workload.path in self._taken:
            return  # by an earlier load
        order = _untimed(workload)
        self._announce(workload, f"{len(order)} passes, not timed")
        self._add_passes(workload, order, "not timed")
        for role in ROLES:
            self._take_again(role, workload)
        self._end_load(workload)

    def _take_half(self, role: Role, workload: Workload) -> None:
        """One engine's passes of a load, all of them at once."""
        if not workload.gated and self._taken.get(workload.path, Taken()).num_loads:
            return  # taken by an earlier load
        whole = ABBA * self.profile.num_blocks if workload.gated else _untimed(workload)
        order = [each for each in whole if each == role]
        self._announce(workload, f"{len(order)} passes of the {role} engine")
        if workload.gated:
            self._warm_up(role, workload)
        self._add_passes(workload, order, "all its passes")
        self._take_again(role, workload)
        if role == ROLES[-1]:
            self._end_load(workload)

    def _add_passes(self, workload: Workload, order: Sequence[Role], which: str) -> None:
        """Takes passes in that order, and notes what else went on meanwhile."""
        self._observer.start()
        passes = [
            (role, self._walk(role, workload, f"{which}, pass {number} of {len(order)}"))
            for number, role in enumerate(order, start=1)
        ]
        before = self._taken.get(workload.path, Taken())
        self._taken[workload.path] = replace(
            before,
            passes=(*before.passes, *passes),
            conditions=(*before.conditions, self._observer.stop()),
        )

    def _take_again(self, role: Role, workload: Workload) -> None:
        """The workload's prompts once more under each of its circumstances, in the first load, and
        the prompts that are to be refused."""
        taken = self._taken[workload.path]
        if taken.num_loads:
            return
        again = dict(taken.again)
        for circumstance in workload.again:
            try:
                again[circumstance, role] = self._walk(
                    role, workload, circumstance, circumstance=circumstance
                )
            except CircumstanceUnsupported as error:
                again[circumstance, role] = str(error)
        refusals = tuple(
            Refusal(role=role, prompt_id=prompt.id, said=self._refusal(role, prompt))
            for prompt in workload.prompts
            if prompt.is_refused
        )
        self._taken[workload.path] = replace(
            taken, again=again, refusals=(*taken.refusals, *refusals)
        )

    def _refusal(self, role: Role, prompt: Prompt) -> str | None:
        """What the engine says to a prompt that it is to refuse; `None` if it answers."""
        try:
            self.engine(role).generate([prompt], concurrency=1)
        except RequestRefused as error:
            return str(error)
        return None

    def _rescore(self, workload: Workload) -> None:
        """Asks the baseline engine about the sampled answers of both engines' first passes."""
        taken = self._taken[workload.path]
        sampled = [prompt for prompt in workload.asked if prompt.is_own_distribution]
        if taken.sample_scores or not sampled:
            return
        self._announce(workload, "the baseline engine scores the sampled answers")
        engine = self.engine("baseline")
        max_model_len = engine.facts.config.get("model_config.max_model_len")
        sample_scores = []
        for role in ROLES:
            for prompt in sampled:
                answer = taken.of(role)[0].generation(prompt.id)
                sample_scores += [
                    SampleScores(
                        role=role,
                        prompt_id=prompt.id,
                        scores=engine.score(
                            answer.prompt_token_ids,
                            _scored_part(answer.prompt_token_ids, token_ids, max_model_len),
                        ),
                    )
                    for token_ids in (answer.token_ids, *answer.others)
                ]
        self._taken[workload.path] = replace(taken, sample_scores=tuple(sample_scores))

    def _end_load(self, workload: Workload) -> None:
        taken = self._taken[workload.path]
        self._taken[workload.path] = replace(taken, num_loads=taken.num_loads + 1)

    def _is_enough(self, workload: Workload) -> bool:
        if workload.path in self._refused:
            return True
        return self._is_decided(workload, self._run_pair(workload))

    def _run_pair(self, workload: Workload) -> RunPair:
        return self._taken[workload.path].runs(workload.name)

    def _announce(self, workload: Workload, what: str) -> None:
        self._watch.phase(
            f"{workload.name}: {what} over {len(workload.asked)} prompts, "
            f"{workload.concurrency} in flight"
        )

    def _walk(
        self, role: Role, workload: Workload, which: str, *, circumstance: str | None = None
    ) -> Pass:
        what = f"{workload.name}: {role} engine, {which}"
        progress = self._progress(what, len(workload.asked))

        def watched(facts: Mapping[str, int]) -> None:
            self._observer.sample()
            progress(facts)

        return self.engine(role).generate(
            workload.asked,
            concurrency=workload.concurrency
            if circumstance is None
            else workload.concurrency_in(circumstance),
            circumstance=circumstance,
            progress=watched,
        )

    def _warm_up(self, role: Role, workload: Workload) -> None:
        """A few tokens of every prompt: grammars and kernels are compiled before a clock runs."""
        engine = self.engine(role)
        what = f"{workload.name}: warming up the {role} engine"
        engine.generate(
            [_shortened(prompt) for prompt in workload.asked],
            concurrency=workload.concurrency,
            progress=self._progress(what, len(workload.asked)),
        )

    def _progress(self, what: str, num_prompts: int) -> Progress:
        self._watch.progress(what)
        return lambda facts: self._watch.progress(
            f"{what}: {facts['num_finished']} of {num_prompts} prompts, "
            f"{facts['num_output_tokens']} tokens"
        )

    def _spawn(self, role: Role) -> None:
        log_path = self._log_folder / f"{self.profile.name}-{role}.log"
        self._engines[role] = ProcessEngine(
            self.profile, role, python=self._python, log_path=log_path
        )
        self.num_starts[role] += 1

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


def _untimed(workload: Workload) -> Sequence[Role]:
    """One pass of each engine, two where an answer must repeat itself."""
    return ABBA if any(prompt.is_seeded for prompt in workload.asked) else ROLES


def _scored_part(
    prompt_token_ids: Sequence[int], token_ids: Sequence[int], max_model_len: int | None
) -> Sequence[int]:
    """An answer, without its last token where it fills the context window: what is scored becomes
    a prompt, and vLLM takes none that leaves no place for an answer."""
    end = None if max_model_len is None else max_model_len - 1 - len(prompt_token_ids)
    return token_ids[:end]


def _shortened(prompt: Prompt) -> Prompt:
    tokens = min(WARM_UP_TOKENS, prompt.request["max_tokens"])
    return replace(prompt, request={**prompt.request, "max_tokens": tokens, "min_tokens": 0})
