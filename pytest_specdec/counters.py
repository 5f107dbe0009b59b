"""Draft counters: what speculation proposed and what the target accepted, and arithmetic on them.

Names are vLLM's (`vllm:spec_decode_num_drafts` and its siblings). Nothing here knows where the
numbers came from. Floor 0: imports nothing from the package.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise, zip_longest


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCounters:
    """Counts of one request, one pass or one engine.

    Attributes:
        num_drafts: drafts proposed, that is verification steps that had a draft. vLLM does not
            count steps without one, so this is not the number of decode steps.
        num_draft_tokens: tokens proposed in them.
        num_accepted_tokens: proposed tokens the target accepted.
        num_accepted_tokens_per_pos: accepted tokens by draft position, first position first;
            its length is the longest draft seen.
    """

    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    num_accepted_tokens_per_pos: tuple[int, ...] = ()

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted over draft tokens; `None` when nothing was drafted, never a stand-in number."""
        if self.num_draft_tokens == 0:
            return None
        return self.num_accepted_tokens / self.num_draft_tokens

    @property
    def mean_acceptance_length(self) -> float | None:
        """1 + accepted / drafts, vLLM's own formula (the 1 is the bonus token); `None` when
        nothing was drafted."""
        if self.num_drafts == 0:
            return None
        return 1 + self.num_accepted_tokens / self.num_drafts

    @property
    def acceptance_rate_per_pos(self) -> tuple[float, ...]:
        """Share of drafts whose token at each position was accepted."""
        if self.num_drafts == 0:
            return ()
        return tuple(count / self.num_drafts for count in self.num_accepted_tokens_per_pos)

    def __add__(self, other: DraftCounters) -> DraftCounters:
        return self._combined(other, sign=1)

    def __sub__(self, other: DraftCounters) -> DraftCounters:
        """The growth from the earlier snapshot `other` to this one."""
        return self._combined(other, sign=-1)

    def _combined(self, other: DraftCounters, *, sign: int) -> DraftCounters:
        return DraftCounters(
            num_drafts=self.num_drafts + sign * other.num_drafts,
            num_draft_tokens=self.num_draft_tokens + sign * other.num_draft_tokens,
            num_accepted_tokens=self.num_accepted_tokens + sign * other.num_accepted_tokens,
            num_accepted_tokens_per_pos=tuple(
                mine + sign * theirs
                for mine, theirs in zip_longest(
                    self.num_accepted_tokens_per_pos,
                    other.num_accepted_tokens_per_pos,
                    fillvalue=0,
                )
            ),
        )

    def broken_laws(self) -> tuple[str, ...]:
        """Conservation laws these counts break, each as a sentence; empty when all hold."""
        per_pos = self.num_accepted_tokens_per_pos
        laws = (
            (
                self.num_accepted_tokens <= self.num_draft_tokens,
                f"accepted {self.num_accepted_tokens} of {self.num_draft_tokens} draft tokens",
            ),
            (
                sum(per_pos) == self.num_accepted_tokens,
                f"accepted tokens per position sum to {sum(per_pos)}, "
                f"but {self.num_accepted_tokens} were accepted",
            ),
            (
                all(earlier >= later for earlier, later in pairwise(per_pos)),
                f"accepted tokens per position rise: {list(per_pos)}",
            ),
            (
                max(per_pos, default=0) <= self.num_drafts,
                f"one position accepted {max(per_pos, default=0)} tokens in {self.num_drafts} "
                "drafts",
            ),
        )
        return tuple(sentence for holds, sentence in laws if not holds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as an engine counted them, of one request or of one pass.

    Attributes:
        num_prompt_tokens: of the prompts.
        num_generation_tokens: of the answers.
        num_cached_tokens: of the prompts, found in the prefix cache.
        num_preemptions: times that a request lost its place in the KV cache; an engine's alone.
    """

    num_prompt_tokens: int
    num_generation_tokens: int
    num_cached_tokens: int = 0
    num_preemptions: int = 0


def total(counters: Iterable[DraftCounters]) -> DraftCounters:
    """The sum over requests, passes or data-parallel engines."""
    result = DraftCounters()
    for each in counters:
        result = result + each
    return result
