"""The worker's program as a module, with stand-ins for vLLM: what it counts, keeps in flight,
refuses and answers. vLLM itself is met in tests/real."""

from __future__ import annotations

import io
import json
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pytest_specdec.engines import worker
from pytest_specdec.engines.worker import Refused, Worker


@dataclass
class FakeRequest:
    """`size` is what the request was to give when it came."""

    request_id: str
    params: Any
    chunks: deque[int]
    prompt: Sequence[int]
    size: int


def configuration(**changed: Any) -> Any:
    """What `Events` reads, every number settable by name."""
    told = {
        "max_model_len": 32,
        "max_num_seqs": 8,
        "block_size": 4,
        "num_gpu_blocks": 24,
        "enable_sleep_mode": False,
        "max_logprobs": 20,
        **changed,
    }
    return SimpleNamespace(
        model_config=SimpleNamespace(
            max_model_len=told["max_model_len"],
            max_logprobs=told["max_logprobs"],
            enable_sleep_mode=told["enable_sleep_mode"],
        ),
        scheduler_config=SimpleNamespace(max_num_seqs=told["max_num_seqs"]),
        cache_config=SimpleNamespace(
            block_size=told["block_size"], num_gpu_blocks=told["num_gpu_blocks"]
        ),
    )


@dataclass
class FakeEngine:
    """Gives each request the chunks it is told to, one a step, and notes who is in flight.

    `plans` holds the sizes of each request's chunks, in the order of arrival.
    """

    plans: list[list[int]]
    requests: dict[str, FakeRequest] = field(default_factory=dict)
    in_flight: list[list[str]] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    refuse: str | None = None
    refusal: Exception = field(default_factory=lambda: ValueError("it is too long"))
    fail_at_step: int | None = None
    num_added: int = 0
    num_ended: int = 0
    added: list[FakeRequest] = field(default_factory=list)
    vllm_config: Any = field(default_factory=configuration)

    def add_request(self, request_id: str, prompt: Mapping[str, Any], params: Any) -> None:
        if request_id == self.refuse:
            raise self.refusal
        chunks = deque(self.plans[self.num_added])
        self.num_added += 1
        ids = prompt["prompt_token_ids"]
        request = FakeRequest(request_id, params, chunks, ids, sum(chunks))
        self.requests[request_id] = request
        self.added.append(request)

    def has_unfinished_requests(self) -> bool:
        return bool(self.requests)

    def abort_request(self, request_ids: list[str]) -> None:
        self.aborted.extend(request_ids)
        for request_id in request_ids:
            self.requests.pop(request_id, None)

    def step(self) -> list[Any]:
        # Where the core is another process, this would wait for an output that never comes.
        assert self.requests, "a step that nothing asks for"
        self.in_flight.append(sorted(self.requests))
        if len(self.in_flight) == self.fail_at_step:
            raise RuntimeError("out of memory")
        outputs = []
        for request in list(self.requests.values()):
            size = request.chunks.popleft()
            outputs.append(self.output(request, size))
            if not request.chunks:
                self.num_ended += 1
                del self.requests[request.request_id]
        return outputs

    def output(self, request: FakeRequest, size: int) -> Any:
        is_last = not request.chunks
        completion = SimpleNamespace(
            index=0,
            token_ids=[5] * size,
            text="t" * size,
            finish_reason="length" if is_last else None,
            stop_reason=None,
            spec_decode_metrics=None,
            logprobs=None,
        )
        times = SimpleNamespace(
            first_token_ts=10.0,
            last_token_ts=10.3,
            first_token_latency=0.25,
            num_generation_tokens=request.size,
        )
        return SimpleNamespace(
            request_id=request.request_id,
            outputs=[completion],
            finished=is_last,
            metrics=times,
            prompt_logprobs=None,
            prompt_token_ids=request.prompt,
            num_cached_tokens=None,
        )


@dataclass
class FakeLlm:
    """`metrics` holds what is counted before any request has ended, after one has, and so on."""

    llm_engine: FakeEngine
    metrics: list[list[Any]] = field(default_factory=list)
    num_resets: int = 0
    sleeps: list[str] = field(default_factory=list)

    def get_tokenizer(self) -> Any:
        return SimpleNamespace(apply_chat_template=self.apply_chat_template, encode=self.encode)

    def apply_chat_template(self, messages: Any, **given: Any) -> Any:
        if messages[0]["content"] == "broken":
            raise KeyError("no such role")
        ids = [len(message["content"]) for message in messages]
        return {"input_ids": ids} if messages[0]["content"] == "mapping" else ids

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return [100 + number for number in range(len(text))]

    def get_metrics(self) -> list[Any]:
        if not self.metrics:
            return []
        return self.metrics[min(self.llm_engine.num_ended, len(self.metrics) - 1)]

    def reset_prefix_cache(self) -> None:
        self.num_resets += 1

    def sleep(self, *, level: int) -> None:
        self.sleeps.append(f"level {level}")

    def wake_up(self) -> None:
        self.sleeps.append("awake")


