"""A real pair of engines with the fault kit in the speculative one, judged row by row.

The engines are loaded once. What the baseline engine said is kept: no fault is in it, so that a row
costs the speculative engine's passes alone, but for rows that are timed and for faults that are in
both engines.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_specdec.baseline_update import stored_workload
from pytest_specdec.catalogue import check_names
from pytest_specdec.conditions import Limits
from pytest_specdec.engines.pair import EnginePair
from pytest_specdec.engines.protocol import Engine, EngineFacts, Progress, Watch
from pytest_specdec.errors import SpecdecError
from pytest_specdec.generation import ROLES, Pass, Role, TokenScore
from pytest_specdec.hardware import Hardware
from pytest_specdec.options import Options
from pytest_specdec.profile import Profile, Timeouts, Tolerances, read_profiles
from pytest_specdec.profile_gate import ProfileGate
from pytest_specdec.stored_baseline import StoredBaseline
from pytest_specdec.workload import Metric, Prompt, Workload
from tests.faults.install import installed_kit
from tests.faults.rows import ERROR, NO_FAULT, Row
from tests.faults.workloads import written

ROOT = Path(__file__).resolve().parents[2]
HARDWARE = Hardware(
    device="cpu", name="A CPU", count=2, facts={"cores": 2, "instruction_set": "avx2"}
)
# A cache that a few long prompts fill; engines that end are not waited for long.
ENGINE_ARGS = {"max_model_len": 512, "max_num_seqs": 8, "block_size": 32}
CACHE = {"num_gpu_blocks_override": 40}
SILENCE_S = 10
SPEEDUP_DROP = 0.04
# Sampled answers are others in every run, and a harmless change must not fail one run in fifty.
FALSE_ALARMS_OF_SAMPLES = 1e-4
NUM_TRIES = 2


class Quiet:
    """A watch that nobody looks at."""

    def phase(self, text: str) -> None: ...

    def progress(self, text: str) -> None: ...


@dataclass
class Remembered:
    """The baseline engine, which is asked the same thing once."""

    engine: Engine
    role: Role = "baseline"
    _said: dict[tuple[str, int, str | None], Pass] = field(default_factory=dict)

    @property
    def facts(self) -> EngineFacts:
        return self.engine.facts

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        concurrency: int,
        circumstance: str | None = None,
        progress: Progress | None = None,
    ) -> Pass:
        key = (repr([prompt.request for prompt in prompts]), concurrency, circumstance)
        if key not in self._said:
            self._said[key] = self.engine.generate(
                prompts, concurrency=concurrency, circumstance=circumstance, progress=progress
            )
        said = self._said[key]
        named = (
            replace(each, prompt_id=prompt.id)
            for each, prompt in zip(said.generations, prompts, strict=True)
        )
        return replace(said, generations=tuple(named))

    def score(
        self, prompt_token_ids: Sequence[int], token_ids: Sequence[int]
    ) -> tuple[TokenScore, ...]:
        return self.engine.score(prompt_token_ids, token_ids)

    def close(self) -> None: ...


class Borrowed(EnginePair):
    """A pair of its own runs, on engines that others use too."""

    def __init__(self, lender: EnginePair, profile: Profile, baseline: Engine | None) -> None:
        super().__init__(
            profile, python=lender._python, log_folder=lender._log_folder, watch=Quiet()
        )
        self._lender, self._baseline = lender, baseline
        self.facts, self._versions = dict(lender.facts), dict(lender.versions)

    def start(self) -> None: ...

    def engine(self, role: Role) -> Engine:
        if role == "baseline" and self._baseline is not None:
            return self._baseline
        return self._lender.engine(role)

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What one row came to.

    Attributes:
        failed: the tests that failed, as a row names them.
        messages: their failure texts.
    """

    failed: frozenset[str]
    messages: Mapping[str, str]


