"""What one workload of a `report.json` has to tell, and its row of the table: shared by the reports
that are made of the file. Floor 4; pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_specdec.checks.finding import Finding
from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.report.facts import ABSENT
from pytest_specdec.report.figures import decimal, scattered
from pytest_specdec.verdict import Verdict, number, percent

Data = Mapping[str, Any]
Severity = Literal["error", "warning", "note"]
SEVERITIES: Mapping[Severity, str] = {
    "error": "fails the build",
    "warning": "known defect",
    "note": "told, and fails nothing",
}
COLUMNS = (
    "workload",
    "verdict",
    "identical",
    "valid",
    "acceptance rate now / stored / floor",
    "mean acceptance length now / stored",
    "speedup (interval) / stored",
    "fall that fails: acceptance / speedup",
)

OWN_COLUMNS = ("test", "workload", "outcome", "why")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One thing that a reader of the report must know.

    Attributes:
        title: what it is, in a few words.
        text: all of it, as a failing test tells it.
        finding: its data, where it is a finding.
        divergences: the differing answers that it is about.
    """

    severity: Severity
    check: str
    about: str | None
    title: str
    text: str
    finding: Data | None = None
    divergences: Sequence[Data] = ()

    @property
    def test(self) -> str:
        """The test's name, as pytest shows it behind file and profile."""
        return self.check if self.about is None else f"{self.check}[{self.about}]"


def told(workload: Data) -> list[Told]:
    """What fails the build first, then what is known, then the rest."""
    everything = [
        *_findings(workload),
        *_unexpected(workload),
        *_verdicts(workload),
        *_not_stored(workload),
    ]
    return sorted(everything, key=lambda each: [*SEVERITIES].index(each.severity))


def _findings(workload: Data) -> Iterator[Told]:
    for data in (*workload["findings"], *workload["near_ties"]):
        finding = Finding(
            kind=data["kind"],
            prompt_id=data["prompt_id"],
            facts=tuple(data["facts"]),
            hint=data["hint"],
        )
        known = data.get("known_defect")
        yield Told(
            severity=data["severity"],
            check=data["check"],
            about=data["about"],
            title=data["kind"],
            text=str(finding) if known is None else f"{known}\n{finding}",
            finding=data,
            divergences=[
                each
                for each in workload["divergences"]
                if (each["check"], each["about"]) == (data["check"], data["about"])
            ],
        )


def _unexpected(workload: Data) -> Iterator[Told]:
    for data in workload["unexpected_passes"]:
        yield Told(
            severity="error",
            check=data["check"],
            about=None,
            title="unexpected pass",
            text=f"it did not show itself: {KnownDefect(**data)}\n"
            "hint: if it is mended in this vLLM, end the entry's `versions` before it in "
            "`known_defects` of the profile, or delete the entry",
        )


def _verdicts(workload: Data) -> Iterator[Told]:
    """Those that could fail the build and did not pass."""
    if workload["not_stored"] or workload["verdict"] == "stored":
        return  # an update settles them, or fails their tests by itself
    known = {(each["check"], each["about"]) for each in workload["known_defects"]}
    for metric in workload["gated"]:
        data = workload["verdicts"][metric]
        if data["kind"] == "passed":
            continue
        rest: Severity = "error" if metric in workload["failing"] else "note"
        yield Told(
            severity="warning" if (metric, None) in known else rest,
            check=metric,
            about=None,
            title=data["kind"],
            text=str(Verdict(**{**data, "reasons": tuple(data["reasons"])})),
        )


def _not_stored(workload: Data) -> Iterator[Told]:
    """An update that was refused."""
    if workload["not_stored"]:
        yield Told(
            severity="error",
            check=" and ".join(workload["failing"]),
            about=None,
            title="not stored",
            text="\n".join([f"not stored: `{workload['name']}`", *workload["not_stored"]]),
        )


def row(workload: Data) -> tuple[str, ...]:
    """Its cells, one for each of `COLUMNS`."""
    figures, verdicts = workload["figures"], workload["verdicts"]
    rates = (figures["acceptance_rate"][key] for key in ("now", "stored", "floor"))
    lengths = (figures["mean_acceptance_length"][key] for key in ("now", "stored"))
    drops = [each["smallest_drop"] for each in verdicts.values()]
    return (
        workload["name"],
        workload["verdict"],
        _of(workload["num_identical"], workload["num_greedy"]) + _near_ties(workload),
        _valid(workload),
        " / ".join(decimal(each, 3) for each in rates),
        " / ".join(decimal(each, 2) for each in lengths),
        f"{speedup(workload)} / {decimal(figures['speedup']['stored'], 2)}",
        " / ".join(ABSENT if each is None else percent(each) for each in drops),
    )


def speedup(workload: Data) -> str:
    """With its interval, where it has one."""
    verdict = workload["verdicts"]["speedup"]
    return scattered(verdict["now"], verdict["low"], verdict["high"])


def own_test_rows(profile: Data) -> list[tuple[str, ...]]:
    """Tests of a user's own, a row each for `OWN_COLUMNS`; what fails the build comes first."""
    ranked = sorted(profile["own_tests"], key=lambda each: not is_failing(each))
    return [
        (each["node_id"], each["workload"] or ABSENT, each["outcome"], each["message"] or ABSENT)
        for each in ranked
    ]


def is_failing(own_test: Data) -> bool:
    """Whether it fails the build."""
    return own_test["outcome"] in ("failed", "error")


def update_rows(profile: Data) -> list[tuple[str, ...]]:
    """Stored numbers that the session changed: workload, figure, old, new."""
    rows = [] if profile["update"] is None else profile["update"]["rows"]
    return [
        (
            each["workload"],
            each["metric"],
            *(ABSENT if each[key] is None else number(each[key]) for key in ("old", "new")),
        )
        for each in rows
    ]


def update_lines(profile: Data) -> Iterator[str]:
    """What came of an update, where one was asked for."""
    update = profile["update"]
    if update is not None:
        for name, reasons in update["refused"].items():
            yield f"{name}: not stored: {'; '.join(reasons)}"
        path = update["path"]
        yield "stored baselines unchanged" if path is None else f"stored baselines written: {path}"


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" if total else ABSENT


def _near_ties(workload: Data) -> str:
    count = workload["num_near_ties"]
    return f" ({count} near {'tie' if count == 1 else 'ties'})" if count else ""


def _valid(workload: Data) -> str:
    counts, total = workload["num_valid"], workload["num_checked"]
    beside = f" (baseline {counts['baseline']})" if counts["baseline"] != total else ""
    return _of(counts["speculative"], total) + beside
