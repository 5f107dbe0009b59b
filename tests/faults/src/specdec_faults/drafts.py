"""Faults of drafting: what is proposed, and how long that takes. Greedy output stays as it was.

They bite what vLLM's runner got from its proposer, of whatever method. A proposer that answers a
tensor (a draft model does) cannot draft less for one request than for another: there, what a fault
takes away is spoiled instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from specdec_faults import switch
from specdec_faults.engine import lengthen

Draft = list[int]
WORSE_EVERY = 16
DRIFT_AFTER = 50
DRIFT_DRAFTS = 200
LONG_PROMPT = 0.75
DRAFTER_SHARE = 0.5


def install() -> None:
    """Puts them between the proposer and the scheduler."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    @switch.wraps(GPUModelRunner, "execute_model")
    def _execute(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if switch.is_on("drafter-slow"):
            switch.state["step_begun_s"] = perf_counter()
        return original(self, *args, **kwargs)

    @switch.wraps(GPUModelRunner, "propose_draft_token_ids")
    def _propose(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        proposed = original(self, *args, **kwargs)
        fault = FAULTS.get(switch.biting())
        return proposed if fault is None else changed(proposed, fault, self)


def changed(proposed: Any, fault: Fault, runner: Any) -> Any:
    """What was proposed after the fault, as the list or the tensor that it was."""
    if isinstance(proposed, list):
        return fault(runner, proposed)
    import torch

    drafts = proposed.tolist()
    rows = [
        [*draft, *spoiled(runner, whole[len(draft) :])]
        for draft, whole in zip(fault(runner, drafts), drafts, strict=True)
    ]
    return torch.tensor(rows, dtype=proposed.dtype, device=proposed.device)


def spoiled(runner: Any, draft: Sequence[int]) -> Draft:
    """Other tokens, which the target has no reason to choose."""
    size = runner.input_batch.vocab_size
    return [(token + size // 2) % size for token in draft]


def nothing_drafted(runner: Any, drafts: list[Draft]) -> list[Draft]:
    """A proposer that is loaded and never asked, as where a condition for it never holds."""
    return [[] for _ in drafts]


def garbage_drafts(runner: Any, drafts: list[Draft]) -> list[Draft]:
    """Drafts read from the wrong place: a mapping between two vocabularies that is off."""
    return [spoiled(runner, draft) for draft in drafts]


def drafts_worse(runner: Any, drafts: list[Draft]) -> list[Draft]:
    """A draft head that has lost a little, as to a rounded weight: some tokens are wrong, always
    at the same places of an answer, so that passes repeat each other."""
    return [
        [
            spoiled(runner, [token])[0] if (known + place) % WORSE_EVERY == 0 else token
            for place, token in enumerate(draft)
        ]
        for known, draft in zip(runner.input_batch.num_tokens_no_spec, drafts, strict=False)
    ]


def drafts_one_token(runner: Any, drafts: list[Draft]) -> list[Draft]:
    """`num_speculative_tokens` that is lost on the way to the proposer."""
    return [draft[:1] for draft in drafts]


def drafter_slow(runner: Any, drafts: list[Draft]) -> list[Draft]:
    """A drafter that fell back to a slow kernel, or waits for the device without need."""
    lengthen(switch.state.pop("step_begun_s", perf_counter()), DRAFTER_SHARE)
    return drafts


def collapse_after_long_request(runner: Any, drafts: list[Draft]) -> list[Draft]:
    """A drafter's cache that one long request overruns, and that is not put right after it."""
    batch = runner.input_batch
    lengths = batch.num_prompt_tokens[: batch.num_reqs]
    if (lengths > LONG_PROMPT * runner.max_model_len).any():
        switch.state["is_collapsed"] = True
    return garbage_drafts(runner, drafts) if "is_collapsed" in switch.state else drafts


def acceptance_drifts(runner: Any, drafts: list[Draft]) -> list[Draft]:
    """A drafter's state that decays while it serves: of the drafts after the fiftieth an ever
    larger share is spoiled."""
    return [spoiled(runner, draft) if draft and _is_decayed() else draft for draft in drafts]


def _is_decayed() -> bool:
    """Whether the next draft is one of that share, spread evenly."""
    state = switch.state
    state["num_drafts"] = state.get("num_drafts", 0) + 1
    share = min(1.0, max(0, state["num_drafts"] - DRIFT_AFTER) / DRIFT_DRAFTS)
    state["owed"] = state.get("owed", 0.0) + share
    is_due = bool(state["owed"] >= 1)
    state["owed"] -= is_due
    return is_due


Fault = Callable[[Any, list[Draft]], list[Draft]]
FAULTS: dict[str, Fault] = {
    "nothing-drafted": nothing_drafted,
    "garbage-drafts": garbage_drafts,
    "drafts-worse": drafts_worse,
    "drafts-one-token": drafts_one_token,
    "drafter-slow": drafter_slow,
    "collapse-after-long-request": collapse_after_long_request,
    "acceptance-drifts": acceptance_drifts,
}
