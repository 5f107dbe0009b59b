"""How often the gate is wrong, by simulation: false alarms and falls found, of the product's own
verdict code beside two rules that are in use elsewhere.

    .venv/bin/python benchmarks/power.py                    the tables; minutes
    .venv/bin/python benchmarks/power.py --plot FILE.svg    and the plot; needs matplotlib

Only the times and counts are made up: passes go through `measure`, are looked at by `is_decided`
and judged by `judge_family`, as those of real engines are. Beside it stand, on the same passes, a
fixed rule that fails a build when a speedup is 5% below the stored one, and the rule of
`--benchmark-compare-fail=mean:5%`, which compares the speculative engine's mean time with the
stored mean time.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from statistics import fmean

from scipy.optimize import brentq

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pytest_specdec.baseline_update import stored_workload
from pytest_specdec.counters import DraftCounters, total
from pytest_specdec.engines.loads import ABBA
from pytest_specdec.family import Case, judge_family
from pytest_specdec.floors import Rules, looks_of
from pytest_specdec.generation import Generation, Pass, Role, Run, RunPair
from pytest_specdec.judge_speedup import is_decided
from pytest_specdec.measurement import Measurement, measure
from pytest_specdec.profile import Profile
from pytest_specdec.stored_baseline import Provenance, StoredWorkload
from pytest_specdec.verdict import Verdict
from pytest_specdec.workload import Workload

NUM_CELLS = 8
POINT_RULE = 0.05
SPEEDUP = 1.8
PROVENANCE = Provenance(
    versions={}, commit=None, date="2026-01-31", num_loads=1, num_passes=1, settings_digest=""
)
WORKLOAD = Workload(
    name="simulated", path=Path("simulated.jsonl"), description="", concurrency=1, prompts=()
)
PROFILE = Profile(
    name="simulated",
    root=Path(),
    device="gpu",
    model="simulated",
    speculative_config={"method": "ngram", "num_speculative_tokens": 4},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What times are made of, all on the log scale.

    Attributes:
        per_pass: standard deviation of one pass.
        drift: how much slower the last pass is than the first, of either engine, steadily.
        autocorrelation: of a pass's noise with the one before it (AR(1)), whichever engine's.
        outliers: share of passes that something slowed by 30%.
        between_loads: standard deviation of one load's speedup.
    """

    per_pass: float = 0.02
    drift: float = 0.0
    autocorrelation: float = 0.0
    outliers: float = 0.0
    between_loads: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One line of the table: `fall` is what the true speedup lost in all eight cells."""

    name: str
    noise: Noise
    fall: float = 0.0
    num_loads: int = 1


WHITE = Noise()
SCENARIOS = (
    Scenario(name="nothing changed", noise=WHITE),
    Scenario(name="nothing changed, 6% monotone drift", noise=Noise(drift=0.06)),
    Scenario(name="nothing changed, AR(1) noise of 0.6", noise=Noise(autocorrelation=0.6)),
    Scenario(name="nothing changed, 5% outliers", noise=Noise(outliers=0.05)),
    Scenario(
        name="nothing changed, 3 loads 1% apart", noise=Noise(between_loads=0.01), num_loads=3
    ),
    Scenario(name="at the floor: 5% slower", noise=WHITE, fall=0.05),
    Scenario(name="at the floor, AR(1) noise of 0.6", noise=Noise(autocorrelation=0.6), fall=0.05),
    Scenario(
        name="at the floor, 3 loads 1% apart",
        noise=Noise(between_loads=0.01),
        fall=0.05,
        num_loads=3,
    ),
    Scenario(name="10% slower", noise=WHITE, fall=0.10),
    Scenario(name="10% slower, AR(1) noise of 0.6", noise=Noise(autocorrelation=0.6), fall=0.10),
    Scenario(name="10% slower, 5% outliers", noise=Noise(outliers=0.05), fall=0.10),
    Scenario(
        name="10% slower, 3 loads 1% apart",
        noise=Noise(between_loads=0.01),
        fall=0.10,
        num_loads=3,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What came of one session's eight cells.

    Attributes:
        kinds: their verdicts.
        point, compare_fail: which of them the two other rules fail.
        num_passes: passes of each engine, of `most` that the profile allows.
    """

    kinds: tuple[str, ...]
    point: tuple[bool, ...]
    compare_fail: tuple[bool, ...]
    num_passes: int
    most: int