@pytest.fixture(autouse=True)
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two classes of vLLM's that requests are made of; they remember what they were told."""

    class Told(SimpleNamespace):
        def __init__(self, **given: Any) -> None:
            if given.get("top_p") == 3:
                raise ValueError("top_p must be in (0, 1]")
            super().__init__(**given)

        def clone(self) -> Told:
            return Told(**vars(self))

        def update_from_tokenizer(self, tokenizer: Any) -> None:
            """As vLLM does, but each word once."""
            self.bad_words_token_ids = [
                tokenizer.encode(each, add_special_tokens=False) for each in self.bad_words
            ]

    top, sampling = ModuleType("vllm"), ModuleType("vllm.sampling_params")
    vars(top).update(SamplingParams=Told)
    vars(sampling).update(
        StructuredOutputsParams=Told,
        RequestOutputKind=SimpleNamespace(DELTA="delta", FINAL_ONLY="final only"),
    )
    monkeypatch.setitem(sys.modules, "vllm", top)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", sampling)


def request(content: str = "Hi", **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 8, **fields}


def engine_of(*plans: list[int], **settings: Any) -> tuple[worker.Engine, FakeEngine]:
    fake = FakeEngine(list(plans), **settings)
    return worker.Engine(FakeLlm(fake), silent), fake


def silent(**_: Any) -> None:
    """Nobody waits."""


@pytest.mark.parametrize("concurrency", [1, 2, 3, 4, 5, 9])
def test_exactly_so_many_requests_are_in_flight_while_any_wait(concurrency: int) -> None:
    plans = [[1] * length for length in (5, 1, 3, 2, 4)]
    engine, fake = engine_of(*plans)
    reply = engine.generate([request() for _ in plans], concurrency, None)
    assert [len(each["token_ids"]) for each in reply["generations"]] == [5, 1, 3, 2, 4]
    started = 0
    for in_flight in fake.in_flight:
        started = max(started, *(int(name.rpartition("-")[2]) + 1 for name in in_flight))
        are_waiting = started < len(plans)
        assert len(in_flight) == concurrency if are_waiting else len(in_flight) <= concurrency
    assert not fake.has_unfinished_requests()


def test_an_answer_is_put_together_from_its_chunks() -> None:
    engine, _ = engine_of([1, 3, 0, 2])
    reply = engine.generate([request("four")], 1, None)
    assert reply["generations"] == [
        {
            "prompt_token_ids": [4],
            "token_ids": [5] * 6,
            "text": "t" * 6,
            "finish_reason": "length",
            "stop_reason": None,
            # The step that gave no token is not one of this request's.
            "step_tokens": [1, 3, 2],
            "ttft_ms": 250.0,
            "tpot_ms": pytest.approx(60.0),
            "drafts": None,
            "usage": {
                "num_prompt_tokens": 1,
                "num_generation_tokens": 6,
                "num_cached_tokens": 0,
            },
            "logprobs": None,
            "others": [],
        }
    ]
    assert reply["drafts"] is None
    assert reply["wall_s"] > 0


def test_one_token_has_no_time_per_token_after_the_first() -> None:
    engine, _ = engine_of([1])
    assert engine.generate([request()], 1, None)["generations"][0]["tpot_ms"] is None


def test_the_prefix_cache_is_emptied_before_each_pass() -> None:
    fake = FakeEngine([[1], [1]])
    llm = FakeLlm(fake)
    engine = worker.Engine(llm, silent)
    for number in (1, 2):
        engine.generate([request()], 1, None)
        assert llm.num_resets == number


@dataclass
class Heard:
    """What the parent is told."""

    told: list[Mapping[str, int]] = field(default_factory=list)

    def __call__(self, **facts: int) -> None:
        self.told.append(facts)


def test_progress_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(worker, "time", SimpleNamespace(perf_counter=lambda: next(clock) / 4))
    heard = Heard()
    worker.Engine(FakeLlm(FakeEngine([[1] * 6, [2] * 4])), heard).generate([request()] * 2, 2, None)
    assert heard.told == [
        {"num_finished": 0, "num_output_tokens": 3},
        {"num_finished": 0, "num_output_tokens": 9},
        {"num_finished": 1, "num_output_tokens": 13},
    ]


class Slow(FakeEngine):
    """Its first steps bring nothing that the frontend sees."""

    def step(self) -> list[Any]:
        if len(self.in_flight) < 5:
            self.in_flight.append(sorted(self.requests))
            return []
        return super().step()


@dataclass
class SlowLlm(FakeLlm):
    """What it counts grows with every step, if it is told."""

    counts: str | None = None

    def get_metrics(self) -> list[Any]:
        return [metric(self.counts, len(self.llm_engine.in_flight))] if self.counts else []


FIRST = {"num_finished": 0, "num_output_tokens": 0}
LAST = {"num_finished": 1, "num_output_tokens": 1}


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        pytest.param(None, [LAST], id="nothing"),
        pytest.param("num_requests_running", [LAST], id="what is no work"),
        pytest.param("num_preemptions", [LAST], id="work undone"),
        # A prompt is read in parts, and an answer may be told at its end.
        pytest.param("kv_cache_usage_perc", [FIRST] * 5 + [LAST], id="cache"),
        pytest.param("prompt_tokens", [FIRST] * 5 + [LAST], id="prompt tokens"),
        pytest.param("generation_tokens", [FIRST] * 5 + [LAST], id="output tokens"),
    ],
)
def test_no_progress_is_told_of_steps_that_bring_nothing(
    monkeypatch: pytest.MonkeyPatch, counts: str | None, told: list[Any]
) -> None:
    monkeypatch.setattr(worker, "PROGRESS_INTERVAL_S", 0)
    heard = Heard()
    worker.Engine(SlowLlm(Slow([[1]]), counts=counts), heard).generate([request()], 1, None)
    assert heard.told == told


