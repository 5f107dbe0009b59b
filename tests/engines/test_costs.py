"""What engines take, and what their steps cost: by stand-ins for engines that take their time by
how many requests are in flight."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.engines.cost import EngineCost
from pytest_specdec.engines.costing import cost_of
from pytest_specdec.engines.draft_alone import draft_profile
from pytest_specdec.engines.protocol import Engine, EngineFacts
from pytest_specdec.engines.step_costing import NUM_TOKENS, NotMeasured, StepCosting, ratio
from pytest_specdec.engines.step_costs import StepCosts
from pytest_specdec.errors import EngineDied, EngineStartError, RequestRefused
from pytest_specdec.generation import Generation, Pass, Role
from pytest_specdec.profile import BaselineEngine, Profile
from pytest_specdec.workload import Prompt, Workload
from tests.weight_files import write_weights

GIB = 2**30
CONFIG = {
    "model_config.dtype": "torch.float32",
    "cache_config.num_gpu_blocks": 100,
    "cache_config.block_size": 16,
    "scheduler_config.max_num_seqs": 16,
}
NGRAM = {"method": "ngram", "num_speculative_tokens": 3}
DRAFT = {"method": "draft_model", "model": "./draft", "num_speculative_tokens": 3}


def facts(**config: Any) -> EngineFacts:
    return EngineFacts(versions={}, load_s=2.5, config={**CONFIG, **config})


def profile(root: Path, config: Any = NGRAM, **changes: Any) -> Profile:
    own = Profile(name="small", root=root, device="cpu", model="./t", speculative_config=config)
    return replace(own, **changes)


# What engines took


def test_the_cost_of_a_pair(tmp_path: Path) -> None:
    write_weights(tmp_path / "t" / "model.safetensors", w=("BF16", [100, 1000]))
    write_weights(tmp_path / "draft" / "model.safetensors", w=("BF16", [10, 1000]))
    both: dict[Role, EngineFacts] = {
        "baseline": facts(),
        "speculative": replace(facts(**{"cache_config.num_gpu_blocks": 80}), load_s=3.5),
    }
    cost = cost_of(profile(tmp_path, DRAFT), both, {"baseline": GIB})
    assert cost is not None
    assert cost.baseline == EngineCost(
        load_s=2.5,
        weights_bytes=400_000,
        kv_cache_blocks=100,
        kv_cache_tokens=1600,
        peak_memory_bytes=GIB,
    )
    assert cost.speculative == EngineCost(
        load_s=3.5, weights_bytes=440_000, kv_cache_blocks=80, kv_cache_tokens=1280
    )
    assert cost.draft_weights_bytes == 40_000
    assert cost.size_ratio == 10


def test_a_method_without_a_model_adds_no_weights(tmp_path: Path) -> None:
    write_weights(tmp_path / "t" / "model.safetensors", w=("F32", [1000]))
    cost = cost_of(profile(tmp_path), {"baseline": facts(), "speculative": facts()}, {})
    assert cost is not None
    assert cost.baseline.weights_bytes == cost.speculative.weights_bytes == 4000
    assert (cost.draft_weights_bytes, cost.size_ratio) == (None, None)


def test_what_is_not_known_is_none(tmp_path: Path) -> None:
    write_weights(tmp_path / "t" / "model.safetensors", w=("F32", [1000]))
    bare = EngineFacts(versions={}, load_s=1.0, config={})
    # The draft's files cannot be read: the sum would be too small.
    cost = cost_of(profile(tmp_path, DRAFT), {"baseline": bare, "speculative": bare}, {})
    assert cost is not None
    assert cost.speculative == EngineCost(load_s=1.0)
    assert cost_of(profile(tmp_path), {"baseline": bare}, {}) is None
    assert cost_of(profile(tmp_path), {}, {}) is None


# What steps cost


@dataclass
class Timed:
    """An engine whose steps take as long as it is told, by the number in flight."""

    step_ms: Callable[[int], float]
    facts: EngineFacts = field(default_factory=facts)
    prompt_tokens: int = 40
    asked: list[tuple[int, str | None]] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)
    failure: Exception | None = None
    answer_tokens: int = NUM_TOKENS

    def generate(
        self, prompts: Sequence[Prompt], *, concurrency: int, circumstance: str | None = None
    ) -> Pass:
        assert concurrency == len(prompts)
        self.asked.append((concurrency, circumstance))
        self.requests += [prompt.request for prompt in prompts]
        if self.failure is not None:
            raise self.failure
        tpot_ms = self.step_ms(concurrency)
        answers = [self._answer(prompt, at, tpot_ms) for at, prompt in enumerate(prompts)]
        return Pass(generations=tuple(answers), wall_s=1.0, drafts=None)

    def _answer(self, prompt: Prompt, at: int, tpot_ms: float) -> Generation:
        """Earlier ones had prompts read beside them."""
        is_last = at == 0  # the order of prompts is not that of their starts
        return Generation(
            prompt_id=prompt.id,
            prompt_token_ids=(1,) * self.prompt_tokens,
            token_ids=(1,) * self.answer_tokens,
            text="",
            finish_reason="length",
            stop_reason=None,
            step_tokens=(1,) * self.answer_tokens,
            ttft_ms=50.0 if is_last else 20.0,
            tpot_ms=None if self.answer_tokens == 1 else tpot_ms if is_last else 9 * tpot_ms,
            drafts=None,
        )


@dataclass
class Told:
    """A watch that keeps what it is told."""

    phases: list[str] = field(default_factory=list)

    def phase(self, text: str) -> None:
        self.phases.append(text)

    def progress(self, text: str) -> None:
        """Nobody looks."""


def workload(num_prompts: int = 6, concurrency: int = 2, **fields: Any) -> Workload:
    prompts = [
        Prompt(
            id=f"p{number}",
            request={"messages": [{"role": "user", "content": f"{number}"}], **fields},
            json_schema=None,
            sql=None,
            line=number,
        )
        for number in range(num_prompts)
    ]
    return Workload(
        name="code",
        path=Path("code.jsonl"),
        description="",
        concurrency=concurrency,
        prompts=tuple(prompts),
    )


@dataclass
class Bench:
    """Costs of steps with a baseline engine and a draft model of the test's."""

    profile: Profile
    baseline: Any
    draft: Any = None
    watch: Told = field(default_factory=Told)
    num_drafts: int = 0

    def costing(self) -> StepCosting:
        return StepCosting(self.profile, engine=self._engine, draft=self._draft, watch=self.watch)

    def of(self, asked: Workload) -> StepCosts:
        costs = self.costing().of(asked)
        assert costs is not None
        return costs

    def _engine(self, role: Role) -> Engine:
        assert role == "baseline"
        engine: Engine = self.baseline
        return engine

    def _draft(self) -> Engine:
        self.num_drafts += 1
        if isinstance(self.draft, Exception):
            raise self.draft
        engine: Engine = self.draft
        return engine


