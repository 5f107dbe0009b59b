"""The engine's own program: one vLLM engine, spoken to over a private pipe.

Run by path under any interpreter that has vLLM; pytest-specdec need not be installed there, so an
old and a new vLLM can be compared from one pytest session. The only file that imports vllm or
torch, and it does so inside functions; everything else here is the standard library.

    python worker.py COMMANDS_FD REPLIES_FD

One JSON object a line, both ways. A command is `{"op": name, ...}`; its answer is
`{"result": ...}` or `{"error": {"kind": ..., "message": ...}}`. While it works the worker also
sends `{"progress": {...}}`, now and then and only where the engine got on, so that the parent can
tell a slow engine from a hung one. Standard output and error are the engine's log.

vLLM from 0.27.1 on is served by asking what is there, never by comparing versions.
"""

from __future__ import annotations

import ctypes
import dataclasses
import difflib
import importlib.metadata
import json
import os
import platform
import select
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, TextIO

PROGRESS_INTERVAL_S = 0.5
LONG_ANSWER_TOKENS = 8
NUM_BURSTS = 3
BURST_SIZE = 8
BURST_ANSWER_TOKENS = 64
NUM_TOP = 16
NOT_SAMPLING = frozenset({"messages", "response_format", "structured_outputs", "context_left"})
RESOLVED = (
    "model_config.dtype",
    "model_config.max_model_len",
    "model_config.hf_text_config.vocab_size",
    "model_config.enforce_eager",
    "model_config.quantization",
    "scheduler_config.async_scheduling",
    "scheduler_config.max_num_seqs",
    "scheduler_config.max_num_batched_tokens",
    "scheduler_config.max_num_scheduled_tokens",
    "scheduler_config.enable_chunked_prefill",
    "cache_config.block_size",
    "cache_config.cache_dtype",
    "cache_config.num_gpu_blocks",
    "cache_config.enable_prefix_caching",
    "attention_config.backend",
    "compilation_config.mode",
    "compilation_config.cudagraph_mode",
    "parallel_config.tensor_parallel_size",
    "use_v2_model_runner",
)
# What grows, or moves, while an engine works. Output tokens are counted before they are told to
# anybody, and a long prompt is read in parts, each of which takes a place in the cache.
SIGNS_OF_WORK = ("vllm:prompt_tokens", "vllm:generation_tokens", "vllm:kv_cache_usage_perc")
PR_SET_PDEATHSIG = 1
Progress = Callable[..., None]


