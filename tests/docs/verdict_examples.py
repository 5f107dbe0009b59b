"""What the pages of verdicts show: each text as the judges make it, of a session's numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from pytest_specdec.counters import DraftCounters, total
from pytest_specdec.expected import Expected
from pytest_specdec.floors import Rules, line, of_other_hardware
from pytest_specdec.judge_acceptance import judge_acceptance
from pytest_specdec.judge_speedup import judge_speedup
from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.measurement import Measurement
from pytest_specdec.report.summary import summary_lines
from pytest_specdec.speedup import Speedup, why_no_speedup
from pytest_specdec.stored_baseline import StoredBaseline, StoredWorkload
from pytest_specdec.verdict import Verdict, VerdictKind
from tests.docs.other_examples import EXAMPLES as FINDINGS
from tests.measured import measurement, prompt, rules, speedup, stored, stored_speedup
from tests.report.reported import profile_report, update, workload_report
from tests.said import generation, pair, walk

# Two figures share the allowance of a session; a speedup is looked at once, after three blocks.
RULES = rules(level=0.005, looks=(3,))
FILE = "baselines/nvidia-b200-x1/my-model.json"
NAMES = ("orders-by-day", "late-orders", "best-customer", "empty-carts")
DEFECT = KnownDefect(
    check="distribution",
    workload="sampled",
    versions=">=0.27.1,<=0.32.0",
    reason="the CPU sampler divides by memory that nobody wrote",
    kind=("distribution",),
)


def drafted(num_accepted: int) -> DraftCounters:
    """50 drafts of 4 tokens, later positions accepted less often."""
    others = [num_accepted * share // 120 for share in (34, 25, 17)]
    return DraftCounters(
        num_drafts=50,
        num_draft_tokens=200,
        num_accepted_tokens=num_accepted,
        num_accepted_tokens_per_pos=(num_accepted - sum(others), *others),
    )


def kept() -> StoredWorkload:
    """Four prompts that accepted 120 of 200 draft tokens each, and a speedup of 1.9."""
    acceptance = stored(
        prompts=[prompt(name, drafts=drafted(120)) for name in NAMES],
        rate=0.6,
        mean_acceptance_length=3.4,
        tokens_per_step=2.8,
    )
    speedup = replace(
        stored_speedup(1.9, loads=((0.01, -0.01, 0.004, -0.004, 0.007, -0.007),)),
        speculative_tokens_per_step=2.8,
        baseline_step_ms=20.0,
        speculative_step_ms=29.4737,
    )
    return replace(acceptance, speedup=speedup)


def measured(
    accepted: tuple[int, ...] = (120,) * 4,
    *,
    digest: str = "0" * 16,
    tokens_per_step: float = 2.8,
    **facts: Any,
) -> Measurement:
    """Those prompts now: how many tokens each accepts, and a digest of what they are answered."""
    prompts = tuple(
        prompt(name, digest=digest, trail=f"160:60:{digest[:6]}", drafts=drafted(num))
        for name, num in zip(NAMES, accepted, strict=True)
    )
    now = measurement(
        prompts=prompts,
        drafts=total(map(drafted, accepted)),
        tokens_per_step=tokens_per_step,
        **facts,
    )
    return replace(now, speculative=replace(now.speculative, num_output_tokens=4 * 160))


def timed(*values: float, speculative_step_ms: float = 29.5) -> Speedup:
    return speedup(
        *values,
        tokens_per_step=2.8,
        baseline_step_ms=20.0,
        speculative_step_ms=speculative_step_ms,
    )


GOOD = timed(1.90, 1.89, 1.91, 1.90, 1.88, 1.92)
SLOWER = timed(1.61, 1.60, 1.62, 1.61, 1.59, 1.63, speculative_step_ms=34.8)
SCATTERED = timed(1.70, 1.95, 1.78, 1.88, 1.73, 1.92, speculative_step_ms=30.6)


def acceptance(now: Measurement, before: StoredWorkload | None, rules: Rules = RULES) -> Verdict:
    return judge_acceptance(now, before, rules=rules)


def of_speedup(
    now: Speedup | None, before: StoredWorkload | None, rules: Rules = RULES, **facts: Any
) -> Verdict:
    return judge_speedup(measured(speedup=now, **facts), before, rules=rules)


def elsewhere() -> Verdict:
    """Numbers under this hardware's key that are of other hardware."""
    here = {"memory_gib": 178, "power_limit_w": 1000}
    there = StoredBaseline(
        hardware_key="nvidia-b200-x1",
        hardware={**here, "power_limit_w": 700},
        profile="my-model",
        workloads={},
    )
    differences = there.hardware_differences("nvidia-b200-x1", here)
    verdict = of_speedup(GOOD, kept(), replace(RULES, hardware_differences=differences))
    return of_other_hardware(verdict, file=FILE, update_command=RULES.update_command)


