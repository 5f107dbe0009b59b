"""What the page shows of one workload. Floor 4; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_specdec.report.charts import positions, scatter
from pytest_specdec.report.facts import ABSENT
from pytest_specdec.report.figures import decimal
from pytest_specdec.report.told import Data, row, told


def workload_view(data: Data, id_: str) -> Mapping[str, Any]:
    """One workload's section, and its row of the table."""
    rates = data["figures"]["acceptance_rate_per_pos"]
    now, stored = rates["now"] or [], rates["stored"] or []
    points = [*_points(data)]
    return {
        "id": id_,
        "data": data,
        "row": row(data),
        "kind": _kind(data),
        "told": told(data),
        "notes": [*_notes(data)],
        "positions": positions(now, stored) if now or stored else None,
        "position_rows": [
            (str(at + 1), *(_share(each, at) for each in (now, stored)))
            for at in range(max(len(now), len(stored)))
        ],
        "positions_told": f"now {_shares(now)}; stored {_shares(stored)}",
        "prompt_rows": [_prompt_row(each) for each in data["prompts"]],
        "scatter": scatter(points) if points else None,
        "scatter_told": f"{len(points)} prompts; a table of their numbers is below",
    }


def _kind(data: Data) -> str:
    if data["is_failing"]:
        return "bad"
    return "good" if data["verdict"] in ("passed", "stored") else "warn"


def _notes(data: Data) -> Iterator[str]:
    for disturbance in data["disturbances"]:
        yield f"While it was timed, {disturbance}."
    for each in data["missing"]:
        about = "" if each["about"] is None else f"[{each['about']}]"
        yield f"Not made: {each['check']}{about}: {each['reason']}."
    if (reason := data["measurement"]["speedup_missing"]) is not None:
        yield f"No speedup: {reason}."


def _points(data: Data) -> Iterator[tuple[str, float, float, bool]]:
    found = {each["prompt_id"] for each in data["findings"]}
    for each in data["prompts"]:
        figures = each["figures"]
        rate = None if figures is None else figures["acceptance_rate"]["now"]
        if rate is not None and figures["speedup"] is not None:
            yield each["id"], rate, figures["speedup"], each["id"] in found


def _prompt_row(prompt: Data) -> Sequence[str]:
    figures = prompt["figures"]
    if figures is None:
        return (prompt["id"], *[ABSENT] * 7)
    accepted, drafted = figures["num_accepted_tokens"], figures["num_draft_tokens"]
    return (
        prompt["id"],
        decimal(figures["acceptance_rate"]["now"], 3),
        decimal(figures["acceptance_rate"]["stored"], 3),
        ABSENT if drafted is None else f"{accepted} / {drafted}",
        str(figures["num_output_tokens"]),
        *(decimal(figures[key], 1) for key in ("baseline_ms", "speculative_ms")),
        decimal(figures["speedup"], 2),
    )


def _share(shares: Sequence[float], at: int) -> str:
    return f"{shares[at]:.1%}" if at < len(shares) else ABSENT


def _shares(shares: Sequence[float]) -> str:
    return " ".join(f"{each:.0%}" for each in shares) or "none"
