"""Triage of a divergence: whose it is, and whether it is more than rounding. Floor 2.

Pure: what the baseline engine said when it was asked is a value here.
docs/concepts/identity.md tells the rules to people.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pytest_specdec.checks.applied import PENALTIES, applied
from pytest_specdec.checks.evidence import Evidence, IdentityRules, Rescored
from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.identity import Divergence
from pytest_specdec.generation import TokenScore
from pytest_specdec.workload import Prompt

Kind = Literal["baseline not repeatable", "speculation not repeatable", "near tie", "divergence"]
END = "the end of the answer"
HINTS: Mapping[Kind, str] = {
    "baseline not repeatable": (
        "without speculation the prompt already has two answers; set `VLLM_BATCH_INVARIANT` in "
        '`env` where the GPU supports it, or `identity = "near-tie"`'
    ),
    "speculation not repeatable": (
        "with speculation alone the prompt has two answers; run it at `concurrency` 1, then with "
        "another speculative `method`, to see which of batch and draft decides"
    ),
    "near tie": (
        'rounding decides between tokens this close; set `identity = "near-tie"`, which checks '
        "every token of the answer, or a wider `dtype`"
    ),
    "divergence": (
        "rounding does not explain it, speculation changed the answer; run the prompt with another "
        "speculative `method`, and with another vLLM by `--specdec-python`"
    ),
}
HINTS_AGAINST_SPECULATION: Mapping[Kind, str] = {
    **HINTS,
    "baseline not repeatable": (
        "the baseline engine alone has two answers for the prompt; run it in a profile without "
        "`baseline`, to see whether speculation decides"
    ),
    "speculation not repeatable": (
        "the speculative engine alone has two answers for the prompt; run it in a profile without "
        "`baseline`, to see whether speculation decides"
    ),
    "divergence": (
        "rounding does not explain it, one of the engines changed the answer; run the prompt in a "
        "profile without `baseline`, with the vLLM and the `speculative_config` of each"
    ),
}
"""Where both engines speculate."""
HINTS_OF_TWO_VLLMS: Mapping[Kind, str] = {
    **HINTS,
    "divergence": HINTS_AGAINST_SPECULATION["divergence"],
}
"""Where one of them does, and another vLLM may be what changed the answer."""
UNASKED = (
    "greedy speculation must not change a token; the baseline engine's log says why it failed, and "
    "if it did not, the token is the last of `max_model_len`, which is not scored: lower "
    "`max_tokens`"
)
RESCORED = "rescored by the baseline engine: every token is its best one or a near tie"
PENALISED = "near ties cannot be told under a penalty; take it out of the prompt to see the margin"
UNRECORDED = (
    "what is asked about a difference follows from the settings and the code of then: record again "
    "with `--specdec-record`"
)
UNSCORED = "an answer is rescored with one token to spare in `max_model_len`; lower `max_tokens`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Triage:
    """What a divergence is.

    Attributes:
        finding: its kind and the evidence.
        is_accepted: whether the profile's level lets the prompt pass all the same.
    """

    finding: Finding
    is_accepted: bool


def triage(
    divergence: Divergence, evidence: Evidence | None, *, prompt: Prompt, rules: IdentityRules
) -> Triage:
    """Says what a divergence is, and whether the prompt passes.

    Args:
        evidence: `None` when the baseline engine could not be asked.
    """
    penalties = applied(prompt.request, PENALTIES)
    rescored = None
    if rules.level == "near-tie" and evidence is not None and not penalties:
        rescored = evidence.rescored
    kind = _kind(divergence, evidence, is_penalised=bool(penalties), rules=rules)
    facts = [*_differences(divergence, evidence, prompt), *_controls(divergence, evidence)]
    is_accepted = False
    if rescored is not None:
        defects = [*_defects(rescored, rules)]
        is_accepted = not defects
        facts += defects or [RESCORED]
        if defects:
            kind = "divergence"
        elif kind == "divergence":
            # A token likelier than the baseline's own one by far is not held against speculation.
            kind = "near tie"
    hint: str | None = _hints(rules)[kind]
    if is_accepted:
        hint = None
    elif evidence is None:
        hint = UNASKED if kind == "divergence" else hint
    elif penalties:
        facts.append(f"the margin is without what decides here: {', '.join(penalties)}")
        hint = PENALISED if kind == "divergence" else hint
    elif rules.level == "near-tie" and rescored is None:
        facts.append("the whole answer could not be rescored")
        hint = UNSCORED
    if evidence is not None and evidence.unrecorded:
        facts += [f"not asked when this was recorded: {each}" for each in evidence.unrecorded]
        hint = None if is_accepted else UNRECORDED
    finding = Finding(kind=kind, prompt_id=prompt.id, facts=tuple(facts), hint=hint)
    return Triage(finding=finding, is_accepted=is_accepted)


def _hints(rules: IdentityRules) -> Mapping[Kind, str]:
    if rules.is_against_speculation:
        return HINTS_AGAINST_SPECULATION
    return HINTS_OF_TWO_VLLMS if rules.is_of_two_vllms else HINTS


def _kind(
    divergence: Divergence, evidence: Evidence | None, *, is_penalised: bool, rules: IdentityRules
) -> Kind:
    """By the first difference alone."""
    controls = () if evidence is None else evidence.controls or ()
    # One that differs only later says nothing of this token.
    if divergence.unrepeated == "baseline" or any(
        each.position is not None and each.position <= divergence.position for each in controls
    ):
        return "baseline not repeatable"
    if divergence.unrepeated == "speculative":
        return "speculation not repeatable"
    margin = None if evidence is None else evidence.margin_nats
    if margin is not None and not is_penalised and rules.is_near(abs(margin)):
        return "near tie"
    return "divergence"


def _defects(rescored: tuple[Rescored, ...], rules: IdentityRules) -> Iterator[str]:
    """What rounding does not explain, a line an answer."""
    for each in rescored:
        if each.divergence is not None and each.divergence.is_cut_short:
            yield f"one answer is the beginning of the other, to token {each.divergence.position}"
            continue
        beyond = next((gap for gap in each.gaps if not rules.is_near(gap.nats)), None)
        if beyond is not None:
            yield (
                f"rescored by the baseline engine: the first token beyond a near tie is token "
                f"{beyond.position} of the speculative answer, {beyond.score.text!r}, "
                f"{beyond.nats:.4f} nats below {beyond.rival!r}"
            )


def _differences(
    divergence: Divergence, evidence: Evidence | None, prompt: Prompt
) -> Iterator[str]:
    own, other = divergence.token_ids
    lengths = f"{len(divergence.baseline.token_ids)} and {len(divergence.other.token_ids)} tokens"
    yield (
        f"prompt on line {prompt.line} of its workload; {divergence.where} differ first at token "
        f"{divergence.position} (answers of {lengths})"
    )
    if evidence is not None and (any(evidence.candidates) or not evidence.unrecorded):
        yield f"after: {evidence.context!r}"
    candidates = (None, None) if evidence is None else evidence.candidates
    yield f"first: {_token(own, candidates[0])}"
    yield f"second: {_token(other, candidates[1])}"
    if evidence is not None and evidence.margin_nats is not None:
        yield f"margin: {evidence.margin_nats:.4f} nats, by the baseline engine"


def _controls(divergence: Divergence, evidence: Evidence | None) -> Iterator[str]:
    if evidence is None or divergence.unrepeated == "baseline":
        return
    if evidence.controls is None:
        yield "no control run of the baseline engine could be made"
        return
    for each in evidence.controls:
        did = (
            "the same answer"
            if each.position is None
            else f"differs from its first answer at token {each.position}"
        )
        yield f"control run of the baseline engine, {each.batch}: {did}"


def _token(token_id: int | None, score: TokenScore | None) -> str:
    if token_id is None:
        return END
    if score is None:
        return f"token {token_id}"
    text, logprob, rank = score.text, score.logprob, score.rank
    return f"token {token_id} {text!r}, log-probability {logprob:.4f}, rank {rank}"