def linear(num_in_flight: int) -> float:
    return 10.0 + num_in_flight


@pytest.mark.parametrize("layout", ["concurrent", "sequential"])
def test_both_costs_are_in_plain_steps(tmp_path: Path, layout: Any) -> None:
    bench = Bench(
        profile(tmp_path, DRAFT, layout=layout), Timed(linear), Timed(lambda number: 2.0 * number)
    )
    # 8 in flight to 2 in flight; the draft at 2.
    costs = bench.of(workload())
    assert costs.draft_ratio == pytest.approx(4 / 12)
    assert costs.verification_ratio == pytest.approx(18 / 12)
    assert costs.notes == ()
    assert {number for number, _ in bench.baseline.asked} == {2, 8}
    assert {number for number, _ in bench.draft.asked} == {2}
    assert "code: costs of steps, 2 in flight" in bench.watch.phases


def test_prompts_are_asked_plainly_and_read_from_the_cache(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "temperature": 1.0,
        "max_tokens": 500,
        "response_format": {"type": "json_object"},
    }
    bench = Bench(profile(tmp_path), Timed(linear))
    bench.of(workload(**fields))
    # Only the first pass is after another workload's; the cache is emptied for it.
    assert [how for _, how in bench.baseline.asked].count(None) == 1
    assert bench.baseline.asked[0] == (2, None)
    for request in bench.baseline.requests:
        assert request["messages"][0]["content"] in ("0", "1")
        assert {**request, "messages": None} == {
            "messages": None,
            "max_tokens": NUM_TOKENS,
            "ignore_eos": True,
            "temperature": 0,
        }


