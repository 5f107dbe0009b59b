"""The table: each fault, the workload that it is tried on, and the checks that must fail for it.

A row is one claim: these fail, and no other does. For every check there is a row where it stands
alone, so that without it that fault would go unseen.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_specdec.workload import Metric

ERROR = "error"
"""An engine that cannot go on: no check fails, the tests themselves are errors."""
NO_FAULT = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One claim.

    Attributes:
        fault: the switch's words.
        workload: one of `WORKLOADS`.
        fails: names of the tests that must fail, a circumstance in brackets; empty for a harmless
            change.
        gated: the metrics that are judged against numbers recorded before.
        again: circumstances that the prompts are answered under.
        recorded_with: what was on when the numbers were recorded.
        num_blocks: ABBA blocks of passes.
        is_spare: another row fails the same tests, and `make test` has only that one.
    """

    fault: str
    workload: str
    fails: frozenset[str]
    gated: tuple[Metric, ...] = ()
    again: tuple[str, ...] = ()
    recorded_with: str = NO_FAULT
    num_blocks: int = 1
    is_spare: bool = False

    @property
    def name(self) -> str:
        words = (self.fault or "no-fault", self.workload, *self.gated, *self.again)
        return "-on-".join(words[:2]) + "".join(f"-{word}" for word in words[2:])

    @property
    def is_timed(self) -> bool:
        return "speedup" in self.gated


def row(fault: str, workload: str, *fails: str, **how: object) -> Row:
    return Row(fault=fault, workload=workload, fails=frozenset(fails), **how)  # type: ignore[arg-type]


def again(fault: str, workload: str, circumstance: str) -> Row:
    """A fault that shows under one circumstance alone."""
    return row(fault, workload, f"again[{circumstance}]", again=(circumstance,))


ACCEPTANCE: tuple[Metric, ...] = ("acceptance",)
SPEEDUP: tuple[Metric, ...] = ("speedup",)

FAULTS = (
    # Wrong tokens.
    row("accept-every-draft", "code", "identical", "exercised"),
    row("accept-one-too-many", "code", "identical"),
    row("second-best-token", "code", "identical", is_spare=True),
    row("wrong-bonus-token", "code", "identical", is_spare=True),
    row("corrupt-long", "long", "identical"),
    row("penalties-ignored", "penalties", "identical"),
    row("bad-words-ignored", "bad-words", "identical", "honoured"),
    row("min-tokens-ignored", "min-tokens", "identical", "honoured"),
    # Constraints.
    row("mended+grammar-not-applied", "json", "json"),
    row("mended+grammar-not-applied", "sql", "sql"),
    row("mended+grammar-not-applied", "regex", "regex"),
    row("mended+grammar-not-applied", "choice", "choice"),
    row("mended+grammar-not-rolled-back", "json", "json", is_spare=True),
    # What a request asks.
    row("mended+tokens-after-stop", "stop", "honoured"),
    row("mended+seed-ignored", "seeded", "replay"),
    row("logprobs-wrong", "logprobs", "logprobs"),
    row("logprobs-nan", "logprobs", "logprobs", is_spare=True),
    row("unsupported-ignored", "unsupported", "refused"),
    row("mended+biased-sampling", "sampled", "distribution"),
    row("mended+second-completion-wrong", "several", "distribution", is_spare=True),
    # Circumstances.
    row("stream-drops-tokens", "code", "identical", "counts"),
    again("whole-answer-cut", "code", "not-streamed"),
    again("corrupt-in-batches", "one", "8-in-flight"),
    again("collapse-after-long-request", "code", "after-long-request"),
    again("corrupt-after-aborts", "code", "after-aborts"),
    again("corrupt-after-preemption", "code", "under-preemption"),
    again("corrupt-cached-prefix", "one", "warm-prefix-cache"),
    # Counts.
    row("nothing-drafted", "code", "exercised"),
    row("drafts-one-token", "code", "exercised", is_spare=True),
    row("counters-inflated", "code", "counts", is_spare=True),
    row("engine-counters-frozen", "code", "counts", is_spare=True),
    row("counters-frozen", "code", "counts"),
    row("usage-wrong", "code", "counts"),
    # Numbers.
    row("drafts-worse", "code", "acceptance", gated=ACCEPTANCE),
    row("garbage-drafts", "code", "acceptance", gated=ACCEPTANCE, is_spare=True),
    row("acceptance-drifts", "code", "drift", gated=ACCEPTANCE),
    row("all-or-nothing", "code", "counts"),
    row("drafter-slow", "code", "speedup", gated=SPEEDUP, num_blocks=6),
    row("verify-slow", "code", "speedup", gated=SPEEDUP, num_blocks=6, is_spare=True),
    # Engines that end.
    row("crash", "code", ERROR),
    row("hang", "code", ERROR, is_spare=True),
    row("slow-death", "code", ERROR, is_spare=True),
    row("load-fails", "code", ERROR),
)

DEFECTS = (
    # What vLLM 0.32's CPU build gets wrong by itself.
    row(NO_FAULT, "sampled", "distribution"),
    row(NO_FAULT, "mixed", "identical"),
    row(NO_FAULT, "min-tokens-in-a-draft", "identical"),
)

HARMLESS = (
    row(NO_FAULT, "code", gated=ACCEPTANCE),
    row("better-drafts", "code", gated=ACCEPTANCE),
    row("other-log-lines", "code", gated=ACCEPTANCE, is_spare=True),
    row("reordered-batches", "code", gated=ACCEPTANCE, again=("2-in-flight",)),
    row("slower-target", "code", gated=SPEEDUP, num_blocks=6),
    row(
        NO_FAULT,
        "code",
        gated=SPEEDUP,
        recorded_with="slower-target",
        num_blocks=6,
        is_spare=True,
    ),
    row("mended", "sampled"),
    row("mended", "several", is_spare=True),
    row("mended", "json"),
    row("mended", "sql"),
    row("mended", "regex"),
    row("mended", "choice"),
    row("mended", "stop"),
    row("mended", "seeded"),
    row(NO_FAULT, "long"),
    row(NO_FAULT, "penalties"),
    row(NO_FAULT, "bad-words"),
    row(NO_FAULT, "min-tokens"),
    row(NO_FAULT, "logprobs"),
    row(NO_FAULT, "unsupported"),
    row(NO_FAULT, "one", again=("8-in-flight", "not-streamed")),
    row(
        NO_FAULT,
        "code",
        again=("after-long-request", "after-aborts", "under-preemption", "warm-prefix-cache"),
    ),
)
ROWS = (*FAULTS, *DEFECTS, *HARMLESS)
TESTED = tuple(row for row in ROWS if not row.is_spare)
"""The rows of `make test`; `make faults` has all."""