class Refused(Exception):
    """A command the worker understood and will not carry out; the engine is unharmed."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Engine:
    """One vLLM engine and what is asked of it."""

    def __init__(self, llm: Any, progress: Progress) -> None:
        self._llm = llm
        self._engine = llm.llm_engine
        self._tokenizer = llm.get_tokenizer()
        self._pulse = Pulse(llm, progress)
        self._num_requests = 0
        self._events = Events(self, llm)

    def generate(
        self,
        requests: Sequence[Mapping[str, Any]],
        concurrency: int,
        circumstance: str | None,
    ) -> dict[str, Any]:
        """One pass in a closed loop: exactly `concurrency` requests in flight while any wait.

        The prefix cache is emptied first, so that no pass gains from an earlier one.

        Args:
            circumstance: what is to be different, `None` for nothing.
        """
        streamed = circumstance != "not-streamed"
        prepared = [
            (self._token_ids(each), self._sampling_params(each, streamed)) for each in requests
        ]
        if circumstance is not None:
            self._events.bring_about(circumstance, prepared)
        if circumstance != "warm-prefix-cache":
            self._llm.reset_prefix_cache()
        fillers: list[str] = []
        if circumstance == "under-preemption":
            fillers = self._events.fill_cache([ids for ids, _ in prepared[:concurrency]])
        counted = [self._draft_counters()]
        usage = self._usage()
        start = time.perf_counter()
        try:
            answers = self._answers(prepared, concurrency, counted)
        finally:
            self._engine.abort_request(fillers)
        wall_s = time.perf_counter() - start
        counted.append(self._draft_counters())
        generations = [answer.to_json() for answer in answers]
        if len(counted) == len(generations) + 1 and not fillers:
            # Older vLLM counts for the whole engine only; alone, the engine is the request.
            for answer, (before, after) in zip(generations, pairwise(counted), strict=True):
                answer["drafts"] = answer["drafts"] or _grown(after, before)
        for answer, request, (_, params) in zip(generations, requests, prepared, strict=True):
            if "bad_words" in request:
                answer["bad_words_token_ids"] = self._barred(params)
        return {
            "generations": generations,
            "wall_s": wall_s,
            "drafts": _grown(counted[-1], counted[0]),
            "usage": {name: count - usage[name] for name, count in self._usage().items()},
        }

    def _answers(
        self,
        prepared: Sequence[tuple[Sequence[int], Any]],
        concurrency: int,
        counted: list[dict[str, Any] | None],
    ) -> list[Answer]:
        """The answers in order; alone in flight, `counted` gets the counters between them."""
        pending = deque(prepared)
        answers: list[Answer] = []
        in_flight: dict[str, Answer] = {}

        def so_far() -> dict[str, int]:
            return {
                "num_finished": len(answers) - len(in_flight),
                "num_output_tokens": sum(len(each.token_ids) for each in answers),
            }

        try:
            while pending or in_flight:
                while pending and len(in_flight) < concurrency:
                    token_ids, params = pending.popleft()
                    in_flight[self.add(token_ids, params)] = answer = Answer(token_ids)
                    answers.append(answer)
                ended = [self._is_last(output, in_flight) for output in self._engine.step()]
                if any(ended) and concurrency == 1 and pending:
                    counted.append(self._draft_counters())
                self._pulse.beat(so_far)
        finally:
            # A refused prompt must not leave the others running into the next pass.
            self._engine.abort_request(list(in_flight))
        return answers

    @staticmethod
    def _is_last(output: Any, in_flight: dict[str, Answer]) -> bool:
        """Adds an output to its answer; whether it ended one whose drafts vLLM does not tell."""
        if output.request_id not in in_flight:
            return False  # it only fills the cache
        in_flight[output.request_id].add(output)
        if not output.finished:
            return False
        del in_flight[output.request_id]
        return not _tells_drafts(output)

    def score(self, prompt_token_ids: Sequence[int], token_ids: Sequence[int]) -> list[Any]:
        """Each of `token_ids` under this engine's distribution, from one prefill.

        Sampling masks (a grammar, allowed tokens) are not applied: these are the model's own
        log-probabilities.
        """
        from vllm import SamplingParams

        sequence, num_top = [*prompt_token_ids, *token_ids], self._num_top()
        params = SamplingParams(
            temperature=0, max_tokens=1, prompt_logprobs=num_top, detokenize=True
        )
        request_id = self.add(sequence, params)
        scored: Sequence[Mapping[int, Any]] = ()
        while self._engine.has_unfinished_requests():
            for output in self.step():
                if output.request_id == request_id and output.prompt_logprobs:
                    scored = output.prompt_logprobs
        return [
            _token_score(token_id, scored[len(prompt_token_ids) + index], num_top)
            for index, token_id in enumerate(token_ids)
        ]

    def _num_top(self) -> int:
        """How many of the most likely tokens are asked for: no more than this engine gives."""
        limit = _follow(self._engine.vllm_config, "model_config.max_logprobs")
        return NUM_TOP if limit is None or limit < 0 else min(NUM_TOP, max(1, limit))

    def resolved_config(self) -> dict[str, Any]:
        """What vLLM made of its arguments, so that a difference between two engines is seen."""
        return {path: _plain(_follow(self._engine.vllm_config, path)) for path in RESOLVED}

    def _token_ids(self, request: Mapping[str, Any]) -> list[int]:
        try:
            encoded = self._tokenizer.apply_chat_template(
                list(request["messages"]), add_generation_prompt=True, tokenize=True
            )
        except Exception as error:
            raise Refused("request", f"the chat template failed: {error}") from error
        # transformers 5 answers a mapping where 4 answered the list itself.
        token_ids = list(encoded["input_ids"] if isinstance(encoded, Mapping) else encoded)
        if "context_left" not in request:
            return token_ids
        length = self._engine.vllm_config.model_config.max_model_len - request["context_left"]
        if length < len(token_ids):
            raise Refused("request", f"`context_left` of the prompt's {len(token_ids)} tokens")
        said = self._tokenizer.encode(request["messages"][-1]["content"], add_special_tokens=False)
        if not said:
            raise Refused(
                "request", "`context_left` repeats the last message, which is no token long"
            )
        return [*_repeated(said, length - len(token_ids)), *token_ids]

    def _sampling_params(self, request: Mapping[str, Any], streamed: bool) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        given = {key: value for key, value in request.items() if key not in NOT_SAMPLING}
        fields = {"temperature": 0, **given}
        if "logit_bias" in given:  # JSON has no other keys than strings
            fields["logit_bias"] = {int(key): bias for key, bias in given["logit_bias"].items()}
        kind = RequestOutputKind.DELTA if streamed else RequestOutputKind.FINAL_ONLY
        try:
            if (constraint := _constraint(request)) is not None:
                fields["structured_outputs"] = constraint
            return SamplingParams(**fields, output_kind=kind)
        except _refusals() as error:
            raise Refused("request", f"vLLM refused the sampling parameters: {error}") from error

    def _barred(self, params: Any) -> list[list[int]]:
        """The sequences of tokens that vLLM bars for `bad_words`. It makes them of a copy of its
        own for each request, so they are made once more."""
        told = params.clone()
        told.update_from_tokenizer(self._tokenizer)
        return [list(token_ids) for token_ids in told.bad_words_token_ids]

    def add(self, token_ids: Sequence[int], params: Any) -> str:
        request_id = f"specdec-{self._num_requests}"
        self._num_requests += 1
        try:
            self._engine.add_request(request_id, {"prompt_token_ids": list(token_ids)}, params)
        except _refusals() as error:
            raise Refused("request", f"vLLM refused the request: {error}") from error
        return request_id

    def step(self) -> list[Any]:
        """One step of what is no part of a pass."""
        outputs: list[Any] = self._engine.step()
        self._pulse.beat()
        return outputs

    def _draft_counters(self) -> dict[str, Any] | None:
        """vLLM's cumulative counters, summed over data-parallel engines; `None` without
        speculation."""
        counted: dict[str, Any] = {
            "num_drafts": 0,
            "num_draft_tokens": 0,
            "num_accepted_tokens": 0,
            "num_accepted_tokens_per_pos": [],
        }
        seen = False
        for metric in self._llm.get_metrics():
            name = metric.name.removeprefix("vllm:spec_decode_")
            if name not in counted:
                continue
            seen = True
            if name == "num_accepted_tokens_per_pos":
                counted[name] = _sum_per_pos(counted[name], metric.values)
            else:
                counted[name] += metric.value
        return counted if seen else None

    def _usage(self) -> dict[str, int]:
        """vLLM's cumulative token counters, summed over data-parallel engines."""
        names = {
            "vllm:prompt_tokens": "num_prompt_tokens",
            "vllm:generation_tokens": "num_generation_tokens",
            "vllm:num_preemptions": "num_preemptions",
        }
        counted = dict.fromkeys(names.values(), 0)
        for metric in self._llm.get_metrics():
            if metric.name in names:
                counted[names[metric.name]] += int(metric.value)
        return counted