def test_no_more_are_in_flight_than_there_are_prompts(tmp_path: Path) -> None:
    bench = Bench(profile(tmp_path), Timed(linear))
    bench.of(workload(num_prompts=3, concurrency=5))
    assert {number for number, _ in bench.baseline.asked} == {3, 12}


@pytest.mark.parametrize("method", ["ngram", "ngram_gpu", "suffix"])
def test_drafting_without_a_model_costs_nothing(tmp_path: Path, method: str) -> None:
    config = {"method": method, "num_speculative_tokens": 3}
    bench = Bench(profile(tmp_path, config), Timed(linear))
    assert bench.of(workload()).draft_ratio == 0.0
    assert bench.num_drafts == 0


def test_a_head_of_the_target_has_no_steps_of_its_own(tmp_path: Path) -> None:
    config = {**DRAFT, "method": "eagle3"}
    bench = Bench(profile(tmp_path, config), Timed(linear))
    costs = bench.of(workload())
    assert (costs.draft_ratio, bench.num_drafts) == (None, 0)
    assert costs.notes == ("draft: what `eagle3` drafts with is no model of its own",)
    assert f"note: {costs.notes[0]}" in bench.watch.phases


def test_each_load_of_the_same_prompts_is_measured_once(tmp_path: Path) -> None:
    bench = Bench(profile(tmp_path), Timed(linear))
    costing = bench.costing()
    first = costing.of(workload())
    num_asked = len(bench.baseline.asked)
    # Another temperature is no other step.
    assert costing.of(workload(temperature=1.0)) is first
    assert len(bench.baseline.asked) == num_asked
    costing.of(workload(concurrency=3))
    assert len(bench.baseline.asked) == 2 * num_asked


@pytest.mark.parametrize(
    ("config", "in_flight", "note"),
    [
        (
            {"scheduler_config.max_num_seqs": 7},
            2,
            "verification: it takes 8 requests in flight, and `max_num_seqs` is 7",
        ),
        # 40 tokens of a prompt and 24 of an answer are 4 blocks of 16; one block is vLLM's own.
        (
            {"cache_config.num_gpu_blocks": 32},
            2,
            "verification: 8 requests in flight take 32 blocks of KV cache, and there are 32",
        ),
    ],
)
def test_what_does_not_fit_the_engine_is_not_measured(
    tmp_path: Path, config: Any, in_flight: int, note: str
) -> None:
    bench = Bench(profile(tmp_path), Timed(linear, facts=facts(**config)))
    costs = bench.of(workload(concurrency=in_flight))
    assert costs == StepCosts(draft_ratio=0.0, verification_ratio=None, notes=(note,))
    assert f"note: {note}" in bench.watch.phases


@pytest.mark.parametrize(
    "config",
    [
        {"scheduler_config.max_num_seqs": 8, "cache_config.num_gpu_blocks": 33},
        {"scheduler_config.max_num_seqs": None, "cache_config.num_gpu_blocks": None},
    ],
)
def test_what_fits_is_measured(tmp_path: Path, config: Any) -> None:
    bench = Bench(profile(tmp_path), Timed(linear, facts=facts(**config)))
    assert bench.of(workload()).verification_ratio == pytest.approx(1.5)


def test_without_a_number_of_draft_tokens_none_are_verified(tmp_path: Path) -> None:
    bench = Bench(profile(tmp_path, {"method": "suffix"}), Timed(linear))
    assert bench.of(workload()).notes == (
        "verification: `speculative_config` names no `num_speculative_tokens`",
    )