@pytest.mark.parametrize("circumstance", ["after-long-request", "after-aborts", "under-preemption"])
def test_progress_is_told_of_what_comes_before_a_pass(
    monkeypatch: pytest.MonkeyPatch, circumstance: str
) -> None:
    monkeypatch.setattr(worker, "PROGRESS_INTERVAL_S", 0)
    heard = Heard()
    llm = SlowLlm(Slow([[1] * 40] * 25), counts="kv_cache_usage_perc")
    worker.Engine(llm, heard).generate([request("four")], 1, circumstance)
    num_steps = len(llm.llm_engine.in_flight)
    assert heard.told[: num_steps - 40] == [FIRST] * (num_steps - 40)
    assert len(heard.told) == num_steps


def test_vllm_is_not_asked_for_its_counters_where_tokens_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "PROGRESS_INTERVAL_S", 0)
    looks = []

    class Asked(FakeLlm):
        def get_metrics(self) -> list[Any]:
            looks.append(len(self.llm_engine.in_flight))
            return super().get_metrics()

    worker.Engine(Asked(FakeEngine([[1] * 9])), silent).generate([request()], 1, None)
    # Before the pass and after it.
    assert set(looks) == {0, 9}


def test_progress_is_told_of_scoring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "PROGRESS_INTERVAL_S", 0)
    heard = Heard()
    llm = SlowLlm(Slow([[1]]), counts="kv_cache_usage_perc")
    worker.Engine(llm, heard).score([11], [])
    assert heard.told == [FIRST] * 6


def test_a_refused_prompt_leaves_none_in_flight() -> None:
    engine, fake = engine_of([9] * 3, [9] * 3, [1], refuse="specdec-2")
    with pytest.raises(Refused, match=r"^vLLM refused the request: it is too long$") as caught:
        engine.generate([request() for _ in range(3)], 3, None)
    assert caught.value.kind == "request"
    assert fake.aborted == ["specdec-0", "specdec-1"]
    assert not fake.has_unfinished_requests()
    reply = engine.generate([request()], 1, None)
    assert len(reply["generations"][0]["token_ids"]) == 1


def test_a_refusal_of_newer_vllm_is_no_value_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class VLLMClientError(Exception):
        """As in `vllm.exceptions`."""

    exceptions = ModuleType("vllm.exceptions")
    vars(exceptions).update(VLLMClientError=VLLMClientError)
    monkeypatch.setitem(sys.modules, "vllm.exceptions", exceptions)
    engine, _ = engine_of([1], refuse="specdec-0", refusal=VLLMClientError("it is too long"))
    with pytest.raises(Refused, match=r"^vLLM refused the request: it is too long$"):
        engine.generate([request()], 1, None)


def test_an_engine_that_is_dead_did_not_refuse() -> None:
    engine, _ = engine_of([1], refuse="specdec-0", refusal=RuntimeError("the core is dead"))
    with pytest.raises(RuntimeError, match=r"^the core is dead$"):
        engine.generate([request()], 1, None)


def test_sampling_parameters_that_vllm_refuses_start_nothing() -> None:
    engine, fake = engine_of([1], [1])
    with pytest.raises(Refused, match=r"^vLLM refused the sampling parameters: top_p must be in"):
        engine.generate([request(), request(top_p=3)], 1, None)
    assert fake.num_added == 0


def test_a_chat_template_that_fails_starts_nothing() -> None:
    engine, fake = engine_of([1], [1])
    with pytest.raises(Refused, match=r"^the chat template failed: 'no such role'$") as caught:
        engine.generate([request(), request("broken")], 1, None)
    assert (caught.value.kind, fake.num_added) == ("request", 0)


@pytest.mark.parametrize("content", ["plain", "mapping"])
def test_token_ids_of_either_transformers(content: str) -> None:
    engine, fake = engine_of([1])
    reply = engine.generate([request(content)], 1, None)
    assert reply["generations"][0]["prompt_token_ids"] == [len(content)]
    assert fake.in_flight == [["specdec-0"]]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, {"temperature": 0}),
        ({"temperature": 0.7, "seed": 3}, {"temperature": 0.7, "seed": 3}),
        (
            {"response_format": {"type": "json_object"}},
            {"temperature": 0, "structured_outputs": {"json_object": True}},
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"a": 1}}}},
            {"temperature": 0, "structured_outputs": {"json": {"a": 1}}},
        ),
        (
            {"structured_outputs": {"choice": ["a"]}},
            {"temperature": 0, "structured_outputs": {"choice": ["a"]}},
        ),
    ],
)
def test_a_request_becomes_vllm_s_parameters(fields: Any, told: Any) -> None:
    engine, _ = engine_of()
    params = vars(engine._sampling_params(request(**fields), streamed=True))
    if "structured_outputs" in params:
        params["structured_outputs"] = vars(params["structured_outputs"])
    assert params == {"max_tokens": 8, "output_kind": "delta", **told}


