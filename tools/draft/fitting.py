"""How anything is fitted here: chats of like length at once, AdamW, a cosine from `PEAK` down, and
a state on disk that a run which was stopped goes on from.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from tools.model_folder import say

PEAK, FLOOR, WARM_UP = 1e-3, 0.02, 50  # learning rate, its end as a share of it, steps until it
SAVED_EVERY, TOLD_EVERY = 80, 20  # steps

Item = TypeVar("Item")
Batch = TypeVar("Batch")


def grouped(
    items: list[Item], length: Callable[[Item], int], *, most_tokens: int, seed: int
) -> list[list[Item]]:
    """All items once, those of like length together, in an order of the seed's.

    Args:
        most_tokens: of a group, when each of its items is as long as its longest.
    """
    rng = random.Random(seed)
    order = sorted(items, key=lambda item: (length(item), rng.random()))
    groups = [*_filled(order, length, most_tokens)]
    rng.shuffle(groups)
    return groups


def _filled(
    order: list[Item], length: Callable[[Item], int], most_tokens: int
) -> Iterator[list[Item]]:
    group: list[Item] = []
    for item in order:
        if group and (len(group) + 1) * length(item) > most_tokens:
            yield group
            group = []
        group.append(item)
    yield group


def own_weights(draft: nn.Module) -> dict[str, torch.Tensor]:
    """What is the draft's alone, by name."""
    weights: dict[str, torch.Tensor] = draft.state_dict()
    return {
        name: tensor
        for name, tensor in weights.items()
        if "embed_tokens" not in name and "lm_head" not in name
    }


def fit(
    draft: nn.Module,
    plan: list[Batch],
    *,
    loss_of: Callable[[Batch], tuple[torch.Tensor, int]],
    judged: Callable[[], str],
    state: Path,
) -> None:
    """Goes through `plan`, from the step that `state` holds, and writes it on the way.

    Args:
        loss_of: the loss over a batch, and how many tokens it is the mean of.
        judged: one line on how good the draft is now.
    """
    own = [each for each in draft.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(own, lr=PEAK, betas=(0.9, 0.95), weight_decay=0.01)
    done = _resumed(state, draft, optimizer)
    began, seen = time.monotonic(), 0
    for step, batch in enumerate(plan[done:], start=done):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, len(plan))
        loss, num_tokens = loss_of(batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(own, 1.0)
        optimizer.step()
        seen += num_tokens
        if (step + 1) % TOLD_EVERY == 0:
            per_s = seen / (time.monotonic() - began)
            say(f"step {step + 1} of {len(plan)}, loss {loss:.3f}, {per_s:.0f} tokens a second")
        if (step + 1) % SAVED_EVERY == 0 or step + 1 == len(plan):
            say(judged())
            _save(state, draft, optimizer, step + 1)


def learning_rate(step: int, num_steps: int) -> float:
    """Up to `PEAK` in a straight line, then down along a cosine."""
    wave = 0.5 * (1 + math.cos(math.pi * step / num_steps))
    return PEAK * min(1.0, (step + 1) / WARM_UP) * (FLOOR + (1 - FLOOR) * wave)


def _resumed(state: Path, draft: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """The steps that are done."""
    if not state.exists():
        return 0
    saved: dict[str, Any] = torch.load(state)
    draft.load_state_dict(saved["draft"], strict=False)
    optimizer.load_state_dict(saved["optimizer"])
    return int(saved["step"])


def _save(state: Path, draft: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    """In one step, so that a run that is ended while it saves can go on."""
    beside = state.with_suffix(".part")
    torch.save(
        {"draft": own_weights(draft), "optimizer": optimizer.state_dict(), "step": step}, beside
    )
    beside.replace(state)
