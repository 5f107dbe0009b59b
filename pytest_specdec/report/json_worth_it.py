"""What `report.json` holds of whether speculation is worth it. Floor 4."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pytest_specdec.worth_it import WorkloadAnswer, WorthIt


def worth_it_data(worth_it: WorthIt) -> dict[str, Any]:
    """Everything about it, as plain values."""
    return {
        "points": [asdict(each) for each in worth_it.points],
        "answers": [_answer(each) for each in worth_it.answers],
        "cost": None if worth_it.cost is None else asdict(worth_it.cost),
        "unmet": [*worth_it.unmet],
    }


def _answer(answer: WorkloadAnswer) -> dict[str, Any]:
    """Keys of JSON are strings and contexts are not, so each break-even has its own beside it."""
    break_even = [
        {"context_tokens": context_tokens, **asdict(each)}
        for context_tokens, each in answer.break_even.items()
    ]
    return {
        "workload": answer.workload,
        "answer": answer.answer,
        "text": answer.text,
        "reason": answer.reason,
        "break_even": break_even,
        "best": answer.best,
    }