@pytest.mark.parametrize(("streamed", "kind"), [(True, "delta"), (False, "final only")])
def test_answers_are_streamed_unless_they_are_not_to_be(*, streamed: bool, kind: str) -> None:
    engine, _ = engine_of()
    assert engine._sampling_params(request(), streamed).output_kind == kind


@pytest.mark.parametrize(
    ("circumstance", "kind", "num_resets"),
    [(None, "delta", 1), ("not-streamed", "final only", 1), ("warm-prefix-cache", "delta", 0)],
)
def test_circumstances_of_a_pass_itself(
    circumstance: str | None, kind: str, num_resets: int
) -> None:
    fake = FakeEngine([[1]])
    llm = FakeLlm(fake)
    worker.Engine(llm, silent).generate([request()], 1, circumstance)
    assert fake.added[0].params.output_kind == kind
    assert llm.num_resets == num_resets
    assert (fake.num_added, llm.sleeps) == (1, [])


def test_a_bias_has_token_ids_for_keys() -> None:
    engine, _ = engine_of()
    params = engine._sampling_params(request(logit_bias={"12": -5, "0": 1.5}), streamed=True)
    assert params.logit_bias == {12: -5, 0: 1.5}


@pytest.mark.parametrize("left", [1, 5, 30])
def test_a_prompt_leaves_as_much_of_the_context_as_it_says(left: int) -> None:
    engine, fake = engine_of([1])
    engine.generate([request("four", context_left=left)], 1, None)
    (added,) = fake.added
    assert len(added.prompt) == 32 - left
    assert not hasattr(added.params, "context_left")
    # What was said is repeated before it, and the whole of it still ends the prompt.
    assert list(added.prompt[-1:]) == [4]
    rest = list(added.prompt[:-1])
    assert rest == [100 + at % 4 for at in range(len(rest))]


def test_a_prompt_longer_than_that_is_refused() -> None:
    engine, fake = engine_of([1])
    two = [{"role": "user", "content": "four"}] * 2
    with pytest.raises(Refused, match=r"^`context_left` of the prompt's 2 tokens$") as caught:
        engine.generate([{**request(context_left=31), "messages": two}], 1, None)
    assert (caught.value.kind, fake.num_added) == ("request", 0)


def test_a_message_of_no_token_cannot_be_repeated() -> None:
    engine, fake = engine_of([1])
    told = r"^`context_left` repeats the last message, which is no token long$"
    with pytest.raises(Refused, match=told) as caught:
        engine.generate([request("", context_left=30)], 1, None)
    assert (caught.value.kind, fake.num_added) == ("request", 0)


class Telling(FakeEngine):
    """Tells log-probabilities, cached tokens and further answers."""

    def output(self, request: FakeRequest, size: int) -> Any:
        output = super().output(request, size)
        own = output.outputs[0]
        # Of the last token of a step of several, nothing.
        told = [{5: SimpleNamespace(logprob=-0.5)}] * size
        own.logprobs = [*told[:-1], {6: SimpleNamespace(logprob=-9.0)}] if size > 1 else told
        second, third = (
            SimpleNamespace(
                index=index,
                token_ids=[index + 5] * size,
                text=str(index) * size,
                finish_reason=own.finish_reason and "stop",
                stop_reason=own.finish_reason and index + 5,
            )
            for index in (1, 2)
        )
        output.outputs = [own, third, second]
        output.num_cached_tokens = 16
        return output


def test_log_probabilities_cached_tokens_and_other_answers() -> None:
    engine = worker.Engine(FakeLlm(Telling([[1, 3]])), silent)
    (answer,) = engine.generate([request()], 1, None)["generations"]
    assert answer["token_ids"] == [5] * 4
    assert answer["logprobs"] == [-0.5, -0.5, -0.5, None]
    assert answer["others"] == [
        {"token_ids": [6] * 4, "text": "1111", "finish_reason": "stop", "stop_reason": 6},
        {"token_ids": [7] * 4, "text": "2222", "finish_reason": "stop", "stop_reason": 7},
    ]
    assert answer["usage"] == {
        "num_prompt_tokens": 1,
        "num_generation_tokens": 4,
        "num_cached_tokens": 16,
    }


def test_the_tokens_that_are_barred_are_those_that_vllm_bars() -> None:
    engine, fake = engine_of([1], [1])
    asked = [request(), request(bad_words=["a", "bcd"])]
    plain, barred = engine.generate(asked, 2, None)["generations"]
    assert "bad_words_token_ids" not in plain
    assert barred["bad_words_token_ids"] == [[100], [100, 101, 102]]
    # What was asked for is left to the engine.
    assert not hasattr(fake.added[1].params, "bad_words_token_ids")


@pytest.mark.parametrize(
    ("token_id", "told", "logprob"),
    [
        (5, {5: SimpleNamespace(logprob=-1.0), 6: SimpleNamespace(logprob=0.0)}, -1.0),
        (5, {6: SimpleNamespace(logprob=0.0)}, None),
        (5, None, None),
        (None, {5: SimpleNamespace(logprob=-1.0)}, None),
    ],
)
def test_a_token_s_own_logprob(token_id: int | None, told: Any, logprob: float | None) -> None:
    assert worker._own_logprob(token_id, told) == logprob


