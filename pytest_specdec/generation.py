"""What an engine said: one answer, one timed pass over a workload, one run of several passes.

These are facts, counted and timed; judging them is the work of higher floors. JSON both ways, so
that what a report or a recording holds can be judged again: a log-probability that JSON has no
number for is a word there, as `null` is a token that has none. Floor 0: imports only its own floor.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pytest_specdec.conditions import Conditions
from pytest_specdec.counters import DraftCounters, Usage, total

Role = Literal["baseline", "speculative"]
ROLES: tuple[Role, Role] = ("baseline", "speculative")
DraftsSource = Literal["request", "engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One of the further answers that `n` asked for: what is told of each of them.

    Attributes: those of `Generation`.
    """

    token_ids: tuple[int, ...]
    text: str
    finish_reason: str
    stop_reason: int | str | None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Completion:
        return cls(**{**data, "token_ids": tuple(data["token_ids"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One engine's answer to one prompt.

    Attributes:
        prompt_id: the prompt's `id` in its workload.
        prompt_token_ids: the prompt after chat template and tokenizer.
        token_ids: the answer, end token included where the engine gave one.
        text: the answer as text, special tokens left out.
        finish_reason: vLLM's word: `stop`, `length`, `abort`, `error`.
        stop_reason: the stop string or token id that ended it, if any.
        step_tokens: tokens that each engine step gave this request, prefill's included; steps that
            gave it none are left out.
        ttft_ms: arrival to first token.
        tpot_ms: mean time per output token after the first; `None` for answers of one token.
        drafts: this request's draft counters; `None` where the engine does not tell them apart,
            which is never the same as zero.
        usage: tokens as the engine counted them; `None` where it did not.
        logprobs: natural-log probability of each token, `None` for a token that has none; `None`
            altogether where the prompt did not ask.
        others: the further answers that `n` asked for.
        bad_words_token_ids: the sequences of tokens that vLLM bars for the request's `bad_words`;
            `None` where it did not tell.
    """

    prompt_id: str
    prompt_token_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    text: str
    finish_reason: str
    stop_reason: int | str | None
    step_tokens: tuple[int, ...]
    ttft_ms: float
    tpot_ms: float | None
    drafts: DraftCounters | None
    usage: Usage | None = None
    logprobs: tuple[float | None, ...] | None = None
    others: tuple[Completion, ...] = ()
    bad_words_token_ids: tuple[tuple[int, ...], ...] | None = None

    @property
    def answers(self) -> tuple[Generation, ...]:
        """This one and the further ones, each by itself, with what is told of it."""
        others = (
            replace(
                self,
                token_ids=each.token_ids,
                text=each.text,
                finish_reason=each.finish_reason,
                stop_reason=each.stop_reason,
                step_tokens=(),
                tpot_ms=None,
                drafts=None,
                usage=None,
                logprobs=None,
                others=(),
            )
            for each in self.others
        )
        return (self, *others)

    @property
    def num_steps(self) -> int:
        """Engine steps that gave this request at least one token."""
        return len(self.step_tokens)

    def to_json(self) -> dict[str, Any]:
        return asdict(self, dict_factory=_written)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Generation:
        drafts, usage = data.get("drafts"), data.get("usage")
        barred = data.get("bad_words_token_ids")
        return cls(
            **{
                **data,
                "prompt_token_ids": tuple(data["prompt_token_ids"]),
                "token_ids": tuple(data["token_ids"]),
                "step_tokens": tuple(data["step_tokens"]),
                "drafts": None if drafts is None else counters_from_json(drafts),
                "usage": None if usage is None else Usage(**usage),
                "logprobs": _read(data.get("logprobs")),
                "others": tuple(map(Completion.from_json, data.get("others", ()))),
                "bad_words_token_ids": None if barred is None else tuple(map(tuple, barred)),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One timed walk over a workload by one engine.

    Attributes:
        generations: in the workload's order.
        wall_s: first request in to last token out, in seconds.
        drafts: growth of the engine's own counters over the pass; `None` without speculation.
        usage: growth of the engine's own token counters; `None` where they were not read.
    """

    generations: tuple[Generation, ...]
    wall_s: float
    drafts: DraftCounters | None
    usage: Usage | None = None

    @property
    def num_output_tokens(self) -> int:
        return sum(len(generation.token_ids) for generation in self.generations)

    @property
    def num_steps(self) -> int:
        """Steps summed over requests: decode steps plus one prefill for each request."""
        return sum(generation.num_steps for generation in self.generations)

    @property
    def counted(self) -> tuple[DraftCounters | None, DraftsSource | None]:
        """Draft counts and who counted: every request its own, or else the engine; `None` twice
        where neither did."""
        known = [each.drafts for each in self.generations if each.drafts is not None]
        if known and len(known) == len(self.generations):
            return total(known), "request"
        return self.drafts, None if self.drafts is None else "engine"

    @property
    def output_tokens_per_s(self) -> float:
        return self.num_output_tokens / self.wall_s

    def generation(self, prompt_id: str) -> Generation:
        """The answer to one prompt. Raises KeyError for a prompt the pass does not hold."""
        for generation in self.generations:
            if generation.prompt_id == prompt_id:
                return generation
        raise KeyError(prompt_id)

    def to_json(self) -> dict[str, Any]:
        return asdict(self, dict_factory=_written)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Pass:
        drafts, usage = data["drafts"], data.get("usage")
        return cls(
            generations=tuple(Generation.from_json(each) for each in data["generations"]),
            wall_s=data["wall_s"],
            drafts=None if drafts is None else counters_from_json(drafts),
            usage=None if usage is None else Usage(**usage),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One engine's passes over one workload; warm-up is not among them.

    Attributes:
        role: which engine of the pair.
        workload: the workload's name.
        passes: in the order they were taken; at least one.
    """

    role: Role
    workload: str
    passes: tuple[Pass, ...]

    @property
    def generations(self) -> tuple[Generation, ...]:
        """The first pass's answers: what the checks read."""
        return self.passes[0].generations

    @property
    def drafts(self) -> DraftCounters | None:
        """The engine's counters over all passes; `None` without speculation."""
        counted = [each.drafts for each in self.passes if each.drafts is not None]
        return total(counted) if counted else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self, dict_factory=_written)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        return cls(
            role=data["role"],
            workload=data["workload"],
            passes=tuple(Pass.from_json(each) for each in data["passes"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenScore:
    """One token under an engine's own distribution, given everything before it.

    Attributes:
        token_id: the token scored.
        text: the token as text.
        logprob: its natural-log probability.
        rank: 1 for the most likely token.
        argmax_token_id: the most likely token there.
        argmax_text: that token as text.
        argmax_logprob: its natural-log probability.
        top_logprobs: of the most likely tokens there, falling; empty where they were not asked for.
    """

    token_id: int
    text: str
    logprob: float
    rank: int
    argmax_token_id: int
    argmax_text: str
    argmax_logprob: float
    top_logprobs: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self, dict_factory=_written)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TokenScore:
        return cls(
            **{key: _read(value) if key in LOGPROBS else value for key, value in data.items()}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Retake:
    """Both engines' answers to a workload's prompts once more, under other circumstances; not
    timed.

    Attributes:
        circumstance: what is different, as the workload's `again` names it.
        baseline, speculative: one pass each; `None` where the engine cannot be brought there.
        missing: why there is no pass; `None` where there is one.
    """

    circumstance: str
    baseline: Pass | None
    speculative: Pass | None
    missing: str | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Retake:
        passes = {role: data[role] and Pass.from_json(data[role]) for role in ROLES}
        return cls(circumstance=data["circumstance"], missing=data["missing"], **passes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleScores:
    """One sampled answer under the baseline engine's distribution; of several to one prompt, each.

    Attributes:
        role: whose answer it is.
        scores: one for each of its tokens, but for the last one of an answer that fills the context
            window.
    """

    role: Role
    prompt_id: str
    scores: tuple[TokenScore, ...]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SampleScores:
        scores = tuple(TokenScore.from_json(each) for each in data["scores"])
        return cls(role=data["role"], prompt_id=data["prompt_id"], scores=scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What an engine did with a prompt that is to be refused under speculation.

    Attributes:
        said: the engine's reason; `None` where it answered.
    """

    role: Role
    prompt_id: str
    said: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPair:
    """Both engines' runs over one workload: what checks and measurement read.

    Attributes:
        order: the role of each pass in the order taken, such as baseline, speculative,
            speculative, baseline (ABBA).
        num_loads: engine starts that the passes were taken in, equally many in each.
        conditions: what else went on, for each stretch of passes.
        retakes: the prompts answered again, under other circumstances.
        sample_scores: the sampled answers of the first passes, as the baseline engine sees them.
        refusals: what both engines did with the prompts that are to be refused; those are in no
            pass.
    """

    baseline: Run
    speculative: Run
    order: tuple[Role, ...]
    num_loads: int = 1
    conditions: tuple[Conditions, ...] = ()
    retakes: tuple[Retake, ...] = ()
    sample_scores: tuple[SampleScores, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def passes_per_load(self) -> int:
        """Of each engine."""
        return len(self.baseline.passes) // self.num_loads

    @property
    def workload(self) -> str:
        return self.baseline.workload

    def run(self, role: Role) -> Run:
        """One engine's run."""
        return self.baseline if role == "baseline" else self.speculative

    def to_json(self) -> dict[str, Any]:
        return asdict(self, dict_factory=_written)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunPair:
        return cls(
            baseline=Run.from_json(data["baseline"]),
            speculative=Run.from_json(data["speculative"]),
            order=tuple(data["order"]),
            num_loads=data["num_loads"],
            conditions=tuple(Conditions.from_json(each) for each in data["conditions"]),
            retakes=tuple(Retake.from_json(each) for each in data["retakes"]),
            sample_scores=tuple(SampleScores.from_json(each) for each in data["sample_scores"]),
            refusals=tuple(Refusal(**each) for each in data["refusals"]),
        )


def counters_from_json(data: Mapping[str, Any]) -> DraftCounters:
    """Draft counters out of a JSON object with their four names."""
    return DraftCounters(
        **{**data, "num_accepted_tokens_per_pos": tuple(data["num_accepted_tokens_per_pos"])}
    )


LOGPROBS = frozenset({"logprobs", "logprob", "argmax_logprob", "top_logprobs"})


def _written(facts: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dataclass's fields as JSON has them."""
    return {key: _in_words(value) if key in LOGPROBS else value for key, value in facts}


def _in_words(value: Any) -> Any:
    """Log-probabilities with `NaN`, `Infinity` or `-Infinity` in place of what is no number."""
    if isinstance(value, tuple):
        return tuple(map(_in_words, value))
    return value if value is None or math.isfinite(value) else json.dumps(value)


def _read(value: Any) -> Any:
    """Log-probabilities, each a number, its word, or none."""
    if isinstance(value, list | tuple):
        return tuple(map(_read, value))
    return None if value is None else float(value)
