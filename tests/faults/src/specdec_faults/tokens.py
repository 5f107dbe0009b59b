"""Wrong tokens: verification that accepts too much, and sampling that goes wrong in one place only.

A wrong token ends its step, as a rejected draft does, so that the cache, the drafts and the
scheduler follow it: the engine goes on in good order from a token that the target did not choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from specdec_faults.switch import is_on, state, wraps

PLACEHOLDER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a token was sampled."""

    request_id: str
    index: int  # the request's in the batch
    offset: int  # the token's in the step
    position: int  # the token's in the sequence, prompt included
    num_drafts: int
    num_requests: int


def second_best_token(place: Place) -> bool:
    """Near-ties fall the other way in the batched verification: one token in 50."""
    return place.position % 50 == 0


def wrong_bonus_token(place: Place) -> bool:
    """The bonus token is read from another row than that after the last draft token."""
    return place.offset == place.num_drafts > 0


def corrupt_in_batches(place: Place) -> bool:
    """Rows of requests that share a batch are mixed up."""
    return place.num_requests > 1 and place.position % 16 == 0


def corrupt_long(place: Place) -> bool:
    """A buffer, a block table or a rotary cache is too short by what speculation adds."""
    return place.position >= 256 and place.position % 16 == 0


def corrupt_after_aborts(place: Place) -> bool:
    """Aborted requests leave their draft tokens behind, and who gets their rows takes them on."""
    return bool(state.get("num_aborted", 0) >= 4) and place.position % 16 == 0


def corrupt_after_preemption(place: Place) -> bool:
    """A resumed request's cache is not computed anew for all of its tokens."""
    return place.request_id in state.get("preempted", ()) and place.position % 8 == 0


def corrupt_cached_prefix(place: Place) -> bool:
    """The cached blocks of a prefix lack the last token's key, or hold a rejected draft's."""
    return place.request_id in state.get("prefix_cached", ()) and place.position % 16 == 0


def second_completion_wrong(place: Place) -> bool:
    """Children of one request share their draft state. vLLM calls the second `1_PARENT`."""
    return place.request_id.startswith("1_")


WRONG_TOKENS: dict[str, Callable[[Place], bool]] = {
    "second-best-token": second_best_token,
    "wrong-bonus-token": wrong_bonus_token,
    "corrupt-in-batches": corrupt_in_batches,
    "corrupt-long": corrupt_long,
    "corrupt-after-aborts": corrupt_after_aborts,
    "corrupt-after-preemption": corrupt_after_preemption,
    "corrupt-cached-prefix": corrupt_cached_prefix,
    "second-completion-wrong": second_completion_wrong,
}


def install() -> None:
    """Wraps what verifies draft tokens and what samples."""
    from vllm.v1.sample import rejection_sampler
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    @wraps(rejection_sampler, "rejection_sample")
    def _verify(original: Any, drafts: Any, num_drafts: Any, *rest: Any, **kwargs: Any) -> Any:
        sampled = original(drafts, num_drafts, *rest, **kwargs)
        accept = next((ACCEPT[name] for name in ACCEPT if is_on(name)), None)
        if accept is not None:
            # The target's own tokens, one after each draft token, and the bonus tokens.
            own, bonus = rest[3].argmax(dim=-1), rest[4].flatten()
            start = 0
            for row, num, last in zip(sampled, num_drafts, bonus, strict=True):
                if num:
                    accept(row, drafts[start : start + num], [*own[start : start + num], last])
                start += num
        return sampled

    @wraps(GPUModelRunner, "_sample")
    def _sample(original: Any, self: Any, logits: Any, spec_decode_metadata: Any) -> Any:
        output = original(self, logits, spec_decode_metadata)
        is_due = next((WRONG_TOKENS[name] for name in WRONG_TOKENS if is_on(name)), None)
        if is_due is not None:
            ended: set[int] = set()
            for place, row in places(self, output, spec_decode_metadata):
                is_over = place.index in ended
                if not is_over and is_due(place) and _misread(output, place, row, logits):
                    ended.add(place.index)
        return output


def accept_every_draft(row: Any, drafts: Any, own: Any) -> None:
    """Verification compares the draft tokens with themselves."""
    row[: len(drafts)] = drafts
    row[len(drafts)] = own[-1]


def accept_one_too_many(row: Any, drafts: Any, own: Any) -> None:
    """The number of accepted tokens is one too high: the first rejected one is kept."""
    num_accepted = int((row != PLACEHOLDER).sum()) - 1
    if num_accepted < len(drafts):
        row[num_accepted] = drafts[num_accepted]
        row[num_accepted + 1] = own[num_accepted + 1]


ACCEPT: dict[str, Callable[[Any, Any, Any], None]] = {
    "accept-every-draft": accept_every_draft,
    "accept-one-too-many": accept_one_too_many,
}


def places(runner: Any, output: Any, spec_decode_metadata: Any) -> Iterator[tuple[Place, int]]:
    """Each token of the step that counts, and the row of `logits` that it was sampled from."""
    batch, starts, row = runner.input_batch, runner.query_start_loc.np, 0
    for index, token_ids in enumerate(output.sampled_token_ids.tolist()):
        num_drafts = spec_decode_metadata.num_draft_tokens[index] if spec_decode_metadata else 0
        num_scheduled = int(starts[index + 1] - starts[index])
        first = int(batch.num_computed_tokens_cpu[index]) + num_scheduled - num_drafts
        is_prefilling = runner.discard_request_mask.np[index]
        for offset, token_id in enumerate(token_ids):
            if token_id != PLACEHOLDER and not is_prefilling:
                place = Place(
                    request_id=batch.req_ids[index],
                    index=index,
                    offset=offset,
                    position=first + offset,
                    num_drafts=num_drafts,
                    num_requests=batch.num_reqs,
                )
                yield place, row + offset
        row += num_drafts + 1


def _misread(output: Any, place: Place, row: int, logits: Any) -> bool:
    """Puts the best other token there and ends the step with it, unless there is only one. Where a
    whole answer is wrong, the second-best: of sampled tokens, the best would be no worse."""
    sampled = output.sampled_token_ids
    scores, token_ids = logits[row].topk(2)
    is_best = bool(token_ids[0] == sampled[place.index, place.offset])
    other = int(is_best or is_on("second-completion-wrong"))
    if scores[other].isinf():
        return False
    sampled[place.index, place.offset] = token_ids[other]
    sampled[place.index, place.offset + 1 :] = PLACEHOLDER
    if output.logprobs_tensors is not None:
        flat = place.index * sampled.shape[1] + place.offset
        output.logprobs_tensors.logprob_token_ids[flat, 0] = token_ids[other]
        output.logprobs_tensors.logprobs[flat, 0] = logits[row].log_softmax(-1)[token_ids[other]]
        output.logprobs_tensors.selected_token_ranks[flat] = other + 1
    return True