def usage(prompt: int, generation: int, preemptions: int) -> list[Any]:
    return [
        metric("prompt_tokens", prompt),
        metric("generation_tokens", generation),
        metric("num_preemptions", preemptions),
    ]


def test_the_engine_s_usage_is_what_the_pass_added() -> None:
    # Two data-parallel engines, each with counters of its own.
    told = [usage(10, 20, 1) + usage(1, 2, 0), usage(15, 60, 3) + usage(3, 4, 1)]
    engine = worker.Engine(FakeLlm(FakeEngine([[1]]), metrics=told), silent)
    assert engine.generate([request()], 1, None)["usage"] == {
        "num_prompt_tokens": 7,
        "num_generation_tokens": 42,
        "num_preemptions": 3,
    }


def test_an_engine_that_counts_nothing_has_used_nothing() -> None:
    engine, _ = engine_of([1])
    assert engine.generate([request()], 1, None)["usage"] == {
        "num_prompt_tokens": 0,
        "num_generation_tokens": 0,
        "num_preemptions": 0,
    }


def events(*plans: list[int], **config: Any) -> tuple[worker.Engine, FakeEngine, FakeLlm]:
    fake = FakeEngine(list(plans), vllm_config=configuration(**config))
    llm = FakeLlm(fake)
    return worker.Engine(llm, silent), fake, llm


def test_before_a_long_request_one_fills_the_context() -> None:
    engine, fake, _ = events([1] * 8, [1], [1])
    prompts = [request("Hi"), {**request("Hi"), "messages": request("four")["messages"] * 3}]
    engine.generate(prompts, 2, "after-long-request")
    long, *others = fake.added
    assert list(long.prompt) == [4] * 24
    assert (long.params.max_tokens, long.params.ignore_eos) == (8, True)
    # It has ended when the others begin.
    assert fake.in_flight[:8] == [["specdec-0"]] * 8
    assert [list(each.prompt) for each in others] == [[2], [4, 4, 4]]


def test_bursts_are_aborted_and_nothing_of_them_is_left() -> None:
    engine, fake, _ = events(*[[1] * 8] * 24, [1], [1], [1])
    reply = engine.generate([request("a"), request("ab"), request("abc")], 1, "after-aborts")
    assert (worker.NUM_BURSTS, worker.BURST_SIZE) == (3, 8)
    burst = [f"specdec-{number}" for number in range(24)]
    assert fake.aborted[:24] == burst
    # Three steps each, in which some have begun to answer.
    assert [len(each) for each in fake.in_flight] == [8] * 9 + [1] * 3
    assert [list(each.prompt) for each in fake.added[:4]] == [[1], [2], [3], [1]]
    assert [each["prompt_token_ids"] for each in reply["generations"]] == [[1], [2], [3]]


def test_a_burst_that_ends_by_itself_is_stepped_no_further() -> None:
    engine, fake, _ = events(*[[1]] * 8, *[[1, 1]] * 8, *[[1] * 8] * 8, [1])
    engine.generate([request()], 1, "after-aborts")
    assert [len(each) for each in fake.in_flight] == [8, 8, 8, 8, 8, 8, 1]


def test_a_burst_is_no_larger_than_what_runs_at_once() -> None:
    engine, fake, _ = events(*[[1] * 8] * 6, [1], max_num_seqs=2)
    engine.generate([request()], 1, "after-aborts")
    assert [len(each) for each in fake.in_flight] == [2] * 9 + [1]


def test_an_engine_that_can_sleep_is_woken_again() -> None:
    engine, fake, llm = events([1], enable_sleep_mode=True)
    engine.generate([request()], 1, "after-sleep")
    assert (llm.sleeps, fake.num_added) == (["level 1", "awake"], 1)


def test_an_engine_that_cannot_sleep_says_so_and_answers_nothing() -> None:
    engine, fake, llm = events([1])
    told = r"^this engine cannot sleep: its `enable_sleep_mode` is not set$"
    with pytest.raises(Refused, match=told) as caught:
        engine.generate([request()], 1, "after-sleep")
    assert (caught.value.kind, llm.sleeps, fake.num_added) == ("unsupported", [], 0)