def profile_of(scenario: Scenario) -> Profile:
    """The defaults of a profile; a load of several makes no more passes than it must."""
    if scenario.num_loads == 1:
        return PROFILE
    return replace(PROFILE, num_loads=scenario.num_loads, num_blocks=4)


def rules_of(profile: Profile) -> Rules:
    """What one of the session's cells is judged by, before any has failed."""
    return Rules(
        tolerances=profile.tolerances,
        level=profile.tolerances.false_alarms / NUM_CELLS,
        looks=looks_of(profile),
        counts_loads=profile.num_loads > 1,
        update_command="",
    )


def passes(
    scenario: Scenario, profile: Profile, made: random.Random, *, speedup: float
) -> Iterator[tuple[Role, Pass]]:
    """All that the profile allows, in order."""
    num_passes = len(ABBA) * profile.num_blocks * profile.num_loads
    noise, previous = scenario.noise, made.gauss(0, 1)
    for number in range(num_passes):
        if number % (len(ABBA) * profile.num_blocks) == 0:
            of_load = made.gauss(0, noise.between_loads) if noise.between_loads else 0.0
        role = ABBA[number % len(ABBA)]
        fresh = math.sqrt(1 - noise.autocorrelation**2) * made.gauss(0, 1)
        previous = noise.autocorrelation * previous + fresh
        log_time = noise.per_pass * previous + noise.drift * number / num_passes
        if made.random() < noise.outliers:
            log_time += math.log(1.3)
        if role == "speculative":
            log_time -= math.log(speedup) + of_load
        yield role, walk(role, math.exp(log_time))


DRAFTS = DraftCounters(
    num_drafts=40,
    num_draft_tokens=160,
    num_accepted_tokens=60,
    num_accepted_tokens_per_pos=(30, 15, 10, 5),
)


def walk(role: Role, wall_s: float) -> Pass:
    """A pass of one prompt; what it says does not matter here, how long it took does."""
    return Pass(generations=(ANSWERS[role],), wall_s=wall_s, drafts=None)


def answer(role: Role) -> Generation:
    """Ten tokens, one a step or two."""
    is_speculative = role == "speculative"
    return Generation(
        prompt_id="p",
        prompt_token_ids=(1,),
        token_ids=tuple(range(10)),
        text="",
        finish_reason="length",
        stop_reason=None,
        step_tokens=(2,) * 5 if is_speculative else (1,) * 10,
        ttft_ms=1.0,
        tpot_ms=1.0,
        drafts=DRAFTS if is_speculative else None,
    )


ANSWERS: dict[Role, Generation] = {role: answer(role) for role in ("baseline", "speculative")}


def measured(taken: Sequence[tuple[Role, Pass]], num_loads: int) -> Measurement:
    """Through the product's own eyes."""
    baseline, speculative = (
        Run(
            role=role,
            workload=WORKLOAD.name,
            passes=tuple(each for whose, each in taken if whose == role),
        )
        for role in ("baseline", "speculative")
    )
    runs = RunPair(
        baseline=baseline,
        speculative=speculative,
        order=tuple(role for role, _ in taken),
        num_loads=num_loads,
    )
    return measure(WORKLOAD, runs)


def gated(
    taken: Sequence[tuple[Role, Pass]], stored: StoredWorkload, profile: Profile, rules: Rules
) -> tuple[Measurement, int]:
    """The passes until they are enough, as the engines would take them; nothing is decided between
    two looks."""
    several = profile.num_loads > 1
    size = len(ABBA) * (profile.num_blocks if several else 1)
    for look in rules.looks:
        so_far = measured(taken[: look * size], look if several else 1)
        if is_decided(so_far, stored, rules=rules):
            break
    return so_far, look * size // 2