class Bench:
    """The engines, and what was recorded with them."""

    def __init__(self, folder: Path, *, watch: Watch | None = None) -> None:
        self._folder = folder
        self._switch = folder / "fault"
        self.profile = _profile(folder, self._switch)
        self._pair = EnginePair(
            self.profile,
            python=Path(sys.executable),
            log_folder=folder / "logs",
            watch=watch or Quiet(),
        )
        self._stored: dict[tuple[str, str, tuple[Metric, ...]], StoredBaseline] = {}
        self._remembered: Remembered | None = None

    def load(self) -> None:
        """Loads both engines, with no fault on."""
        self._set(NO_FAULT)
        for role in ROLES:
            self._pair.engine(role)

    def close(self) -> None:
        self._pair.close()

    def judged(self, row: Row) -> Judged:
        """The row's fault in the row's workload, with all tests that the workload has."""
        if ERROR in row.fails:
            return self._ended(row)
        stored = self._recorded(row) if row.gated else None
        self._set(row.fault)
        workload, gate = self._gate(row, stored)
        return _judged(workload, gate)

    def _set(self, fault: str) -> None:
        self._switch.write_text(fault, encoding="utf-8")

    def _gate(self, row: Row, stored: StoredBaseline | None) -> tuple[Workload, ProfileGate]:
        workload = written(self._folder, row.workload, gated=row.gated, again=row.again)
        tolerances = self.profile.tolerances
        if not row.gated:
            tolerances = replace(tolerances, false_alarms=FALSE_ALARMS_OF_SAMPLES)
        profile = replace(
            self.profile,
            gated=row.gated,
            num_blocks=row.num_blocks,
            num_looks=min(2, row.num_blocks),
            tolerances=tolerances,
        )
        pair = Borrowed(self._pair, profile, None if row.is_timed else self._baseline())
        gate = ProfileGate(
            profile=profile,
            hardware=HARDWARE,
            stored=stored,
            pair=pair,
            # As in CI, where what could not be decided fails; a harmless change must not be
            # called fallen, and may be undecided.
            options=_options(self._folder, is_ci=bool(row.fails)),
        )
        gate.plan([workload], num_profiles=1)
        return workload, gate

    def _baseline(self) -> Remembered:
        if self._remembered is None:
            self._remembered = Remembered(self._pair.engine("baseline"))
        return self._remembered

    def _recorded(self, row: Row) -> StoredBaseline:
        """The numbers to compare with: of the same workload, before the fault."""
        key = (row.workload, row.recorded_with, row.gated)
        if key not in self._stored:
            self._set(row.recorded_with)
            # A machine may be too noisy for a gate to store its numbers. The last try's are taken
            # all the same: their scatter is theirs, and leaves what it hides undecided.
            for _ in range(NUM_TRIES):
                workload, gate = self._gate(replace(row, again=()), None)
                gate = replace(gate, options=replace(gate.options, update="all", is_ci=False))
                gate.plan([workload], num_profiles=1)
                assessment = gate.assessment(workload)
                if not gate.refusals(assessment):
                    break
            provenance = gate.stored_numbers.provenance(gate.pair.versions, assessment.runs)
            numbers = stored_workload(assessment.measurement, provenance)
            self._stored[key] = StoredBaseline(
                hardware_key=HARDWARE.key,
                hardware=HARDWARE.facts,
                profile=gate.profile.name,
                workloads={workload.name: numbers},
            )
        return self._stored[key]

    def _ended(self, row: Row) -> Judged:
        """A fault that ends its engine, in an engine of its own."""
        profile = replace(
            self.profile, timeouts=Timeouts(silence_s=SILENCE_S, pass_s=SILENCE_S, load_s=60)
        )
        pair = Alone(self._pair, profile, self._baseline())
        self._set(row.fault)
        workload = written(self._folder, row.workload, gated=())
        try:
            pair.run(workload)
        except SpecdecError as error:
            return Judged(failed=frozenset({ERROR}), messages={ERROR: str(error)})
        finally:
            pair.close()
        return Judged(failed=frozenset(), messages={})


class Alone(Borrowed):
    """A borrowed baseline engine, beside a speculative one of its own."""

    def engine(self, role: Role) -> Engine:
        if role == "baseline":
            return super().engine(role)
        return EnginePair.engine(self, role)

    def close(self) -> None:
        EnginePair.close(self)


def _judged(workload: Workload, gate: ProfileGate) -> Judged:
    assessment = gate.assessment(workload)
    messages: dict[str, str] = {}
    for check, about in check_names(workload):
        outcome = gate.outcome_of(assessment, (check, about))
        name = f"{check}[{about}]" if check == "again" else check
        if outcome.kind == "fail":
            messages.setdefault(name, outcome.message)
    for metric in gate.gated(workload):
        outcome = gate.outcome(assessment, metric)
        if outcome.kind == "fail":
            messages[metric] = outcome.message
    return Judged(failed=frozenset(messages), messages=messages)


def _profile(folder: Path, switch: Path) -> Profile:
    profile = read_profiles(ROOT / "specdec.toml").chosen("smollm2-ngram")
    env = {"SPECDEC_FAULT": f"@{switch}", "PYTHONPATH": str(installed_kit(folder / "kit"))}
    return replace(
        profile,
        engine_args={**profile.engine_args, **ENGINE_ARGS, **CACHE},
        env={**profile.env, **env},
        tolerances=Tolerances(speedup_drop=SPEEDUP_DROP),
        limits=Limits(max_other_cpu_share=1.0),
        known_defects=(),
    )


def _options(folder: Path, *, is_ci: bool) -> Options:
    return Options(
        is_gpu=False,
        update=None,
        update_in_ci=False,
        profile_names=(),
        python=Path(sys.executable),
        config_file=ROOT / "specdec.toml",
        suite_folders=(),
        baselines_folder=folder / "baselines",
        report_folder=folder,
        inconclusive=None,
        strict_baselines=False,
        is_ci=is_ci,
    )