@pytest.mark.parametrize(
    ("config", "num_prompts", "lengths"),
    [
        # 23 blocks of 4 beside vLLM's own, less 1 for each prompt of 1 token. Of 32 tokens of
        # context 16 are kept for answers, so that a filler has 4 blocks at most.
        pytest.param({}, 1, [10, 10, 14, 14, 14, 14], id="22 blocks"),
        pytest.param({}, 2, [10, 10, 10, 14, 14, 14], id="21 blocks"),
        pytest.param({"num_gpu_blocks": 6}, 1, [14], id="4 blocks"),
        pytest.param({"num_gpu_blocks": 7}, 1, [6, 10], id="5 blocks"),
        pytest.param({"num_gpu_blocks": 3}, 1, [2], id="1 block"),
        pytest.param({"max_model_len": 128}, 1, [86], id="22 blocks in one"),
        pytest.param(
            {"max_model_len": 23, "max_num_seqs": 30}, 1, [2] * 22, id="22 blocks in as many"
        ),
    ],
)
def test_the_cache_is_filled_but_for_the_first_prompts(
    config: dict[str, int], num_prompts: int, lengths: list[int]
) -> None:
    num_fillers = len(lengths)
    engine, fake, _ = events(*[[1] * 40] * num_fillers, *[[1]] * num_prompts, **config)
    reply = engine.generate([request("four")] * num_prompts, 2, "under-preemption")
    fillers = fake.added[:num_fillers]
    assert [len(each.prompt) for each in fillers] == lengths
    assert {each.params.max_tokens for each in fillers} == {16}
    told = configuration(**config).cache_config
    held = sum(-(-len(each.prompt) // told.block_size) for each in fillers)
    # Each prompt finds a block, and there is none beside those.
    assert held + num_prompts == told.num_gpu_blocks - 1
    # They run when the prompts come, and are gone afterwards.
    assert fake.in_flight[0] == sorted(f"specdec-{number}" for number in range(num_fillers))
    assert fake.aborted == [f"specdec-{number}" for number in range(num_fillers)]
    assert [each["token_ids"] for each in reply["generations"]] == [[5]] * num_prompts
    assert not fake.has_unfinished_requests()


def test_fillers_begin_differently_so_that_they_share_no_block() -> None:
    engine, fake, _ = events(*[[1] * 40] * 6, [1])
    three = {**request(), "messages": [{"role": "user", "content": "x" * at} for at in (1, 2, 3)]}
    engine.generate([three], 1, "under-preemption")
    assert [list(each.prompt[:3]) for each in fake.added[:3]] == [[2, 3, 1], [3, 1, 2], [1, 2, 3]]


@pytest.mark.parametrize(
    ("config", "num_prompts", "told"),
    [
        pytest.param(
            {"max_num_seqs": 6},
            1,
            "the KV cache of 24 blocks of 4 tokens cannot be filled beside 1 prompts by requests "
            "of 16 tokens, 6 at once",
            id="no place for so many",
        ),
        pytest.param({"num_gpu_blocks": 2}, 1, "the KV cache of 2 blocks", id="no room"),
        pytest.param({"max_model_len": 16}, 1, "by requests of 0 tokens", id="no context"),
    ],
)
def test_a_cache_that_cannot_be_filled_is_told(
    config: dict[str, int], num_prompts: int, told: str
) -> None:
    engine, fake, _ = events(*[[1]] * 9, **config)
    with pytest.raises(Refused) as caught:
        engine.generate([request("four")] * num_prompts, 2, "under-preemption")
    fact, hint = str(caught.value).splitlines()
    assert told in fact
    assert hint == (
        "hint: a smaller `num_gpu_blocks_override` or a larger `max_num_seqs` in `engine_args` "
        "lets it be"
    )
    assert (caught.value.kind, fake.num_added) == ("unsupported", 0)


def test_fillers_are_gone_though_a_prompt_was_refused() -> None:
    engine, fake, _ = events(*[[1] * 40] * 6, [1])
    fake.refuse = "specdec-6"
    with pytest.raises(Refused, match="it is too long"):
        engine.generate([request()], 1, "under-preemption")
    assert not fake.has_unfinished_requests()


def metric(name: str, value: Any) -> Any:
    field_name = "values" if isinstance(value, list) else "value"
    return SimpleNamespace(name=f"vllm:{name}", **{field_name: value})


def metrics(drafts: int, tokens: int, accepted: int, per_pos: list[int]) -> list[Any]:
    return [
        metric("num_requests_running", 3),
        metric("spec_decode_num_drafts", drafts),
        metric("spec_decode_num_draft_tokens", tokens),
        metric("spec_decode_num_accepted_tokens", accepted),
        metric("spec_decode_num_accepted_tokens_per_pos", per_pos),
    ]


COUNTED = {
    "num_drafts": 3,
    "num_draft_tokens": 12,
    "num_accepted_tokens": 7,
    "num_accepted_tokens_per_pos": [3, 2, 2],
}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], metrics(3, 12, 7, [3, 2, 2])),
        (metrics(10, 40, 9, [5, 4, 0]), metrics(13, 52, 16, [8, 6, 2])),
        # A longer draft than ever before.
        (metrics(10, 40, 9, [5]), metrics(13, 52, 16, [8, 2, 2])),
        # Two data-parallel engines, each with counters of its own.
        (
            metrics(1, 4, 1, [1, 0, 0]) + metrics(1, 4, 1, [1, 0]),
            metrics(2, 8, 4, [2, 1, 1]) + metrics(3, 12, 5, [3, 1, 1]),
        ),
    ],
)
def test_the_engine_s_counters_are_those_of_the_pass(before: list[Any], after: list[Any]) -> None:
    engine = worker.Engine(FakeLlm(FakeEngine([[1], [1]]), metrics=[before, after]), silent)
    reply = engine.generate([request(), request()], 2, None)
    assert reply["drafts"] == COUNTED
    assert [each["drafts"] for each in reply["generations"]] == [None, None]


def test_a_request_alone_has_the_engine_s_counters_to_itself() -> None:
    told = [metrics(0, 0, 0, [0, 0, 0]), metrics(3, 12, 7, [3, 2, 2])]
    engine = worker.Engine(FakeLlm(FakeEngine([[1]]), metrics=told), silent)
    assert engine.generate([request()], 1, None)["generations"][0]["drafts"] == COUNTED


