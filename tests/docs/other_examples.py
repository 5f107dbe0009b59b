"""What the pages of findings show of every check but those of structured answers: each found by
the check itself, in runs of a few answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pytest_specdec.checks.again import check_again
from pytest_specdec.checks.conservation import check_counts
from pytest_specdec.checks.drift import check_drift
from pytest_specdec.checks.evidence import EXACT, Control, Evidence
from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.identity import find_divergence
from pytest_specdec.checks.liveness import check_exercised
from pytest_specdec.checks.refused import check_refused
from pytest_specdec.checks.replay import check_replay
from pytest_specdec.checks.triage import triage
from pytest_specdec.counters import Usage
from pytest_specdec.generation import Generation, Pass, Refusal, Retake, Role, RunPair, TokenScore
from pytest_specdec.judge_distribution import distribution_finding, judge_distribution
from tests.docs.honoured_answers import HONOURED, LOGPROBS
from tests.said import drafts, generation, pair, prompt, walk, workload
from tests.scored import Model

# "The capital of France is Paris[, which is] ... ", as token ids.
ANSWER = (504, 4052, 282, 4649, 314, 7042, 30, 378, 314, 253, 3180, 3240)
OTHER = (*ANSWER[:6], 28, 527, 314, 253, 3180, 3240)
MODEL = Model(seed=2)
UNCACHED = Usage(num_prompt_tokens=2, num_generation_tokens=12)


def said(token_ids: tuple[int, ...] = ANSWER, **facts: Any) -> Generation:
    return generation("capital", token_ids, finish_reason="length", **facts)


def token(token_id: int, text: str, logprob: float, rank: int) -> TokenScore:
    return TokenScore(
        token_id=token_id,
        text=text,
        logprob=logprob,
        rank=rank,
        argmax_token_id=30,
        argmax_text=".",
        argmax_logprob=-0.4411,
    )


def identical(
    baseline: list[Generation], speculative: list[Generation], *, other_logprob: float
) -> Callable[[], Finding]:
    """What differing answers are called, with what the baseline engine said of them."""

    def found() -> Finding:
        runs = pair([walk(each) for each in baseline], [walk(each) for each in speculative])
        divergence = find_divergence(runs, "capital")
        assert divergence is not None
        evidence = Evidence(
            context="The capital of France is Paris",
            candidates=(token(30, ".", -0.4411, 1), token(28, ",", other_logprob, 2)),
            controls=tuple(
                Control(batch=batch, position=None)
                for batch in ("all 12 prompts, 8 in flight", "the prompt alone")
            ),
        )
        return triage(divergence, evidence, prompt=prompt("capital"), rules=EXACT).finding

    return found


def not_repeated() -> Finding | None:
    passes = [walk(said()), walk(said(OTHER))]
    return check_replay(pair([walk(said())] * 2, passes), "capital")


def refused(**answers: str | None) -> Callable[[], Finding | None]:
    """By engine what it said; `None` for an answer."""

    def found() -> Finding | None:
        roles: tuple[Role, ...] = ("baseline", "speculative")
        refusals = tuple(
            Refusal(role=role, prompt_id="capital", said=answers[role])
            for role in roles
            if role in answers
        )
        runs = replace(pair([walk()], [walk()]), refusals=refusals)
        return check_refused(prompt("capital", logit_bias={"4461": 20}), runs)

    return found


def exercised(
    *speculative: Generation, drafted: Any = None, **request: Any
) -> Callable[[], Finding | None]:
    """What the first pass left untried."""
    prompts = (prompt("capital"), prompt("capital-penalised", **request)) if request else ()
    answers = speculative or (said(),)
    runs = pair([walk(*answers)], [walk(*answers, drafts=drafted)])
    asked = workload(*(prompts or (prompt("capital"),)))
    return lambda: check_exercised(asked, runs, num_speculative_tokens=4)


def miscounted() -> Finding | None:
    counted = said(step_tokens=(1, 5, 5, 1), drafts=drafts(4, 3, 0))
    plain = said(step_tokens=(1,) * 12)
    return check_counts(
        workload(prompt("capital")), pair([walk(plain)], [walk(counted)]), num_speculative_tokens=4
    )


def drifting() -> Finding | None:
    passes = [walk(said(drafts=drafts(4, each))) for each in (3, 3, 3, 2, 1, 1)]
    runs = pair([walk(said())] * 6, passes)
    return check_drift(workload(prompt("capital")), runs, acceptance_rate_drop=0.02)


def distribution(*, baseline: float = 0.0, speculative: float = 0.0) -> Finding | None:
    """Of sampled tokens, a share of which is any of the vocabulary."""
    own, other = (
        MODEL.session(seed, 400, drawn=MODEL.contaminated(share) if share else None)
        for seed, share in ((1, baseline), (2, speculative))
    )
    return distribution_finding(
        judge_distribution(
            baseline=[own], speculative=[other], vocab_size=Model.SIZE, false_alarms=0.01
        )
    )


def again(circumstance: str, speculative: Pass) -> Finding | None:
    first = walk(said(drafts=drafts(4, 3)))
    retake = Retake(circumstance=circumstance, baseline=first, speculative=speculative)
    runs: RunPair = pair([first], [first])
    return check_again(workload(prompt("capital")), runs, retake, acceptance_rate_drop=0.02)


def made(found: Callable[[], Finding | None]) -> Callable[[], Finding]:
    def finding() -> Finding:
        each = found()
        assert each is not None
        return each

    return finding


EXAMPLES: dict[str, Callable[[], Finding]] = {
    "baseline not repeatable": identical([said(), said(OTHER)], [said()] * 2, other_logprob=-1.03),
    "speculation not repeatable": identical(
        [said()] * 2, [said(), said(OTHER)], other_logprob=-2.6035
    ),
    "near tie": identical([said()], [said(OTHER)], other_logprob=-0.5661),
    "divergence": identical([said()], [said(OTHER)], other_logprob=-2.6035),
}
_FOUND: dict[str, Callable[[], Finding | None]] = {
    **HONOURED,
    **LOGPROBS,
    "not repeated": not_repeated,
    "not refused": refused(baseline=None, speculative=None),
    "refused without speculation": refused(
        baseline="token_id 49999 is out of vocab", speculative="token_id 49999 is out of vocab"
    ),
    "not asked": refused(baseline=None),
    "too short": exercised(said(ANSWER[:2])),
    "broken off": exercised(replace(said(ANSWER[:7]), finish_reason="error")),
    "counts unknown": exercised(),
    "nothing drafted": exercised(drafted=drafts()),
    "nothing rejected": exercised(drafted=drafts(4, 4)),
    "one-token drafts": exercised(drafted=drafts(1, 0, 1, 1, 0, size=1)),
    "no effect": exercised(
        said(),
        replace(said(), prompt_id="capital-penalised"),
        drafted=drafts(4, 3),
        presence_penalty=0.1,
    ),
    "miscounted": miscounted,
    "acceptance drifts": drifting,
    "distribution": lambda: distribution(speculative=0.05),
    "uncalibrated": lambda: distribution(baseline=0.05),
    "not brought about": lambda: again("warm-prefix-cache", walk(said(usage=UNCACHED))),
    "acceptance fell": lambda: again("8-in-flight", walk(said(drafts=drafts(3, 1)))),
}
EXAMPLES |= {kind: made(found) for kind, found in _FOUND.items()}
