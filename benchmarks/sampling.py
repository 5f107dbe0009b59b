"""Sampled answers on real engines, and how often their judgement is wrong.

    .venv/bin/python benchmarks/sampling.py                 minutes
    .venv/bin/python benchmarks/sampling.py --dtype bfloat16 --sessions 0

Both engines of the profile `smollm2-ngram` answer the prompts of four suites at temperature 1, in
several passes; the baseline engine scores them all. Each pass of either engine is judged against
each other pass of the baseline engine: its own must pass. Then sessions are drawn from the model's
own full distributions at the places of the baseline engine's answers, unchanged and with faults,
and judged by the same code. These distributions come from `transformers`; how far they are from the
engine's scores is shown.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pytest_specdec.e_process import ALTERNATIVES, Alternative, e_process
from pytest_specdec.engines.process import ProcessEngine
from pytest_specdec.generation import ROLES, Generation, Role, TokenScore
from pytest_specdec.judge_distribution import judge_distribution
from pytest_specdec.profile import Profile, read_profiles
from pytest_specdec.workload import Prompt, read_workload
from tools.demonstration import ROOT

SUITES = ("open_ended/story", "open_ended/brainstorming", "predictable/code", "predictable/sql")
PROMPTS_EACH = 6
MAX_TOKENS = 40
CONCURRENCY = 6
NUM_TOP = 16
FALSE_ALARMS = 0.01
LOG_THRESHOLD = -math.log(FALSE_ALARMS)
SESSION_TOKENS = 1000
NOTHING = "nothing"
MORE_OF_NOTHING = 4

Array = Any  # of numpy, whose own types say nothing here
Fault = Callable[["Place"], Array]
Scores = tuple[TokenScore, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a token was sampled.

    Attributes:
        p: the model's distribution there.
        before: the distribution one token earlier.
        draft: what n-gram look-up would draft there; `None` for nothing.
    """

    p: Array
    before: Array
    draft: int | None


def prompts() -> tuple[Prompt, ...]:
    """Of four suites, sampled."""
    found = []
    for suite in SUITES:
        workload = read_workload(ROOT / "suites" / f"{suite}.jsonl")
        for prompt in workload.prompts[:PROMPTS_EACH]:
            messages = prompt.request["messages"]
            request = {"messages": messages, "temperature": 1, "max_tokens": MAX_TOKENS}
            found.append(replace(prompt, id=f"{workload.name}-{prompt.id}", request=request))
    return tuple(found)


def answers(
    profile: Profile, num_passes: int, folder: Path
) -> dict[Role, list[list[tuple[Generation, Scores]]]]:
    """Each engine's passes, every answer with its scores by the baseline engine."""
    asked, engines = prompts(), {}
    try:
        for role in ROLES:
            log_path = folder / f"{role}.log"
            engines[role] = ProcessEngine(
                profile, role, python=Path(sys.executable), log_path=log_path
            )
            engines[role].load()
        return {
            role: [
                [
                    (answer, engines["baseline"].score(answer.prompt_token_ids, answer.token_ids))
                    for answer in engines[role].generate(asked, concurrency=CONCURRENCY).generations
                ]
                for _ in range(num_passes)
            ]
            for role in ROLES
        }
    finally:
        for engine in engines.values():
            engine.close()


def show_real(taken: Mapping[Role, list[list[tuple[Generation, Scores]]]], vocab_size: int) -> None:
    """A line for each pass, judged with the next pass of the baseline engine beside it."""
    print("| tokens of | pass | tokens | mean log-probability | below -12 nats | verdict |", end="")
    print(" log evidence | after tokens | most of it |\n|" + "---|" * 9)
    own = [[scores for _, scores in each] for each in taken["baseline"]]
    for role in ROLES:
        for number, each in enumerate(taken[role]):
            verdict = judge_distribution(
                speculative=[scores for _, scores in each],
                baseline=own[(number + 1) % len(own)],
                vocab_size=vocab_size,
                false_alarms=FALSE_ALARMS,
            )
            said = verdict.speculative
            found = said.evidence
            supported = found.supported if found.crossed_at else None
            cells = (
                role,
                number + 1,
                said.num_tokens,
                f"{said.mean_logprob:.2f}",
                f"{said.all_but_impossible:.1%}",
                verdict.kind,
                f"{found.log_e_max:.2f}",
                found.crossed_at or "",
                "" if supported is None else supported.meaning,
            )
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def places(model: str, said: Sequence[tuple[Generation, Scores]]) -> Iterator[Place]:
    """The full distributions at every token of the answers."""
    import torch
    from transformers import AutoModelForCausalLM

    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    furthest = 0.0
    for answer, scores in said:
        ids = [*answer.prompt_token_ids, *answer.token_ids]
        with torch.no_grad():
            logits = network(torch.tensor([ids])).logits[0].double()
        start = len(answer.prompt_token_ids)
        told = torch.log_softmax(logits, -1).numpy()
        for at, score in enumerate(scores, start=start):
            furthest = max(furthest, abs(told[at - 1][ids[at]] - score.logprob))
            p, before = (np.exp(told[at - back]) for back in (1, 2))
            yield Place(p=p / p.sum(), before=before / before.sum(), draft=looked_up(ids[:at]))
    print(f"\nfurthest that a score is from the model's: {furthest:.2g} nats", flush=True)


