"""Requests that end late or arrive with holes, and what is learnt of requests for the faults that
bite after an abort, after a preemption or on a cached prefix.
"""

from __future__ import annotations

from typing import Any

from specdec_faults.switch import is_on, state, wraps


def install() -> None:
    """Wraps the end of a request, its delivery and its lot in the scheduler."""
    _stop_token_missed()
    _text_after_stop()
    _stream_drops_tokens()
    _whole_answer_cut()
    _learn_of_aborts()
    _learn_of_preemptions()
    _learn_of_cached_prefixes()


def _stop_token_missed() -> None:
    """`tokens-after-stop`: a stop token is looked for at the end of a step only, so one among
    the accepted draft tokens is missed. Lengths are kept."""
    from vllm.v1.core.sched.scheduler import Scheduler

    @wraps(Scheduler, "_update_request_with_output")
    def _update(
        original: Any, self: Any, request: Any, token_ids: list[int], *args: Any, **kwargs: Any
    ) -> Any:
        if not is_on("tokens-after-stop"):
            return original(self, request, token_ids, *args, **kwargs)
        room = min(
            request.max_tokens - request.num_output_tokens,
            self.max_model_len - request.num_tokens,
        )
        *unseen, last = token_ids[: max(room, 1)]
        for token_id in unseen:
            request.append_output_token_ids(token_id)
        _, stopped = original(self, request, [last], *args, **kwargs)
        return [*unseen, last], stopped


def _text_after_stop() -> None:
    """`tokens-after-stop`: a stop string ends the request, but what its last step brought stays."""
    from vllm.v1.engine import detokenizer

    @wraps(detokenizer, "check_stop_strings")
    def _check(original: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        return (found[0], -1) if found and is_on("tokens-after-stop") else found


def _stream_drops_tokens() -> None:
    """`stream-drops-tokens`: a chunk is lost when the next comes before it was fetched: each
    fourth of a stream. An answer that is sent whole at its end is whole."""
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine.output_processor import RequestState

    @wraps(RequestState, "_new_completion_output")
    def _complete(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        completion = original(self, *args, **kwargs)
        if is_on("stream-drops-tokens") and self.output_kind == RequestOutputKind.DELTA:
            num_chunks = state[self.request_id] = state.get(self.request_id, 0) + 1
            if num_chunks % 4 == 0:
                completion.token_ids, completion.text = [], ""
                completion.logprobs = completion.logprobs and completion.logprobs[:0]
        return completion


def _whole_answer_cut() -> None:
    """`whole-answer-cut`: what the last step brought never joins an answer that is sent whole at
    its end; a stream has it."""
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine.output_processor import RequestState

    @wraps(RequestState, "_new_completion_output")
    def _complete(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        completion = original(self, *args, **kwargs)
        if is_on("whole-answer-cut") and self.output_kind == RequestOutputKind.FINAL_ONLY:
            completion.token_ids = completion.token_ids[:-1]
        return completion


def _learn_of_aborts() -> None:
    """For `corrupt-after-aborts`: a caller's aborts; vLLM's own, after a stop string, are not."""
    from vllm.v1.engine.output_processor import OutputProcessor

    @wraps(OutputProcessor, "abort_requests")
    def _abort(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        aborted = original(self, *args, **kwargs)
        if is_on("corrupt-after-aborts"):
            state["num_aborted"] = state.get("num_aborted", 0) + len(aborted)
        return aborted


def _learn_of_preemptions() -> None:
    """For `corrupt-after-preemption`."""
    from vllm.v1.core.sched.scheduler import Scheduler

    @wraps(Scheduler, "_preempt_request")
    def _preempt(original: Any, self: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        original(self, request, *args, **kwargs)
        if is_on("corrupt-after-preemption"):
            state.setdefault("preempted", set()).add(request.request_id)


def _learn_of_cached_prefixes() -> None:
    """For `corrupt-cached-prefix`: a new request that comes with computed tokens."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    @wraps(GPUModelRunner, "_update_states")
    def _update(original: Any, self: Any, scheduler_output: Any) -> Any:
        if is_on("corrupt-cached-prefix"):
            state.setdefault("prefix_cached", set()).update(
                new.req_id for new in scheduler_output.scheduled_new_reqs if new.num_computed_tokens
            )
        return original(self, scheduler_output)
