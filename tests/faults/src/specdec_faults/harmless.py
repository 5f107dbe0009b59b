"""Changes that harm nobody, and that must change nothing in a verdict."""

from __future__ import annotations

import logging
from collections import deque
from typing import Any

from specdec_faults import switch
from specdec_faults.drafts import FAULTS, Draft
from specdec_faults.engine import VERIFY_SHARE, after_each_step, lengthen

REPAIR_EVERY = 4
NOISE = (
    "SpecDecoding metrics: Mean acceptance length: 9.99, Accepted: 0 tokens, Drafted: 0 tokens, "
    "Avg Draft acceptance rate: 0.0%",
    "speculation is off: the drafter has failed",
    '{"result": null}',
)
logger = logging.getLogger("vllm.specdec_faults")


def install() -> None:
    """Puts them beside the faults."""
    from vllm.v1.core.sched.scheduler import Scheduler

    FAULTS["better-drafts"] = better_drafts
    after_each_step(other_log_lines)
    after_each_step(slower_target)
    for handler in logging.getLogger("vllm").handlers:
        handler.addFilter(reworded)

    @switch.wraps(Scheduler, "schedule")
    def _schedule(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if switch.is_on("reordered-batches"):
            reordered_batches(self)
        return original(self, *args, **kwargs)


def better_drafts(runner: Any, drafts: list[Draft]) -> list[Draft]:
    """A better drafter: a quarter of its tokens are those that the same prompt was answered with
    before. The first pass teaches it."""
    batch = runner.input_batch
    answers = switch.state.setdefault("answers", {})
    result = []
    for index, draft in enumerate(drafts):
        known = batch.token_ids_cpu[index, : batch.num_tokens_no_spec[index]].tolist()
        prompt = tuple(known[: batch.num_prompt_tokens[index]])
        answer = answers.setdefault(prompt, known)
        if answer == known[: len(answer)]:
            answers[prompt] = known
        is_same = answer[: len(known)] == known
        result.append(_repaired(draft, answer, len(known)) if is_same else draft)
    return result


def _repaired(draft: Draft, answer: Draft, start: int) -> Draft:
    coming = answer[start : start + len(draft)]
    return [
        right if (start + place) % REPAIR_EVERY == 0 else token
        for place, (token, right) in enumerate(zip(draft, coming, strict=False))
    ] + draft[len(coming) :]


def other_log_lines(begun_s: float) -> None:
    """A vLLM that logs more, and numbers that are nobody's."""
    if switch.is_on("other-log-lines"):
        for line in NOISE:
            logger.warning(line)


def reworded(record: logging.LogRecord) -> bool:
    """A vLLM that words its log lines otherwise."""
    if switch.is_on("other-log-lines") and record.name != logger.name:
        record.msg, record.args = " ".join(reversed(record.getMessage().split())), ()
    return True


def reordered_batches(scheduler: Any) -> None:
    """A scheduler that takes requests in another order: the latest first."""
    scheduler.running.reverse()
    if isinstance(scheduler.waiting, deque):
        scheduler.waiting.reverse()


def slower_target(begun_s: float) -> None:
    """A target that is slower in both engines alike; recorded with it, a target without it is a
    faster one."""
    if switch.is_on("slower-target", anywhere=True):
        lengthen(begun_s, VERIFY_SHARE)
