"""Measurement: what a pair of runs says in numbers. Facts only; verdicts are floor 3's work.

A quantity that was not measured is `None`, never a stand-in such as 0 or 1. Floor 2: imports no
judgement and no engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

from pytest_specdec.counters import DraftCounters
from pytest_specdec.generation import DraftsSource, Generation, Run, RunPair
from pytest_specdec.speedup import Speedup, speedup_of, why_no_speedup
from pytest_specdec.trail import trail_of
from pytest_specdec.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMeasurement:
    """One prompt's share of the first speculative pass.

    Attributes:
        id: the prompt's `id` in its workload.
        num_output_tokens: tokens of the answer.
        num_steps: steps that gave it at least one token, prefill's included.
        token_digest: 16 hex digits over the answer's token ids.
        trail: steps by position in the answer, for answers that part from it (see `trail`); empty
            for a sampled one, which does not repeat itself.
        drafts: its own draft counters; `None` where the engine does not tell requests apart.
    """

    id: str
    num_output_tokens: int
    num_steps: int
    token_digest: str
    trail: str
    drafts: DraftCounters | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMeasurement:
    """One engine's figures.

    Attributes:
        num_passes: passes taken.
        num_output_tokens: tokens of the first pass.
        num_steps: steps of the first pass, summed over requests.
        tokens_per_step: output tokens over steps that gave one; exactly 1 for plain decoding, on
            a baseline engine that speculates more.
            `None` for a speculative engine that drafted nothing, and where no step is known.
        ttft_ms: median over all answers.
        tpot_ms: median over all answers of two tokens or more; `None` when there is none.
    """

    num_passes: int
    num_output_tokens: int
    num_steps: int
    tokens_per_step: float | None
    ttft_ms: float
    tpot_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One workload on both engines.

    Attributes:
        drafts: counts of the first speculative pass; greedy decoding repeats itself, so one pass is
            the measurement. `None` when nobody counted, which is not the same as zero.
        drafts_source: `request` when every request's own counters were summed, `engine` for the
            growth of the engine's counters.
        prompts: in the order of the pass.
        speedup: `None` when it cannot be had; then `speedup_missing` says why.
    """

    workload: str
    workload_digest: str
    concurrency: int
    baseline: EngineMeasurement
    speculative: EngineMeasurement
    drafts: DraftCounters | None
    drafts_source: DraftsSource | None
    prompts: tuple[PromptMeasurement, ...]
    speedup: Speedup | None
    speedup_missing: str | None

    @property
    def acceptance_rate(self) -> float | None:
        return None if self.drafts is None else self.drafts.acceptance_rate

    @property
    def mean_acceptance_length(self) -> float | None:
        return None if self.drafts is None else self.drafts.mean_acceptance_length

    @property
    def acceptance_rate_per_pos(self) -> tuple[float, ...] | None:
        if self.drafts is None or is_nothing_drafted(self.drafts):
            return None
        return self.drafts.acceptance_rate_per_pos

    @property
    def drafts_per_output_token(self) -> float | None:
        num_output_tokens = self.speculative.num_output_tokens
        if self.drafts is None or is_nothing_drafted(self.drafts) or num_output_tokens == 0:
            return None
        return self.drafts.num_drafts / num_output_tokens

    @property
    def tokens_per_step(self) -> float | None:
        """Of the speculative engine; beside acceptance because steps without a draft lower it."""
        return self.speculative.tokens_per_step


def measure(workload: Workload, runs: RunPair) -> Measurement:
    """The figures of one workload, from both engines' passes over it."""
    first = runs.speculative.passes[0]
    drafts, drafts_source = first.counted
    drafted = not is_nothing_drafted(drafts)
    sampled = {prompt.id for prompt in workload.prompts if not prompt.is_greedy}
    if not workload.gated:
        missing: str | None = "the workload gates nothing, so its passes are not timed"
    else:
        missing = why_no_speedup(runs) if drafted else "the speculative engine drafted nothing"
    return Measurement(
        workload=workload.name,
        workload_digest=workload.digest,
        concurrency=workload.concurrency,
        baseline=_engine(runs.baseline, is_counted=True),
        speculative=_engine(runs.speculative, is_counted=drafted),
        drafts=drafts,
        drafts_source=drafts_source,
        prompts=tuple(
            _prompt(generation, is_greedy=generation.prompt_id not in sampled)
            for generation in first.generations
        ),
        speedup=None if missing else speedup_of(runs),
        speedup_missing=missing,
    )


def output_tokens_per_s(run: Run) -> float | None:
    """The geometric mean over passes, as in the speedup; `None` where a pass has no such figure."""
    if any(each.wall_s <= 0 or not each.num_output_tokens for each in run.passes):
        return None
    return geometric_mean(each.output_tokens_per_s for each in run.passes)


def is_nothing_drafted(drafts: DraftCounters | None) -> bool:
    """Whether drafts were counted and there were none; unknown counts are not none."""
    return drafts is not None and drafts.num_draft_tokens == 0


def token_digest(token_ids: Sequence[int]) -> str:
    """16 hex digits that tell answers apart without storing them."""
    return hashlib.sha256(json.dumps(list(token_ids)).encode()).hexdigest()[:16]


def _prompt(generation: Generation, *, is_greedy: bool) -> PromptMeasurement:
    return PromptMeasurement(
        id=generation.prompt_id,
        num_output_tokens=len(generation.token_ids),
        num_steps=generation.num_steps,
        token_digest=token_digest(generation.token_ids),
        trail=trail_of(generation.token_ids, generation.step_tokens) if is_greedy else "",
        drafts=generation.drafts,
    )


def _engine(run: Run, *, is_counted: bool) -> EngineMeasurement:
    first = run.passes[0]
    answers = [generation for each in run.passes for generation in each.generations]
    tpots_ms = [answer.tpot_ms for answer in answers if answer.tpot_ms is not None]
    return EngineMeasurement(
        num_passes=len(run.passes),
        num_output_tokens=first.num_output_tokens,
        num_steps=first.num_steps,
        tokens_per_step=first.num_output_tokens / first.num_steps
        if is_counted and first.num_steps
        else None,
        ttft_ms=median(answer.ttft_ms for answer in answers),
        tpot_ms=median(tpots_ms) if tpots_ms else None,
    )