def test_prompts_that_fill_the_window_have_no_steps(tmp_path: Path) -> None:
    bench = Bench(profile(tmp_path), Timed(linear, answer_tokens=1))
    assert bench.of(workload()).notes == ("verification: prompt `p0` leaves no room for an answer",)


@pytest.mark.parametrize(
    "draft",
    [
        EngineStartError("it failed while loading: too long\nlog: x"),
        Timed(linear, failure=EngineDied("it failed while loading: too long\nlog: x")),
    ],
)
def test_a_draft_that_cannot_run_alone_is_a_note(tmp_path: Path, draft: Any) -> None:
    bench = Bench(profile(tmp_path, DRAFT), Timed(linear), draft)
    costs = bench.of(workload())
    assert costs.draft_ratio is None
    assert costs.verification_ratio == pytest.approx(1.5)
    assert costs.notes == ("draft: it failed while loading: too long",)


@pytest.mark.parametrize("error", [EngineDied("gone"), RequestRefused("too long")])
def test_a_baseline_engine_that_fails_is_an_error(tmp_path: Path, error: Exception) -> None:
    bench = Bench(profile(tmp_path, DRAFT), Timed(linear, failure=error), Timed(linear))
    with pytest.raises(type(error)):
        bench.of(workload())


def test_where_the_baseline_engine_speculates_no_step_is_plain(tmp_path: Path) -> None:
    both = profile(tmp_path, DRAFT, baseline=BaselineEngine(speculative_config=NGRAM))
    bench = Bench(both, Timed(linear))
    assert bench.costing().of(workload()) is None
    assert bench.baseline.asked == []


@pytest.mark.parametrize("growth", [1.01, 1.3])
def test_a_drift_of_the_machine_cancels(growth: float) -> None:
    now = [10.0]

    def step(cost: float) -> Callable[[], float]:
        def timed() -> float:
            now[0] += growth - 1
            return cost * now[0]

        return timed

    assert ratio(step(1.0), step(0.5)) == pytest.approx(0.5, abs=1e-9)
    # In turn it stays in.
    assert ratio(step(1.0), step(0.5), takes_turns=False) > 0.5 * (1 + (growth - 1) / 5)


def test_one_pass_that_was_disturbed_does_not_count() -> None:
    calls = [0]

    def step() -> float:
        calls[0] += 1
        return 100.0 if calls[0] == 4 else 1.0

    assert ratio(lambda: 2.0, step) == 0.5


@pytest.mark.parametrize("takes_turns", [True, False])
def test_passes_that_scatter_are_no_figure(takes_turns: bool) -> None:
    times = iter([1.0, 1.0, 1.0, 2.0, 2.0, 5.0, 5.0])
    with pytest.raises(NotMeasured, match=r"^its passes scatter from \S+ to \S+ .*; other work"):
        ratio(lambda: 2.0, lambda: next(times), takes_turns=takes_turns)


# The draft model's own profile


def test_the_draft_alone_has_what_both_engines_have(tmp_path: Path) -> None:
    shared = {"dtype": "float32", "max_model_len": 512, "quantization": "fp8", "revision": "x"}
    own = {"max_model_len": 256, "draft_tensor_parallel_size": 1, "quantization": "awq"}
    alone = draft_profile(
        profile(
            tmp_path,
            {**DRAFT, **own},
            engine_args=shared,
            baseline=BaselineEngine(python="old/bin/python"),
        )
    )
    assert alone.engine_arguments("baseline") == {
        "model": str(tmp_path / "draft"),
        "dtype": "float32",
        "max_model_len": 256,
        "tensor_parallel_size": 1,
        "quantization": "awq",
    }
    assert alone.name == "small, its draft model alone"
    # What it is told of an interpreter is the pair's to say.
    assert alone.baseline_python is None
    json.dumps(alone.engine_arguments("baseline"))
