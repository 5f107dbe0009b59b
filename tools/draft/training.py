"""What the draft learns, and how: two layers under the target's embeddings, final norm and head.

The layers start as the target's first and last one and learn to say the target's next token, by
cross-entropy over the target's own greedy answers. AdamW, a cosine from `PEAK` down.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from tools.draft.answers import Chat
from tools.model_folder import MODEL, say

START = (0, 29)  # layers of the target that the draft's begin as
BATCH_TOKENS = 4096  # padding included
PEAK, FLOOR, WARM_UP = 1e-3, 0.02, 50  # learning rate, its end as a share of it, steps until it
HELD_OUT = 150  # chats that are not learned from
SEED = 2
SAVED_EVERY, TOLD_EVERY = 80, 20  # steps

Batch = tuple[torch.Tensor, torch.Tensor]


def untrained() -> LlamaForCausalLM:
    """The draft as it begins. Embeddings and head are the target's, and stay so."""
    target = LlamaForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
    config = LlamaConfig.from_pretrained(MODEL)
    config.num_hidden_layers = len(START)
    draft = LlamaForCausalLM(config)
    draft.model.embed_tokens = target.model.embed_tokens
    draft.lm_head.weight = target.model.embed_tokens.weight
    draft.model.norm.load_state_dict(target.model.norm.state_dict())
    for layer, of_target in zip(draft.model.layers, START, strict=True):
        layer.load_state_dict(target.model.layers[of_target].state_dict())
    draft.lm_head.weight.requires_grad_(False)
    return draft


def own_weights(draft: LlamaForCausalLM) -> dict[str, torch.Tensor]:
    """What is the draft's alone, by name."""
    weights: dict[str, torch.Tensor] = draft.state_dict()
    return {
        name: tensor
        for name, tensor in weights.items()
        if "embed_tokens" not in name and "lm_head" not in name
    }


def batches(chats: list[Chat], seed: int) -> list[Batch]:
    """All chats once, those of like length together, in an order of the seed's.

    Returns:
        For each batch the token ids, (chats, tokens), and where a token is the target's.
    """
    rng = random.Random(seed)
    order = sorted(chats, key=lambda chat: (len(chat.token_ids), rng.random()))
    made = [*_filled(order)]
    rng.shuffle(made)
    return [_tensors(each) for each in made]


def _filled(order: list[Chat]) -> Iterator[list[Chat]]:
    batch: list[Chat] = []
    for chat in order:
        if batch and (len(batch) + 1) * len(chat.token_ids) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(chat)
    yield batch


def _tensors(chats: list[Chat]) -> Batch:
    width = max(len(chat.token_ids) for chat in chats)
    ids = torch.zeros(len(chats), width, dtype=torch.long)
    is_answer = torch.zeros(len(chats), width, dtype=torch.bool)
    for row, chat in enumerate(chats):
        length = len(chat.token_ids)
        ids[row, :length] = torch.tensor(chat.token_ids)
        is_answer[row, length - chat.num_answer_tokens : length] = True
    return ids, is_answer


def scored(draft: LlamaForCausalLM, head: torch.Tensor, batch: Batch) -> Batch:
    """The draft's logits before each token of the answers, (tokens, vocabulary), and the tokens."""
    ids, is_answer = batch
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = draft.model(input_ids=ids).last_hidden_state[:, :-1][is_answer[:, 1:]]
        logits = functional.linear(hidden, head)
    return logits, ids[:, 1:][is_answer[:, 1:]]


def agreement(draft: LlamaForCausalLM, head: torch.Tensor, held_out: list[Batch]) -> float:
    """How often the draft's first choice is the target's token."""
    with torch.no_grad():
        pairs = [scored(draft, head, batch) for batch in held_out]
    right = sum(int((logits.argmax(-1) == tokens).sum()) for logits, tokens in pairs)
    return right / sum(len(tokens) for _, tokens in pairs)


def train(chats: list[Chat], *, epochs: int, state: Path) -> LlamaForCausalLM:
    """The trained draft. Goes on at the step that `state` holds, and writes it as it goes."""
    torch.manual_seed(SEED)
    draft = untrained()
    head = draft.lm_head.weight.detach().to(torch.bfloat16)
    held_out = batches(chats[:HELD_OUT], SEED)
    plan = [batch for epoch in range(epochs) for batch in batches(chats[HELD_OUT:], SEED + epoch)]
    own = [each for each in draft.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(own, lr=PEAK, betas=(0.9, 0.95), weight_decay=0.01)
    done = _resumed(state, draft, optimizer)
    began, seen = time.monotonic(), 0
    for step, batch in enumerate(plan[done:], start=done):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, len(plan))
        logits, tokens = scored(draft, head, batch)
        loss = functional.cross_entropy(logits.float(), tokens)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(own, 1.0)
        optimizer.step()
        seen += len(tokens)
        if (step + 1) % TOLD_EVERY == 0:
            per_s = seen / (time.monotonic() - began)
            say(f"step {step + 1} of {len(plan)}, loss {loss:.3f}, {per_s:.0f} tokens a second")
        if (step + 1) % SAVED_EVERY == 0 or step + 1 == len(plan):
            say(f"agreement on {HELD_OUT} chats: {agreement(draft, head, held_out):.3f}")
            _save(state, draft, optimizer, step + 1)
    return draft


def learning_rate(step: int, num_steps: int) -> float:
    """Up to `PEAK` in a straight line, then down along a cosine."""
    wave = 0.5 * (1 + math.cos(math.pi * step / num_steps))
    return PEAK * min(1.0, (step + 1) / WARM_UP) * (FLOOR + (1 - FLOOR) * wave)


def _resumed(state: Path, draft: LlamaForCausalLM, optimizer: torch.optim.Optimizer) -> int:
    """The steps that are done."""
    if not state.exists():
        return 0
    saved: dict[str, Any] = torch.load(state)
    draft.load_state_dict(saved["draft"], strict=False)
    optimizer.load_state_dict(saved["optimizer"])
    return int(saved["step"])


def _save(
    state: Path, draft: LlamaForCausalLM, optimizer: torch.optim.Optimizer, step: int
) -> None:
    """In one step, so that a run that is ended while it saves can go on."""
    beside = state.with_suffix(".part")
    torch.save(
        {"draft": own_weights(draft), "optimizer": optimizer.state_dict(), "step": step}, beside
    )
    beside.replace(state)