class OlderEngine(FakeEngine):
    """Of a vLLM that has no counts of a request's own."""

    def output(self, request: FakeRequest, size: int) -> Any:
        output = super().output(request, size)
        del output.outputs[0].spec_decode_metrics
        return output


def test_requests_one_by_one_share_out_an_older_engine_s_counters() -> None:
    told = [
        metrics(10, 40, 9, [5, 4, 0]),
        metrics(13, 52, 16, [8, 6, 2]),
        metrics(14, 56, 16, [8, 6, 2]),
    ]
    engine = worker.Engine(FakeLlm(OlderEngine([[1], [1]]), metrics=told), silent)
    reply = engine.generate([request(), request()], 1, None)
    first, second = (each["drafts"] for each in reply["generations"])
    assert first == COUNTED
    assert [second[name] for name in ("num_drafts", "num_accepted_tokens")] == [1, 0]
    assert reply["drafts"]["num_drafts"] == 4


def test_a_request_among_those_that_fill_the_cache_is_not_alone() -> None:
    """What they draft is in the engine's counters too."""
    told = [metrics(0, 0, 0, [0, 0, 0]), metrics(3, 12, 7, [3, 2, 2])]
    fake = OlderEngine([[1] * 40] * 6 + [[1]])
    engine = worker.Engine(FakeLlm(fake, metrics=told), silent)
    reply = engine.generate([request()], 1, "under-preemption")
    assert (fake.num_added, reply["drafts"]) == (7, COUNTED)
    assert reply["generations"][0]["drafts"] is None


def test_no_speculation_is_not_the_same_as_no_drafts() -> None:
    other = [metric("num_requests_running", 3)]
    engine = worker.Engine(FakeLlm(FakeEngine([[1]]), metrics=[other, other]), silent)
    assert engine.generate([request()], 1, None)["drafts"] is None


@pytest.mark.parametrize(
    ("histogram", "num_draft_tokens", "expected"),
    [
        ([2, 1, 0, 2], 15, (5, 15, 7, [3, 2, 2])),
        ([4, 0, 0], 8, (4, 8, 0, [0, 0])),
        ([0, 0, 6], 12, (6, 12, 12, [6, 6])),
        ([0, 0, 0], 0, (0, 0, 0, [0, 0])),
        ([], 0, (0, 0, 0, [])),
    ],
)
def test_a_request_s_drafts_out_of_vllm_s_histogram(
    histogram: list[int], num_draft_tokens: int, expected: tuple[Any, ...]
) -> None:
    told = SimpleNamespace(histogram=histogram, num_draft_tokens=num_draft_tokens)
    assert worker._request_drafts(told) == dict(zip(COUNTED, expected, strict=True))


def test_where_vllm_tells_nothing_of_a_request_there_is_nothing() -> None:
    assert worker._request_drafts(None) is None


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [([], [], []), ([1, 2], [3], [4, 2]), ([], [1, 2], [1, 2]), ([5, 5], [-5, -5], [0, 0])],
)
def test_sums_by_position(left: list[int], right: list[int], expected: list[int]) -> None:
    assert worker._sum_per_pos(left, right) == expected


def test_growth_since_nothing_is_all_there_is() -> None:
    assert worker._grown(COUNTED, None) == COUNTED
    assert worker._grown(COUNTED, COUNTED) == {
        "num_drafts": 0,
        "num_draft_tokens": 0,
        "num_accepted_tokens": 0,
        "num_accepted_tokens_per_pos": [0, 0, 0],
    }


def candidate(logprob: float, rank: int, text: str) -> Any:
    return SimpleNamespace(logprob=logprob, rank=rank, decoded_token=text)


def test_a_token_s_score() -> None:
    candidates = {8: candidate(-2.5, 4, "b"), 9: candidate(-0.5, 1, "a")}
    expected = {
        "token_id": 8,
        "text": "b",
        "logprob": -2.5,
        "rank": 4,
        "argmax_token_id": 9,
        "argmax_text": "a",
        "argmax_logprob": -0.5,
        "top_logprobs": [-0.5],
    }
    assert worker._token_score(8, candidates, 1) == expected
    assert worker._token_score(8, candidates, 2) == {**expected, "top_logprobs": [-0.5, -2.5]}
    own = worker._token_score(9, candidates, 1)
    assert (own["token_id"], own["argmax_token_id"], own["rank"]) == (9, 9, 1)


@pytest.mark.parametrize(
    ("limit", "asked"), [(None, 16), (-1, 16), (20, 16), (16, 16), (5, 5), (0, 1)]
)
def test_no_more_top_logprobs_are_asked_for_than_the_engine_gives(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, asked: int
) -> None:
    engine, fake = engine_of([1], vllm_config=configuration(max_logprobs=limit))
    seen, plain = [], fake.add_request

    def noted(request_id: str, prompt: Mapping[str, Any], params: Any) -> None:
        seen.append(params.prompt_logprobs)
        plain(request_id, prompt, params)

    monkeypatch.setattr(fake, "add_request", noted)
    engine.score([11, 12], [])
    assert seen == [asked]


