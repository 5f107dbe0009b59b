"""Constraints that speculation does not keep to. vLLM 0.32 ends an answer whose token its grammar
refuses, with finish reason `error`; so do these, and the text up to there is invalid.
"""

from __future__ import annotations

from typing import Any

from specdec_faults.switch import is_on, wraps


def install() -> None:
    """Wraps the mask and the grammars' way back."""
    _grammar_not_applied()
    _grammar_not_rolled_back()


def _grammar_not_applied() -> None:
    """The mask is not expanded to draft tokens: in a step that has some, it binds nobody."""
    from vllm.v1.worker import gpu_model_runner

    @wraps(gpu_model_runner, "apply_grammar_bitmask")
    def _apply(original: Any, scheduler_output: Any, *args: Any) -> None:
        has_drafts = bool(scheduler_output.scheduled_spec_decode_tokens)
        if not (is_on("grammar-not-applied") and has_drafts):
            original(scheduler_output, *args)


def _grammar_not_rolled_back() -> None:
    """A grammar that was led over draft tokens to fill their masks is left behind them."""
    from vllm.v1.structured_output.backend_guidance import GuidanceGrammar
    from vllm.v1.structured_output.backend_xgrammar import XgrammarGrammar

    for grammar in (GuidanceGrammar, XgrammarGrammar):

        @wraps(grammar, "rollback")
        def _roll_back(original: Any, self: Any, num_tokens: int) -> None:
            if not is_on("grammar-not-rolled-back"):
                original(self, num_tokens)
