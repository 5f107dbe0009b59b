"""What the baseline engine said of a divergence, when it was asked afterwards. Floor 2.

Facts alone; `triage` judges them, and `witness` asks.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_specdec.checks.identity import Divergence
from pytest_specdec.generation import TokenScore
from pytest_specdec.profile import Identity, Tolerances

# Log-probabilities are 32-bit numbers: one of 100 nats is told to within 4e-6.
ROUNDING_NATS = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityRules:
    """What a prompt's answers are held to.

    Attributes:
        level: `exact`, or `near-tie`.
        near_tie_nats: how much less likely a token may be and still be told apart by rounding.
        is_against_speculation: whether the baseline engine speculates too.
        is_of_two_vllms: whether it has an interpreter of its own, and so perhaps another vLLM.
    """

    level: Identity = "exact"
    near_tie_nats: float = Tolerances().near_tie_nats
    is_against_speculation: bool = False
    is_of_two_vllms: bool = False

    def is_near(self, gap_nats: float) -> bool:
        """Whether a gap is at most what rounding may decide."""
        return gap_nats <= self.near_tie_nats + ROUNDING_NATS


EXACT = IdentityRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The baseline engine's answer to the prompt once more, in another batch.

    Attributes:
        batch: what it was answered with, in words.
        position: where it first differs from the baseline's first answer; `None`: nowhere.
    """

    batch: str
    position: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """How much less likely a token is than its best rival, by the baseline engine.

    Attributes:
        position: 0-based index into the answer's tokens.
        rival: the rival's text.
    """

    position: int
    score: TokenScore
    rival: str
    rival_logprob: float

    @property
    def nats(self) -> float:
        return self.rival_logprob - self.score.logprob


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """One speculative answer under the baseline engine.

    Attributes:
        divergence: from the baseline's first answer; `None` where it is the same one.
        gaps: of all its tokens to the most likely ones; under a mask, which may have taken the most
            likely one out, of the first that differs to the baseline's own.
    """

    divergence: Divergence | None
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The baseline engine's view of a divergence.

    Attributes:
        context: the tokens before it, as text.
        candidates: the baseline's own token and the other one, scored after the same tokens;
            `None` for an answer that has ended.
        controls: what the control run did; `None` where none was made.
        rescored: the speculative engine's answers, each once; `None` where they were not rescored.
        unrecorded: what was not asked when the runs were recorded, so that nobody knows.
    """

    context: str
    candidates: tuple[TokenScore | None, TokenScore | None]
    controls: tuple[Control, ...] | None = None
    rescored: tuple[Rescored, ...] | None = None
    unrecorded: tuple[str, ...] = ()

    @property
    def margin_nats(self) -> float | None:
        """How much likelier the baseline's own token is, in nats."""
        own, other = self.candidates
        return None if own is None or other is None else own.logprob - other.logprob