def test_scoring_reads_the_positions_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, fake = engine_of([1])
    plain = fake.output

    def with_logprobs(made: FakeRequest, size: int) -> Any:
        output = plain(made, size)
        scored = [{token: candidate(-float(at), 1, "t")} for at, token in enumerate(made.prompt)]
        output.prompt_logprobs = [None, *scored[1:]]
        return output

    monkeypatch.setattr(fake, "output", with_logprobs)
    scores = engine.score([11, 12, 13], [14, 15])
    assert [(each["token_id"], each["logprob"]) for each in scores] == [(14, -3.0), (15, -4.0)]


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("dtype", None),
        (
            "dtyp",
            "^this vLLM does not know `dtyp` in `engine_args`\nhint: did you mean `dtype`[?]$",
        ),
        ("zzz", "^this vLLM does not know `zzz` in `engine_args`$"),
    ],
)
def test_unknown_names_are_refused(key: str, told: str | None) -> None:
    given, known = {key: 1}, {"dtype", "max_model_len"}
    if told is None:
        worker._refuse_unknown("engine_args", given, known)
        return
    with pytest.raises(Refused, match=told) as caught:
        worker._refuse_unknown("engine_args", given, known)
    assert caught.value.kind == "config"


def test_a_configuration_is_followed_by_its_dotted_names() -> None:
    fake = FakeEngine([])
    vars(fake.vllm_config.model_config).update(
        dtype=SimpleNamespace(), max_model_len=2048, quantization=None
    )
    config = worker.Engine(FakeLlm(fake), silent).resolved_config()
    assert config["model_config.max_model_len"] == 2048
    assert config["model_config.dtype"] == "namespace()"
    assert config["model_config.quantization"] is None
    # What this vLLM does not have is absent, not an error.
    assert config["attention_config.backend"] is None
    json.dumps(config)


def serve(*commands: Mapping[str, Any], engine: worker.Engine | None = None) -> list[Any]:
    """What a worker replies to the commands, before it is told to end or its parent is gone."""
    lines = "".join(json.dumps(command) + "\n" for command in commands)
    replies = io.StringIO()
    served = Worker(io.StringIO(lines), replies)
    served._engine = engine
    served.serve()
    return [json.loads(line) for line in replies.getvalue().splitlines()]


def test_replies_come_in_order_progress_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "PROGRESS_INTERVAL_S", 0)
    llm = FakeLlm(FakeEngine([[1]]))
    monkeypatch.setattr(worker, "_load", lambda _, progress: worker.Engine(llm, progress))
    load = {"op": "load", "engine_args": {}}
    ask = {"op": "generate", "requests": [request()], "concurrency": 1, "circumstance": None}
    _, progress, result, error, end = serve(load, ask, {"op": "fly"}, {"op": "shutdown"})
    assert progress == {"progress": {"num_finished": 1, "num_output_tokens": 1}}
    assert result["result"]["drafts"] is None
    assert error == {"error": {"kind": "failed", "message": "no such command: fly"}}
    assert end == {"result": None}


def test_nothing_is_answered_past_the_shutdown() -> None:
    assert len(serve({"op": "shutdown"}, {"op": "hello"})) == 1


def test_a_parent_that_is_gone_ends_it() -> None:
    assert serve() == []


@pytest.mark.parametrize("operation", ["generate", "score"])
def test_nothing_is_generated_without_an_engine(operation: str) -> None:
    (reply,) = serve({"op": operation})
    assert reply["error"] == {
        "kind": "failed",
        "message": f"`{operation}` needs a loaded engine",
    }


@pytest.mark.parametrize(
    ("operation", "error", "kind"),
    [
        ("hello", ModuleNotFoundError("No module named 'vllm'"), "unavailable"),
        ("hello", RuntimeError("no device"), "failed"),
        # vLLM is there; what it lacks is the engine's failure.
        ("load", ModuleNotFoundError("No module named 'xgrammar'"), "failed"),
        ("load", Refused("config", "this vLLM does not know `x`"), "config"),
        ("load", MemoryError("too big"), "failed"),
    ],
)
def test_each_error_is_reported_by_kind(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    operation: str,
    error: Exception,
    kind: str,
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(worker, "_environment", fail)
    monkeypatch.setattr(worker, "_load", fail)
    (reply,) = serve({"op": operation, "engine_args": {}})
    name = "" if isinstance(error, Refused) else f"{type(error).__name__}: "
    assert reply == {"error": {"kind": kind, "message": f"{name}{error}"}}
    # The traceback of what nobody foresaw is in the log.
    assert ("Traceback" in capsys.readouterr().err) is not isinstance(error, Refused)


def test_an_engine_that_fails_in_a_step_is_reported() -> None:
    engine, _ = engine_of([1, 1], fail_at_step=2)
    ask = {"op": "generate", "requests": [request()], "concurrency": 1, "circumstance": None}
    (reply,) = serve(ask, engine=engine)
    assert reply["error"] == {"kind": "failed", "message": "RuntimeError: out of memory"}


def test_a_model_s_folder_is_itself_where_there_is_one(tmp_path: Any) -> None:
    (reply,) = serve({"op": "folder", "model": str(tmp_path)})
    assert reply["result"] == str(tmp_path)