class Events:
    """What can be done to an engine before or while it answers."""

    def __init__(self, engine: Engine, llm: Any) -> None:
        self._ours = engine
        self._llm = llm
        self._engine = llm.llm_engine
        config = self._engine.vllm_config
        self._max_model_len: int = config.model_config.max_model_len
        self._max_num_seqs: int = config.scheduler_config.max_num_seqs
        self._can_sleep = bool(getattr(config.model_config, "enable_sleep_mode", False))
        self._cache = config.cache_config

    def bring_about(self, circumstance: str, prepared: Sequence[tuple[Sequence[int], Any]]) -> None:
        """What is done before the pass; most circumstances need nothing."""
        if circumstance == "after-long-request":
            longest = max((token_ids for token_ids, _ in prepared), key=len)
            length = self._max_model_len - LONG_ANSWER_TOKENS
            self._ours.add(_repeated(longest, length), self._params(LONG_ANSWER_TOKENS))
            self._finish()
        elif circumstance == "after-aborts":
            for _ in range(NUM_BURSTS):
                self._abort_a_burst([token_ids for token_ids, _ in prepared])
        elif circumstance == "after-sleep":
            if not self._can_sleep:
                raise Refused(
                    "unsupported", "this engine cannot sleep: its `enable_sleep_mode` is not set"
                )
            self._llm.sleep(level=1)
            self._llm.wake_up()

    def fill_cache(self, first: Sequence[Sequence[int]]) -> list[str]:
        """Starts requests that leave the KV cache room for the first prompts and no more, so that
        answering them takes a place from one of them; waits until all are running."""
        block, blocks = self._cache.block_size, self._cache.num_gpu_blocks
        own = sum(len(token_ids) // block + 1 for token_ids in first)
        num_blocks = blocks - 1 - own  # vLLM keeps one block for itself
        growth = 4 * block
        size = max(0, self._max_model_len - growth) // block * block
        num_fillers = -(-num_blocks // (size // block)) if size else 0
        if num_blocks < 1 or not 0 < num_fillers <= self._max_num_seqs - len(first):
            raise Refused(
                "unsupported",
                f"the KV cache of {blocks} blocks of {block} tokens cannot be filled beside "
                f"{len(first)} prompts by requests of {size} tokens, {self._max_num_seqs} at once\n"
                "hint: a smaller `num_gpu_blocks_override` or a larger `max_num_seqs` in "
                "`engine_args` lets it be",
            )
        longest, ids = max(first, key=len), []
        for number in range(num_fillers):
            held = (num_blocks + number) // num_fillers
            # Half of the last block is for what comes while the prompts find their own place.
            length = held * block - block // 2
            # Turned round, each begins differently: no two share cached blocks.
            filler = _repeated(longest, length, start=number + 1)
            ids.append(self._ours.add(filler, self._params(growth)))
        running: set[str] = set()
        while len(running) < num_fillers and self._engine.has_unfinished_requests():
            running |= {output.request_id for output in self._ours.step()}
        return ids

    def _abort_a_burst(self, prompts: Sequence[Sequence[int]]) -> None:
        ids = [
            self._ours.add(prompts[number % len(prompts)], self._params(BURST_ANSWER_TOKENS))
            for number in range(min(self._max_num_seqs, BURST_SIZE))
        ]
        for _ in range(3):  # by then they have answered in part
            if not self._engine.has_unfinished_requests():
                break  # the window's end came sooner
            self._ours.step()
        self._engine.abort_request(ids)
        self._finish()

    def _finish(self) -> None:
        while self._engine.has_unfinished_requests():
            self._ours.step()

    @staticmethod
    def _params(num_tokens: int) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        return SamplingParams(
            temperature=0,
            max_tokens=num_tokens,
            ignore_eos=True,
            output_kind=RequestOutputKind.DELTA,
        )


def _nothing_yet() -> dict[str, int]:
    return {"num_finished": 0, "num_output_tokens": 0}


class Pulse:
    """Tells the parent that the engine gets on: now and then, and never while it does not."""

    def __init__(self, llm: Any, progress: Progress) -> None:
        self._llm = llm
        self._progress = progress
        self._looked_at = time.perf_counter()
        self._told = _nothing_yet()
        self._signs: list[float] = []

    def beat(self, so_far: Callable[[], dict[str, int]] = _nothing_yet) -> None:
        """After each step. Where tokens come, vLLM is not asked: that takes time from the pass."""
        if time.perf_counter() - self._looked_at < PROGRESS_INTERVAL_S:
            return
        self._looked_at = time.perf_counter()
        facts = so_far()
        if facts != self._told or self._has_worked():
            self._told = facts
            self._progress(**facts)

    def _has_worked(self) -> bool:
        before = self._signs
        self._signs = [each.value for each in self._llm.get_metrics() if each.name in SIGNS_OF_WORK]
        return self._signs != before


class Completion:
    """One of the answers to a request as it grows, chunk by chunk."""

    def __init__(self) -> None:
        self.token_ids: list[int] = []
        self._text: list[str] = []
        self._last: Any = None

    def add(self, completion: Any) -> None:
        self.token_ids.extend(completion.token_ids)
        self._text.append(completion.text)
        self._last = completion

    def to_json(self) -> dict[str, Any]:
        return {
            "token_ids": self.token_ids,
            "text": "".join(self._text),
            "finish_reason": self._last.finish_reason,
            "stop_reason": self._last.stop_reason,
        }


class Answer:
    """All answers to one request as they grow; of the first one more is told."""

    def __init__(self, prompt_token_ids: Sequence[int]) -> None:
        self.prompt_token_ids = list(prompt_token_ids)
        self._completions = {0: Completion()}
        self._step_tokens: list[int] = []
        self._logprobs: list[float | None] = []
        self._last: Any = None

    @property
    def token_ids(self) -> list[int]:
        return self._completions[0].token_ids

    def add(self, output: Any) -> None:
        for completion in output.outputs:
            self._add(completion)
        if output.outputs and output.outputs[0].index == 0:
            self._last = output

    def _add(self, completion: Any) -> None:
        self._completions.setdefault(completion.index, Completion()).add(completion)
        if completion.index > 0:
            return
        if completion.token_ids:
            self._step_tokens.append(len(completion.token_ids))
        if completion.logprobs is not None:
            pairs = zip_longest(completion.token_ids, completion.logprobs)
            self._logprobs.extend(_own_logprob(token_id, told) for token_id, told in pairs)

    def to_json(self) -> dict[str, Any]:
        completion = self._last.outputs[0]
        times = self._last.metrics
        decode_s = times.last_token_ts - times.first_token_ts
        num_decoded = len(self.token_ids) - 1
        return {
            "prompt_token_ids": self.prompt_token_ids,
            **self._completions[0].to_json(),
            "step_tokens": self._step_tokens,
            "ttft_ms": times.first_token_latency * 1000,
            "tpot_ms": decode_s / num_decoded * 1000 if num_decoded > 0 else None,
            "drafts": _request_drafts(getattr(completion, "spec_decode_metrics", None)),
            "usage": {
                "num_prompt_tokens": len(self._last.prompt_token_ids),
                "num_generation_tokens": times.num_generation_tokens,
                "num_cached_tokens": self._last.num_cached_tokens or 0,
            },
            "logprobs": self._logprobs or None,
            "others": [
                each.to_json() for index, each in sorted(self._completions.items()) if index > 0
            ],
        }


def _refusals() -> tuple[type[Exception], ...]:
    """What vLLM raises for a request that it will not take; older ones have no class for it."""
    try:
        from vllm.exceptions import VLLMClientError
    except ImportError:
        return TypeError, ValueError
    return TypeError, ValueError, VLLMClientError


def _constraint(request: Mapping[str, Any]) -> Any:
    """vLLM's structured-output parameters out of the OpenAI fields, or `None`."""
    from vllm.sampling_params import StructuredOutputsParams

    response_format = request.get("response_format")
    if response_format is None:
        declared = request.get("structured_outputs")
        return None if declared is None else StructuredOutputsParams(**declared)
    if response_format["type"] == "json_object":
        return StructuredOutputsParams(json_object=True)
    return StructuredOutputsParams(json=response_format["json_schema"]["schema"])


def _repeated(token_ids: Sequence[int], length: int, *, start: int = 0) -> list[int]:
    """As many tokens as asked for, the given ones over and over."""
    return [token_ids[(start + number) % len(token_ids)] for number in range(length)]


def _own_logprob(token_id: int | None, told: Mapping[int, Any] | None) -> float | None:
    """The token's own log-probability among those told for its place; `None` if it is not."""
    own = None if token_id is None or told is None else told.get(token_id)
    return None if own is None else own.logprob


def _tells_drafts(output: Any) -> bool:
    """Whether this vLLM can tell a request's own counts, be there any or not."""
    return hasattr(output.outputs[0], "spec_decode_metrics")


def _request_drafts(metrics: Any) -> dict[str, Any] | None:
    """Draft counters of one request from vLLM's histogram of accepted tokens per draft.

    `None` where vLLM tells nothing: an older vLLM, no speculation, or a request ended by a stop
    string.
    """
    if metrics is None:
        return None
    histogram = list(metrics.histogram)
    return {
        "num_drafts": sum(histogram),
        "num_draft_tokens": metrics.num_draft_tokens,
        "num_accepted_tokens": sum(accepted * count for accepted, count in enumerate(histogram)),
        "num_accepted_tokens_per_pos": [
            sum(histogram[position:]) for position in range(1, len(histogram))
        ],
    }


def _sum_per_pos(left: Sequence[int], right: Sequence[int]) -> list[int]:
    length = max(len(left), len(right))
    return [
        sum(values[position] for values in (left, right) if position < len(values))
        for position in range(length)
    ]


def _grown(
    after: Mapping[str, Any] | None, before: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """What was counted between two looks; `None` without speculation."""
    if after is None:
        return None
    if before is None:
        return dict(after)
    grown: dict[str, Any] = {
        name: after[name] - before[name]
        for name in ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
    }
    name = "num_accepted_tokens_per_pos"
    grown[name] = _sum_per_pos(after[name], [-count for count in before[name]])
    return grown


def _token_score(token_id: int, candidates: Mapping[int, Any], num_top: int) -> dict[str, Any]:
    own = candidates[token_id]
    argmax_token_id, argmax = min(candidates.items(), key=lambda item: item[1].rank)
    # vLLM gives the token itself besides, wherever it stands.
    top = sorted((each.logprob for each in candidates.values()), reverse=True)[:num_top]
    return {
        "token_id": token_id,
        "text": own.decoded_token,
        "logprob": own.logprob,
        "rank": own.rank,
        "argmax_token_id": argmax_token_id,
        "argmax_text": argmax.decoded_token,
        "argmax_logprob": argmax.logprob,
        "top_logprobs": top,
    }


def _check_names(engine_args: Mapping[str, Any]) -> None:
    """Refuses names that this vLLM does not know; nothing is loaded for it."""
    from vllm.config import SpeculativeConfig
    from vllm.engine.arg_utils import EngineArgs

    _refuse_unknown("engine_args", engine_args, _names(EngineArgs))
    speculative = engine_args.get("speculative_config") or {}
    _refuse_unknown("speculative_config", speculative, _names(SpeculativeConfig))


def _load(engine_args: Mapping[str, Any], progress: Progress) -> Engine:
    from vllm import LLM
    from vllm.engine.arg_utils import EngineArgs

    arguments: dict[str, Any] = {**engine_args, "disable_log_stats": False}
    per_request = "per_request_spec_decode_metrics"
    if engine_args.get("speculative_config") is not None and per_request in _names(EngineArgs):
        arguments[per_request] = "detailed"
    return Engine(LLM(**arguments), progress)


def _names(cls: type) -> set[str]:
    return {field.name for field in dataclasses.fields(cls)}


def _refuse_unknown(where: str, given: Mapping[str, Any], known: set[str]) -> None:
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"\nhint: did you mean `{near[0]}`?" if near else ""
            raise Refused("config", f"this vLLM does not know `{key}` in `{where}`{hint}")


def _environment() -> dict[str, Any]:
    """Versions under this interpreter. Importing is the proof that vLLM can be imported; `LLM` is
    named because `import vllm` alone loads next to nothing."""
    import torch
    import vllm
    from vllm import LLM  # noqa: F401

    return {
        "vllm": vllm.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cuda": torch.version.cuda,
        "driver": _driver() if torch.cuda.is_available() else None,
    }


def _driver() -> str | None:
    try:
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    except Exception:
        return None


def _follow(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _folder(model: str) -> str:
    """The local folder of a model's configuration and tokenizer, fetched from the hub if need
    be; the weights are left where they are."""
    if Path(model).is_dir():
        return model
    from huggingface_hub import snapshot_download

    return snapshot_download(model, allow_patterns=["*.json", "*.model", "*.txt", "*.jinja"])


class Worker:
    """Reads commands, answers them, and keeps the one engine."""

    def __init__(self, commands: TextIO, replies: TextIO) -> None:
        self._commands = commands
        self._replies = replies
        self._engine: Engine | None = None

    def serve(self) -> None:
        """Answers until `shutdown` or until the parent is gone."""
        for line in self._commands:
            command = json.loads(line)
            if command["op"] == "shutdown":
                self._send(result=None)
                return
            try:
                self._send(result=self._answer(command))
            except Refused as error:
                self._send(error={"kind": error.kind, "message": str(error)})
            except Exception as error:
                traceback.print_exc()
                cannot_import = command["op"] == "hello" and isinstance(error, ImportError)
                kind = "unavailable" if cannot_import else "failed"
                self._send(error={"kind": kind, "message": f"{type(error).__name__}: {error}"})

    def _answer(self, command: Mapping[str, Any]) -> Any:
        operation = command["op"]
        if operation == "hello":
            return _environment()
        if operation == "folder":
            return _folder(command["model"])
        if operation == "check_names":
            return _check_names(command["engine_args"])
        if operation == "load":
            return self._load(command["engine_args"])
        if self._engine is None:
            raise Refused("failed", f"`{operation}` needs a loaded engine")
        if operation == "generate":
            return self._engine.generate(
                command["requests"], command["concurrency"], command["circumstance"]
            )
        if operation == "score":
            return self._engine.score(command["prompt_token_ids"], command["token_ids"])
        raise Refused("failed", f"no such command: {operation}")

    def _load(self, engine_args: Mapping[str, Any]) -> dict[str, Any]:
        start = time.perf_counter()
        self._engine = _load(engine_args, self._progress)
        load_s = time.perf_counter() - start
        return {"load_s": load_s, "config": self._engine.resolved_config()}

    def _progress(self, **facts: Any) -> None:
        self._send(progress=facts)

    def _send(self, **message: Any) -> None:
        self._replies.write(json.dumps(message) + "\n")
        self._replies.flush()


def _die_with_parent() -> None:
    """Asks Linux to end this process when pytest's ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _guard_group(commands_fd: int, replies_fd: int) -> None:
    """Starts a process that ends this process's group when pytest's process is gone.

    What the engine starts, such as vLLM's own processes on a GPU, has another parent and would
    live on.
    """
    if os.fork() > 0:
        return
    os.close(replies_fd)
    hang_up = select.poll()
    hang_up.register(commands_fd, 0)
    hang_up.poll()
    os.killpg(0, signal.SIGKILL)


def _preload_openmp() -> None:
    """Starts this program anew with Intel's OpenMP in front, where it is installed.

    vLLM's CPU engine is far slower at speculation without it, and it must be there before the
    process starts. Its place is known only under this interpreter.
    """
    preloaded = os.environ.get("LD_PRELOAD", "")
    library = next(_openmp_libraries(), None)
    if library is None or "libiomp5" in preloaded:
        return
    os.environ["LD_PRELOAD"] = f"{library}:{preloaded}".rstrip(":")
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _openmp_libraries() -> Iterator[Path]:
    try:
        files = importlib.metadata.files("intel-openmp") or []
    except importlib.metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name == "libiomp5.so":
            yield Path(str(file.locate())).resolve()


def main() -> None:
    """Serves one parent until it says `shutdown` or is gone."""
    _die_with_parent()
    if os.environ.get("SPECDEC_DEVICE") == "cpu":
        _preload_openmp()
    commands_fd, replies_fd = (int(argument) for argument in sys.argv[1:3])
    _guard_group(commands_fd, replies_fd)
    # This file's folder would come before vLLM's own modules of the same names.
    sys.path[:] = [folder for folder in sys.path if folder != str(Path(__file__).parent)]
    with (
        os.fdopen(commands_fd, encoding="utf-8") as commands,
        os.fdopen(replies_fd, "w", encoding="utf-8") as replies,
    ):
        Worker(commands, replies).serve()
    # vLLM leaves threads behind that can hold up a clean exit; nothing is left to be saved.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
