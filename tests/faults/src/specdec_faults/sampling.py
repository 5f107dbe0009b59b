"""Sampling parameters that the speculative engine does not keep to, and log-probabilities that
are not those of the tokens; and the mend of what vLLM's CPU build itself gets wrong there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specdec_faults.switch import is_mended, is_on, wraps
from specdec_faults.tokens import places


def install() -> None:
    """Wraps what processes logits, draws and gathers log-probabilities."""
    _penalties_ignored()
    _bad_words_ignored()
    _min_tokens_ignored()
    _unsupported_ignored()
    _biased_sampling()
    _seed_ignored()
    _logprobs()
    _mend_temperature()


def _penalties_ignored() -> None:
    """Presence, frequency and repetition penalties are not expanded to draft tokens."""
    from vllm.v1.sample import rejection_sampler, sampler

    for module in (rejection_sampler, sampler):

        @wraps(module, "apply_all_penalties")
        def _penalise(original: Any, logits: Any, *args: Any) -> Any:
            return logits if is_on("penalties-ignored") else original(logits, *args)


def _bad_words_ignored() -> None:
    """Bad words are compared with the output tokens of another row, so none is ever found."""
    from vllm.v1.sample import rejection_sampler, sampler

    for module, name in (
        (rejection_sampler, "apply_bad_words_with_drafts"),
        (sampler, "apply_bad_words"),
    ):

        @wraps(module, name)
        def _forbid(original: Any, *args: Any) -> None:
            if not is_on("bad-words-ignored"):
                original(*args)


def _min_tokens_ignored() -> None:
    """`min_tokens` is not applied to draft tokens: the answer may end before."""
    from vllm.v1.sample.logits_processor.builtin import MinTokensLogitsProcessor

    for name in ("apply", "apply_with_spec_decode"):

        @wraps(MinTokensLogitsProcessor, name)
        def _apply(original: Any, self: Any, logits: Any, *args: Any) -> Any:
            return logits if is_on("min-tokens-ignored") else original(self, logits, *args)


def _unsupported_ignored() -> None:
    """What cannot be kept to is no longer refused: `min_p` and `logit_bias` do nothing."""
    from vllm.sampling_params import SamplingParams

    @wraps(SamplingParams, "_validate_spec_decode")
    def _validate(original: Any, self: Any, *args: Any) -> None:
        if not is_on("unsupported-ignored"):
            original(self, *args)


def _biased_sampling() -> None:
    """Temperature is applied to logits that already carry some of it."""
    from vllm.v1.sample import rejection_sampler
    from vllm.v1.sample.sampler import Sampler

    @wraps(Sampler, "apply_temperature")
    def _heat(original: Any, logits: Any, temperature: Any, all_random: Any) -> Any:
        scale = 0.8 if is_on("biased-sampling") else 1.0
        return original(logits, temperature * scale, all_random)

    @wraps(rejection_sampler, "apply_sampling_constraints")
    def _constrain(original: Any, logits: Any, cu_num: Any, metadata: Any) -> Any:
        if is_on("biased-sampling") and not metadata.all_greedy:
            metadata = replace(metadata, temperature=metadata.temperature * 0.8)
        return original(logits, cu_num, metadata)


def _seed_ignored() -> None:
    """Verification draws from the engine's random numbers, not from the request's."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    @wraps(GPUModelRunner, "_sample")
    def _sample(original: Any, self: Any, *args: Any) -> Any:
        if not is_on("seed-ignored"):
            return original(self, *args)
        metadata = self.input_batch.sampling_metadata
        kept, metadata.generators = metadata.generators, {}
        try:
            return original(self, *args)
        finally:
            metadata.generators = kept


def _logprobs() -> None:
    """Log-probabilities normalised over another row's logits (`logprobs-wrong`), or read from a
    row that no one filled (`logprobs-nan`: every eighth token's). The tokens are right."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    @wraps(GPUModelRunner, "_sample")
    def _sample(original: Any, self: Any, logits: Any, spec_decode_metadata: Any) -> Any:
        output = original(self, logits, spec_decode_metadata)
        if output.logprobs_tensors is None:
            return output
        if is_on("logprobs-wrong"):
            output.logprobs_tensors.logprobs.sub_(0.5)
        if is_on("logprobs-nan"):
            width = output.sampled_token_ids.shape[1]
            for place, _ in places(self, output, spec_decode_metadata):
                if place.position % 8 == 0:
                    flat = place.index * width + place.offset
                    output.logprobs_tensors.logprobs[flat] = float("nan")
        return output


def _mend_temperature() -> None:
    """Not a fault: what a fault in sampling needs to be seen at all.

    vLLM's CPU build writes each token's temperature, top-k and top-p into an integer copy, and
    the sampler reads memory that nobody wrote.
    """
    from vllm.v1.sample import rejection_sampler

    @wraps(rejection_sampler, "expand_batch_to_tokens")
    def _expand(
        original: Any,
        values: Any,
        cu_num_tokens: Any,
        num_tokens: int,
        replace_from: int = 0,
        replace_to: int = 0,
    ) -> Any:
        if not is_mended():
            return original(values, cu_num_tokens, num_tokens, replace_from, replace_to)
        counts = cu_num_tokens.diff(prepend=cu_num_tokens.new_zeros(1))
        return values.masked_fill(values == replace_from, replace_to).repeat_interleave(counts)