def unequal() -> Verdict:
    longer = generation(token_ids=range(24))
    runs = pair([walk(generation(token_ids=range(21)))], [walk(longer)])
    return of_speedup(None, kept(), speedup_missing=why_no_speedup(runs))


VERDICTS: Mapping[VerdictKind, tuple[Callable[[], Verdict], ...]] = {
    "failed": (
        lambda: acceptance(measured((117, 112, 80, 119), tokens_per_step=2.6), kept()),
        lambda: of_speedup(SLOWER, kept()),
    ),
    "inconclusive": (
        lambda: acceptance(measured((121, 116, 113, 120), digest="a" * 16), kept()),
        lambda: of_speedup(SCATTERED, kept()),
        lambda: of_speedup(
            SLOWER, kept(), replace(RULES, disturbances=("others used 41% of the CPU (limit 25%)",))
        ),
    ),
    "no stored baseline": (
        lambda: acceptance(measured(), None),
        lambda: of_speedup(GOOD, None),
    ),
    "incomparable": (
        lambda: acceptance(measured(), replace(kept(), digest="d2")),
        elsewhere,
    ),
    "unmeasured": (
        lambda: acceptance(measurement(drafts=DraftCounters(), tokens_per_step=None), kept()),
        unequal,
    ),
}


def summary(*, is_stored_now: bool = False) -> str:
    """The rows of a workload that is as it was stored, or that is stored now."""
    before = None if is_stored_now else kept()
    now = measured(speedup=GOOD)
    rate = line("acceptance rate", 0.6, stored=None if before is None else 0.6, drop=0.02)
    report = workload_report(
        drafts=now.drafts,
        rate={key: getattr(rate, key) for key in ("now", "stored", "floor")},
        acceptance=asdict(acceptance(now, before)),
        speedup=asdict(of_speedup(GOOD, before)),
        is_stored_now=is_stored_now,
    )
    rows = [("sql", "acceptance rate", None, 0.6), ("sql", "speedup", None, 1.9)]
    written = update(path=FILE, rows=rows, refused={}) if is_stored_now else None
    lines = summary_lines(profile_report(workloads=(report,), update=written))
    return "\n".join(each for each in lines if not each.startswith("engines started"))


def known(*, is_seen: bool) -> str:
    finding = FINDINGS["distribution"]() if is_seen else None
    expected = Expected(defects=(DEFECT,), vllm_version="0.32.0")
    assessment = workload_report("sampled").assessment
    return expected.outcome(assessment, ("distribution", None), finding).message


EXAMPLES: dict[str, Callable[[], list[str]]] = {
    "passed": lambda: [summary()],
    **{
        kind: lambda made=made: [str(each()) for each in made]  # type: ignore[misc]
        for kind, made in VERDICTS.items()
    },
    "stored": lambda: [summary(is_stored_now=True)],
    "known defect": lambda: [known(is_seen=True)],
    "unexpected pass": lambda: [known(is_seen=False)],
}
"""By verdict the texts of its page, in their order: of acceptance, then of the speedup."""