def session(scenario: Scenario, seed: int) -> Session:
    """Eight cells: each is stored, measured again, and judged with the others."""
    made, profile = random.Random(f"{scenario.name} {seed}"), profile_of(scenario)
    rules = rules_of(profile)
    cases, point, compare_fail, num_passes = {}, [], [], 0
    for cell in range(NUM_CELLS):
        old = list(passes(scenario, profile, made, speedup=SPEEDUP))
        new = list(passes(scenario, profile, made, speedup=SPEEDUP * (1 - scenario.fall)))
        before, after = (measured(each, profile.num_loads) for each in (old, new))
        stored = stored_workload(before, PROVENANCE)
        now, taken = gated(new, stored, profile, rules)
        num_passes += taken
        cases[str(cell)] = Case(measurement=now, stored=stored, rules=rules, gated=("speedup",))
        assert before.speedup is not None
        assert after.speedup is not None
        point.append(after.speedup.value < before.speedup.value * (1 - POINT_RULE))
        mean_s = [
            fmean(walk.wall_s for role, walk in each if role == "speculative")
            for each in (old, new)
        ]
        compare_fail.append(mean_s[1] > mean_s[0] * (1 + POINT_RULE))
    verdicts = judge_family(cases, false_alarms=profile.tolerances.false_alarms)
    return Session(
        kinds=tuple(each["speedup"].kind for each in verdicts.values()),
        point=tuple(point),
        compare_fail=tuple(compare_fail),
        num_passes=num_passes,
        most=NUM_CELLS * len(new) // 2,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A scenario's rates. `any_` is of sessions with at least one such cell, the rest of cells."""

    name: str
    any_failed: float
    failed: float
    passed: float
    inconclusive: float
    any_point: float
    point: float
    any_compare_fail: float
    compare_fail: float
    passes_share: float


def row(scenario: Scenario, sessions: Sequence[Session]) -> Row:
    """Over all sessions of a scenario."""

    def share(is_so: Callable[[str], bool]) -> float:
        return fmean(is_so(kind) for each in sessions for kind in each.kinds)

    return Row(
        name=scenario.name,
        any_failed=fmean("failed" in each.kinds for each in sessions),
        failed=share(lambda kind: kind == "failed"),
        passed=share(lambda kind: kind == "passed"),
        inconclusive=share(lambda kind: kind == "inconclusive"),
        any_point=fmean(any(each.point) for each in sessions),
        point=fmean(one for each in sessions for one in each.point),
        any_compare_fail=fmean(any(each.compare_fail) for each in sessions),
        compare_fail=fmean(one for each in sessions for one in each.compare_fail),
        passes_share=sum(each.num_passes for each in sessions)
        / sum(each.most for each in sessions),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An acceptance scenario: 80 prompts of 200 tokens.

    Attributes:
        fall: of the acceptance rate, relative.
        parts_at: how much of each answer is as stored, 0 to 1.
    """

    name: str
    fall: float
    parts_at: float


CHANGES = tuple(
    Change(name=f"{what}, {how}", fall=fall, parts_at=parts_at)
    for what, fall in (
        ("nothing changed", 0.0),
        ("at the floor: 2% lower", 0.02),
        ("5% lower", 0.05),
        ("10% lower", 0.10),
    )
    for how, parts_at in (
        ("answers as stored", 1.0),
        ("answers part half way", 0.5),
        ("answers part at once", 0.0),
    )
)
NUM_PROMPTS, NUM_TOKENS, NUM_DRAFTED = 80, 200, 4
# Of the Beta distribution of prompts' shares of tokens that a draft would guess.
GUESSED, NOT_GUESSED = 6.0, 3.0


@cache
def kept_chance(fall: float) -> float:
    """The factor on every chance to guess a token that lowers the acceptance rate by `fall`. A
    draft of four is accepted up to its first wrong guess, so the rate is a mean of four powers."""

    def rate(factor: float) -> float:
        moment, powers = 1.0, []
        for power in range(NUM_DRAFTED):
            moment *= factor * (GUESSED + power) / (GUESSED + NOT_GUESSED + power)
            powers.append(moment)
        return fmean(powers)

    return float(brentq(lambda factor: rate(factor) - (1 - fall) * rate(1.0), 0.5, 1.0))


def acceptance(change: Change, seed: int) -> tuple[Verdict, bool]:
    """One workload's verdict among eight, and that of the fixed 5% rule on the pooled rate."""
    made = random.Random(f"{change.name} {seed}")
    old, new = [], []
    for number in range(NUM_PROMPTS):
        share = made.betavariate(GUESSED, NOT_GUESSED)
        guesses = [made.random() for _ in range(NUM_TOKENS)]
        keep = round(change.parts_at * NUM_TOKENS)
        others = guesses[:keep] + [made.random() for _ in range(NUM_TOKENS - keep)]
        token_ids = list(range(NUM_TOKENS))
        other_ids = token_ids[:keep] + list(range(1000, 1000 + NUM_TOKENS - keep))
        old.append(drafted(f"p{number:02}", token_ids, guesses, share))
        new.append(drafted(f"p{number:02}", other_ids, others, share * kept_chance(change.fall)))
    before, after = (of_answers(each) for each in (old, new))
    stored = stored_workload(before, PROVENANCE)
    rules = rules_of(PROFILE)
    case = Case(measurement=after, stored=stored, rules=rules)
    verdict = case.verdict("acceptance", rules.level)
    assert after.acceptance_rate is not None
    point = after.acceptance_rate < stored.acceptance.rate * (1 - POINT_RULE)
    return verdict, point


def drafted(
    prompt_id: str, token_ids: Sequence[int], guesses: Sequence[float], share: float
) -> Generation:
    """An answer whose token is guessed where its number is below `share`: drafts of four, accepted
    up to the first wrong guess, and the target's own token after it."""
    steps, per_pos, position = [1], [0] * NUM_DRAFTED, 1
    while position < len(token_ids):
        accepted = 0
        while (
            accepted < NUM_DRAFTED
            and position + accepted < len(token_ids)
            and guesses[position + accepted] < share
        ):
            per_pos[accepted] += 1
            accepted += 1
        steps.append(min(accepted + 1, len(token_ids) - position))
        position += accepted + 1
    num_drafts = len(steps) - 1
    counters = DraftCounters(
        num_drafts=num_drafts,
        num_draft_tokens=num_drafts * NUM_DRAFTED,
        num_accepted_tokens=sum(per_pos),
        num_accepted_tokens_per_pos=tuple(per_pos),
    )
    return replace(
        ANSWERS["speculative"],
        prompt_id=prompt_id,
        token_ids=tuple(token_ids),
        step_tokens=tuple(steps),
        drafts=counters,
    )


def of_answers(answers: Sequence[Generation]) -> Measurement:
    """A measurement of these answers; its times do not matter."""
    drafts = total(each.drafts for each in answers if each.drafts is not None)
    plain = [replace(each, step_tokens=(1,) * len(each.token_ids), drafts=None) for each in answers]
    taken: list[tuple[Role, Pass]] = [
        ("baseline", Pass(generations=tuple(plain), wall_s=2.0, drafts=None)),
        ("speculative", Pass(generations=tuple(answers), wall_s=1.0, drafts=drafts)),
    ]
    return measured(taken, 1)


def main(arguments: list[str] | None = None) -> int:
    """0 when every goal is met."""
    parser = argparse.ArgumentParser(description="How often the gate is wrong.")
    parser.add_argument("--sessions", type=int, default=2000, help="of each scenario")
    parser.add_argument("--plot", type=Path, help="where to draw it, as SVG or PNG")
    options = parser.parse_args(arguments)
    with ProcessPoolExecutor() as pool:
        rows = []
        print_speedup_head(options.sessions)
        for scenario in SCENARIOS:
            job = partial(session, scenario)
            sessions = list(pool.map(job, range(options.sessions), chunksize=20))
            rows.append(row(scenario, sessions))
            print_speedup(rows[-1])
        print_acceptance_head(options.sessions)
        changes = {}
        for change in CHANGES:
            job_ = partial(acceptance, change)
            changes[change.name] = list(pool.map(job_, range(options.sessions // 4), chunksize=20))
            print_acceptance(change, changes[change.name])
    if options.plot is not None:
        plot(rows, options.plot)
    return 0 if goals_are_met(rows, changes) else 1


def print_speedup_head(num_sessions: int) -> None:
    """What the columns are."""
    print(f"Speedup, {num_sessions} sessions of {NUM_CELLS} gated cells for each line.")
    print("`any` is the share of sessions with at least one such cell; the others are of cells.\n")
    print(
        "| scenario | any failed | failed | inconclusive | passed | passes taken | 5% rule: any | "
        "failed | compare-fail: any | failed |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")


def print_speedup(each: Row) -> None:
    """One line."""
    figures = (
        each.any_failed,
        each.failed,
        each.inconclusive,
        each.passed,
        each.passes_share,
        each.any_point,
        each.point,
        each.any_compare_fail,
        each.compare_fail,
    )
    print(f"| {each.name} | " + " | ".join(f"{100 * f:.2f}%" for f in figures) + " |", flush=True)


def print_acceptance_head(num_sessions: int) -> None:
    """What the columns are."""
    print(f"\nAcceptance over {NUM_PROMPTS} prompts, {num_sessions // 4} runs for each line, each")
    print(f"judged as one of {NUM_CELLS} gated cells.\n")
    print("| scenario | failed | inconclusive | passed | fixed 5% rule: failed |")
    print("|---|---|---|---|---|")


def print_acceptance(change: Change, runs: Sequence[tuple[Verdict, bool]]) -> None:
    """One line."""
    kinds = [verdict.kind for verdict, _ in runs]
    shares = [kinds.count(kind) / len(kinds) for kind in ("failed", "inconclusive", "passed")]
    shares.append(fmean(point for _, point in runs))
    print(f"| {change.name} | " + " | ".join(f"{100 * f:.1f}%" for f in shares) + " |", flush=True)


def goals_are_met(rows: Sequence[Row], changes: dict[str, list[tuple[Verdict, bool]]]) -> bool:
    """With nothing changed, false alarms in at most 1% of all sessions; 95% of falls of 10% found
    at plain noise, and 85% of falls of 5% in acceptance where answers are as stored or begin so."""
    goals = [
        (f"{each.name}: false alarms", each.any_failed <= 0.01)
        for each in rows
        if each.name.startswith("nothing")
    ]
    (slower,) = (each for each in rows if each.name == "10% slower")
    goals.append(("10% slower: found", slower.failed >= 0.95))
    for how in ("answers as stored", "answers part half way"):
        runs = changes[f"5% lower, {how}"]
        found = fmean(verdict.kind == "failed" for verdict, _ in runs)
        goals.append((f"5% lower, {how}: found", found >= 0.85))
    print()
    for name, is_met in goals:
        print(f"{'met   ' if is_met else 'MISSED'} {name}")
    return all(is_met for _, is_met in goals)


def plot(rows: Sequence[Row], path: Path) -> None:
    """Failed sessions by rule: false alarms on the left half, falls found on the right."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise SystemExit("no matplotlib here\nhint: pip install matplotlib") from None
    figure, axes = plt.subplots(figsize=(10, 6), layout="constrained")
    rules = (
        ("pytest-specdec", [each.any_failed for each in rows]),
        ("fixed 5% rule", [each.any_point for each in rows]),
        ("compare-fail=mean:5%", [each.any_compare_fail for each in rows]),
    )
    for number, (name, shares) in enumerate(rules):
        places = [place + 0.27 * (number - 1) for place in range(len(rows))]
        axes.barh(places, [100 * each for each in shares], height=0.25, label=name)
    axes.set_yticks(range(len(rows)), [each.name for each in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"sessions with a failed cell among {NUM_CELLS}, in percent")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    sys.exit(main())