def looked_up(ids: Sequence[int]) -> int | None:
    """What followed the last few tokens where they stood before."""
    for size in (4, 3, 2):
        for at in range(len(ids) - size - 1, -1, -1):
            if ids[at : at + size] == ids[-size:]:
                return ids[at + size]
    return None


def tempered(place: Place, *, temperature: float) -> Array:
    """Sampled at another temperature."""
    weights = place.p ** (1 / temperature)
    return weights / weights.sum()


def forced(place: Place, *, share: float) -> Array:
    """The argmax whatever was drawn, at a share of the tokens."""
    mixed = (1 - share) * place.p
    mixed[place.p.argmax()] += share
    return mixed


def even(place: Place, *, share: float) -> Array:
    """Any token of the vocabulary, at a share of the tokens."""
    return (1 - share) * place.p + share / len(place.p)


def one_place_off(place: Place, *, share: float) -> Array:
    """Sampled from the logits of the token before, at a share of the tokens."""
    return (1 - share) * place.p + share * place.before


def cut(place: Place, *, top_k: int) -> Array:
    """Only the most likely tokens are sampled."""
    kept = np.where(place.p >= np.partition(place.p, -top_k)[-top_k], place.p, 0)
    return kept / kept.sum()


def accepted(place: Place, *, factor: float) -> Array:
    """A drafted token is accepted `factor` times as often as it should be."""
    if place.draft is None:
        return place.p
    share = min(1.0, factor * place.p[place.draft])
    others = place.p.copy()
    others[place.draft] = 0
    mixed = others / others.sum() * (1 - share)
    mixed[place.draft] = share
    return mixed


def drawn_again(place: Place) -> Array:
    """After a rejection the token is drawn from all of `p`, the draft included."""
    return place.p if place.draft is None else accepted(place, factor=2 - place.p[place.draft])


def unchanged(place: Place) -> Array:
    """No fault."""
    return place.p


FAULTS: Mapping[str, Fault] = {
    NOTHING: unchanged,
    "temperature 0.8": partial(tempered, temperature=0.8),
    "temperature 0.9": partial(tempered, temperature=0.9),
    "temperature 1.1": partial(tempered, temperature=1.1),
    "temperature 1.25": partial(tempered, temperature=1.25),
    "argmax instead at 5%": partial(forced, share=0.05),
    "argmax instead at 20%": partial(forced, share=0.2),
    "any token at 1%": partial(even, share=0.01),
    "any token at 5%": partial(even, share=0.05),
    "distribution of the place before at 2%": partial(one_place_off, share=0.02),
    "distribution of the place before at 10%": partial(one_place_off, share=0.1),
    "only the 20 most likely": partial(cut, top_k=20),
    "n-gram drafts accepted twice as often": partial(accepted, factor=2),
    "n-gram drafts accepted half as often": partial(accepted, factor=0.5),
    "drawn from all of p after a rejection": drawn_again,
}


def scored(p: Array) -> Callable[[int], TokenScore]:
    """Tokens of one distribution as an engine scores them; each once, however often it is drawn."""
    top = np.argpartition(p, -NUM_TOP)[-NUM_TOP:]
    top = top[np.argsort(-p[top])]
    logprobs = np.log(np.maximum(p, sys.float_info.min))
    top_logprobs = tuple(map(float, logprobs[top]))

    @cache
    def score(token_id: int) -> TokenScore:
        return TokenScore(
            token_id=token_id,
            text="",
            logprob=float(logprobs[token_id]),
            rank=0,
            argmax_token_id=int(top[0]),
            argmax_text="",
            argmax_logprob=top_logprobs[0],
            top_logprobs=top_logprobs,
        )

    return score


