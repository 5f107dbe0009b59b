"""Published figures of speculative decoding through the product's own decomposition and verdicts.

    .venv/bin/python benchmarks/published.py FOLDER

FOLDER holds `bench_json/*.json` as `vllm bench serve` harnesses write them (pairs of runs without
and with speculation) and `speedup/*.csv` with columns `baseline_value`, `spec_value`, `unit` and
`acceptance_length`. Nothing of it is part of this repository. What the figures show is told in
docs/concepts/statistics.md.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pytest_specdec.explain import speedup_moves
from pytest_specdec.floors import Rules
from pytest_specdec.generation import ROLES, Generation, Pass, Role, Run, RunPair
from pytest_specdec.judge_speedup import judge_speedup
from pytest_specdec.measurement import measure
from pytest_specdec.profile import Tolerances
from pytest_specdec.speedup import Speedup, speedup_of
from pytest_specdec.stored_baseline import StoredLoad, StoredSpeedup
from pytest_specdec.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One published comparison.

    Attributes:
        num_tokens: output tokens of the two runs, as far as told.
        tokens_per_s: of the two.
        acceptance_length: of the speculative one: its tokens per step, as far as told.
    """

    table: str
    name: str
    num_tokens: tuple[int, int]
    tokens_per_s: tuple[float, float]
    acceptance_length: float

    def runs(self) -> RunPair:
        """As runs of one pass each, steps from the acceptance length."""
        lengths = (1.0, self.acceptance_length)
        runs = {
            role: Run(role=role, workload=self.name, passes=(self._pass(at, lengths[at]),))
            for at, role in enumerate(ROLES)
        }
        return RunPair(
            baseline=runs["baseline"], speculative=runs["speculative"], order=tuple(ROLES)
        )

    def _pass(self, at: int, length: float) -> Pass:
        num_tokens = self.num_tokens[at]
        num_steps = round(num_tokens / length)
        answer = Generation(
            prompt_id="all",
            prompt_token_ids=(),
            token_ids=tuple(range(num_tokens)),
            text="",
            finish_reason="length",
            stop_reason=None,
            step_tokens=(*(1,) * (num_steps - 1), num_tokens - num_steps + 1),
            ttft_ms=1.0,
            tpot_ms=None,
            drafts=None,
        )
        wall_s = num_tokens / self.tokens_per_s[at]
        return Pass(generations=(answer,), wall_s=wall_s, drafts=None)


def of_bench_json(folder: Path) -> Iterator[Published]:
    """Pairs of runs without and with speculation, in one file or in two."""
    benches: dict[tuple[str, str, int], dict[Role, Mapping[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        phases = data["phases"] if isinstance(data, dict) else [{"phase": "conv", "bench": data}]
        for phase in phases:
            plain = phase.get("variant", path.stem.rpartition("__")[2]).startswith("nomtp")
            role: Role = "baseline" if plain else "speculative"
            for bench in phase["bench"]:
                key = (path.name.split("__")[0], phase["phase"], bench["concurrency"])
                benches.setdefault(key, {})[role] = bench["metrics"]
    for (source, phase, concurrency), both in benches.items():
        old, new = both["baseline"], both["speculative"]
        length = new.get("spec_acceptance_length")
        if length is None:  # a chunk of the stream is a step, and ITL the gap between two
            length = new["mean_itl_ms"] / new["mean_tpot_ms"]
        yield Published(
            table=f"{source} {phase}",
            name=f"{concurrency} in flight",
            num_tokens=(old["total_generated_tokens"], new["total_generated_tokens"]),
            tokens_per_s=(
                old["output_token_throughput_tok_s"],
                new["output_token_throughput_tok_s"],
            ),
            acceptance_length=length,
        )


def of_csv(path: Path) -> Iterator[Published]:
    """Rows that name both sides and an acceptance length; the others have nothing to take apart."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if not (row["baseline_value"] and row["spec_value"] and row["acceptance_length"]):
                continue
            values = float(row["baseline_value"]), float(row["spec_value"])
            if row["unit"].startswith("ms"):
                values = 1000 / values[0], 1000 / values[1]
            yield Published(
                table=f"{row['table']} ({row['unit']})",
                name=f"{row['method']} k={row['num_spec_tokens']}, {row['workload']}, "
                f"{row['concurrency']} in flight",
                num_tokens=(10_000, 10_000),
                tokens_per_s=values,
                acceptance_length=float(row["acceptance_length"]),
            )


def as_stored(speedup: Speedup) -> StoredSpeedup:
    """As if it had been stored."""
    return StoredSpeedup(
        value=speedup.value,
        estimator="published",
        loads=tuple(StoredLoad(log_ratios=load) for load in speedup.loads),
        baseline_tokens_per_step=speedup.baseline_tokens_per_step,
        speculative_tokens_per_step=speedup.speculative_tokens_per_step,
        baseline_step_ms=speedup.baseline_step_ms,
        speculative_step_ms=speedup.speculative_step_ms,
    )


def tell(all_published: Sequence[Published]) -> None:
    """A line for each comparison; between two of one table, what moved most."""
    rules = Rules(
        tolerances=Tolerances(min_speedup=1.0), level=0.01, looks=(1,), update_command="-"
    )
    for table, group in groupby(all_published, key=lambda each: each.table):
        print(f"\n{table}")
        told = []
        for each in group:
            runs = each.runs()
            workload = Workload(
                name=each.name, path=Path("published"), description="", concurrency=1, prompts=()
            )
            verdict = judge_speedup(measure(workload, runs), None, rules=rules)
            speedup = speedup_of(runs)
            told.append((each, speedup))
            print(
                f"  {each.name}: speedup {speedup.value:.3f} = "
                f"{speedup.tokens_per_step_ratio:.3f} tokens per step / "
                f"{speedup.step_cost_ratio:.3f} step cost ratio; "
                f"{verdict.kind}: {'; '.join(verdict.reasons)}"
            )
        for (_, before), (each, now) in pairwise(told):
            moved = speedup_moves(now, as_stored(before))[-1]
            if moved.startswith("what lowered it most"):
                print(f"    to {each.name}: {moved}")


def main(arguments: Sequence[str]) -> int:
    """0 when the folder was read."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("usage: published.py FOLDER, with bench_json/*.json and speedup/*.csv in it")
        return 2
    folder = Path(arguments[0])
    tell(list(of_bench_json(folder / "bench_json")))
    for path in sorted((folder / "speedup").glob("*.csv")):
        with path.open(encoding="utf-8") as file:
            if "baseline_value" in file.readline():
                tell(sorted(of_csv(path), key=lambda each: each.table))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
