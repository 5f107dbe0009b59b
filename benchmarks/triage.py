"""Recorded answers of real engines through the product's own triage.

    .venv/bin/python benchmarks/triage.py FOLDER

FOLDER holds `completions.jsonl`, answers with the most likely tokens at each position, and
`comparisons.csv`, which names pairs of them and says where they differ and by how much on either
engine. Each pair is read twice, once with each engine as the baseline. Exit status 1 if a call is
not what the comparison implies. Nothing of the data is part of this repository;
docs/concepts/identity.md tells what it showed.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pytest_specdec.checks.evidence import EXACT, Evidence
from pytest_specdec.checks.identity import Divergence, compare
from pytest_specdec.checks.triage import triage
from pytest_specdec.generation import Generation, TokenScore
from pytest_specdec.workload import Prompt

# The comparisons' own limit, written out here so that a changed default is seen.
NEAR_TIE_NATS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a pair was called, and what its comparison implies."""

    pair: str
    baseline: str
    position: int | None
    margin_nats: float | None
    rank: int | None
    kind: str
    implied: tuple[str, int | None, float | None, int | None]

    @property
    def is_agreed(self) -> bool:
        kind, position, gap, rank = self.implied
        if (kind, position) != (self.kind, self.position):
            return False
        if gap is None:
            return True
        # Comparisons are told to four decimals; the rank is told for one of the engines alone.
        is_gap_told = self.margin_nats is not None and abs(abs(self.margin_nats) - gap) < 5e-4
        return is_gap_told and rank in (None, self.rank)


class Recorded:
    """All recorded answers; a token's id is its place in the list of all texts."""

    def __init__(self, lines: Sequence[str]) -> None:
        answers = map(json.loads, lines)
        self._by_name = {(each["run"], each["prompt_name"]): each for each in answers}
        texts = {text for each in self._by_name.values() for text in self._texts(each)}
        self._ids = {text: at for at, text in enumerate(sorted(texts))}

    def generation(self, run: str, prompt: str) -> Generation:
        """The answer as the product holds it; times were not recorded."""
        data = self._by_name[run, prompt]
        return Generation(
            prompt_id=prompt,
            prompt_token_ids=tuple(data["prompt_token_ids"]),
            token_ids=tuple(self._ids[text] for text in data["tokens"]),
            text=data["text"],
            finish_reason=data["finish_reason"],
            stop_reason=None,
            step_tokens=(1,) * len(data["tokens"]),
            ttft_ms=0.0,
            tpot_ms=None,
            drafts=None,
        )

    def evidence(self, run: str, divergence: Divergence) -> Evidence:
        """That run's own view of both tokens; `None` for one that is not among its likely ones."""
        data = self._by_name[run, divergence.baseline.prompt_id]
        likely: Mapping[str, float] = data["top_logprobs"][divergence.position]
        ranked = sorted(likely.items(), key=lambda item: -item[1])
        scores = {
            self._ids[text]: TokenScore(
                token_id=self._ids[text],
                text=text,
                logprob=logprob,
                rank=rank,
                argmax_token_id=self._ids[ranked[0][0]],
                argmax_text=ranked[0][0],
                argmax_logprob=ranked[0][1],
            )
            for rank, (text, logprob) in enumerate(ranked, start=1)
        }
        own, other = divergence.token_ids
        return Evidence(
            context="".join(data["tokens"][: divergence.position]),
            candidates=(
                None if own is None else scores.get(own),
                None if other is None else scores.get(other),
            ),
        )

    def _texts(self, data: Mapping[str, Any]) -> Iterator[str]:
        yield from data["tokens"]
        for likely in data["top_logprobs"]:
            yield from likely


def call(recorded: Recorded, row: Mapping[str, str], *, is_swapped: bool) -> Call:
    """One pair, with the reference or the candidate as the baseline."""
    baseline, other = (row["cand"], row["ref"]) if is_swapped else (row["ref"], row["cand"])
    divergence = compare(*(recorded.generation(run, row["prompt"]) for run in (baseline, other)))
    gap = row["cand_gap_nats" if is_swapped else "ref_gap_nats"]
    margin, rank, kind, implied = None, None, "identical", "identical"
    if row["identical"] != "True":
        implied = "near tie" if float(gap) <= NEAR_TIE_NATS else "divergence"
    if divergence is not None:
        evidence = recorded.evidence(baseline, divergence)
        prompt = Prompt(id=row["prompt"], request={}, json_schema=None, sql=None, line=1)
        kind = triage(divergence, evidence, prompt=prompt, rules=EXACT).finding.kind
        margin, score = evidence.margin_nats, evidence.candidates[1]
        rank = None if score is None else score.rank
    told = row["diverge_at"], row["ref_rank_of_cand"]
    at, rank_told = (int(each) if each else None for each in told)
    return Call(
        pair=row["prompt"],
        baseline=baseline,
        position=None if divergence is None else divergence.position,
        margin_nats=margin,
        rank=rank,
        kind=kind,
        implied=(implied, at, float(gap) if gap else None, None if is_swapped else rank_told),
    )


def main(arguments: Sequence[str]) -> int:
    """Prints the table."""
    (folder,) = map(Path, arguments)
    recorded = Recorded((folder / "completions.jsonl").read_text(encoding="utf-8").splitlines())
    with (folder / "comparisons.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    calls = [call(recorded, row, is_swapped=each) for each in (False, True) for row in rows]
    print(
        f"{'prompt':20} {'baseline':16} {'token':>5} {'margin':>9} {'rank':>4}  {'kind':12} agreed"
    )
    for each in calls:
        margin = "-" if each.margin_nats is None else f"{each.margin_nats:.6f}"
        print(
            f"{each.pair:20} {each.baseline:16} {_shown(each.position):>5} {margin:>9} "
            f"{_shown(each.rank):>4}  {each.kind:12} {'yes' if each.is_agreed else each.implied}"
        )
    num_agreed = sum(each.is_agreed for each in calls)
    print(f"{num_agreed} of {len(calls)} calls as the comparisons imply")
    return 0 if num_agreed == len(calls) else 1


def _shown(value: int | None) -> str:
    return "-" if value is None else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