class Remembered:
    """An alternative of the product's that works out each score once: sessions share them."""

    def __init__(self, alternative: Alternative) -> None:
        self.meaning = alternative.meaning
        self._alternative = alternative
        self._known: dict[int, float] = {}

    def log_ratio(self, score: TokenScore, vocab_size: int) -> float:
        """The alternative's own."""
        if (known := self._known.get(id(score))) is None:
            known = self._known[id(score)] = self._alternative.log_ratio(score, vocab_size)
        return known


def show_simulated(model: str, said: Sequence[tuple[Generation, Scores]], sessions: int) -> None:
    """A line for each fault: how many sessions fail, and after how many tokens."""
    chance = np.random.default_rng(1)
    drawn: dict[str, list[list[TokenScore]]] = {name: [] for name in FAULTS}
    divergence = dict.fromkeys(FAULTS, 0.0)
    vocab_size = 0
    for place in places(model, said):
        vocab_size, score = len(place.p), scored(place.p)
        for name, fault in FAULTS.items():
            q = fault(place)
            some = q > 0
            divergence[name] += float(np.sum(q[some] * np.log(q[some] / place.p[some])))
            sums = np.cumsum(q)
            size = sessions * (MORE_OF_NOTHING if name == NOTHING else 1)
            token_ids = np.searchsorted(sums, chance.random(size) * sums[-1], side="right")
            drawn[name].append([score(int(each)) for each in token_ids])
    print(f"\n{sessions} sessions of {SESSION_TOKENS} tokens for each line,", end=" ")
    print(f"{MORE_OF_NOTHING * sessions} for `{NOTHING}`\n")
    print("| what is wrong | failed | by 200 | by 500 | median tokens | at best |\n|" + "---|" * 6)
    alternatives = [Remembered(each) for each in ALTERNATIVES]
    for name, by_place in drawn.items():
        num_sessions = len(by_place[0])
        found = [
            e_process(
                session(by_place, number),
                vocab_size=vocab_size,
                log_threshold=LOG_THRESHOLD,
                alternatives=alternatives,
            ).crossed_at
            for number in range(num_sessions)
        ]
        at = [each for each in found if each is not None]
        shares = [sum(each <= most for each in at) / num_sessions for most in (math.inf, 200, 500)]
        # What a test that knew the fault would need: the evidence asked for over its growth.
        growth = divergence[name] / len(by_place)
        cells = (
            name,
            *(f"{each:.1%}" for each in shares),
            f"{median(at):.0f}" if at else "",
            f"{LOG_THRESHOLD / growth:.0f}" if growth > 1e-9 else "",
        )
        print("| " + " | ".join(cells) + " |", flush=True)


def session(by_place: Sequence[Sequence[TokenScore]], number: int) -> list[TokenScore]:
    """One session's tokens: every place once in an order of its own, then again with other draws
    until there are enough."""
    order = np.random.default_rng(number)
    tokens: list[TokenScore] = []
    turn = number
    while len(tokens) < SESSION_TOKENS:
        tokens += [
            by_place[at][turn % len(by_place[at])] for at in order.permutation(len(by_place))
        ]
        turn += 1
    return tokens[:SESSION_TOKENS]


def main() -> None:
    """Real engines, then simulated sessions."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--passes", type=int, default=4, help="of each engine, at least 2")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--sessions", type=int, default=500, help="for each fault; 0 for none")
    given = parser.parse_args()
    profile = read_profiles(ROOT / "specdec.toml").chosen("smollm2-ngram")
    arguments = {**profile.engine_args, "max_model_len": 512, "max_num_seqs": 8}
    profile = replace(profile, engine_args={**arguments, "dtype": given.dtype})
    with tempfile.TemporaryDirectory() as folder:
        taken = answers(profile, given.passes, Path(folder))
    from transformers import AutoConfig

    show_real(taken, AutoConfig.from_pretrained(profile.target_model).vocab_size)
    if given.sessions:
        show_simulated(profile.target_model, taken["baseline"][0], given.sessions)


if __name__ == "__main__":
    main()
