"""What the draft learns, and how: two layers under the target's embeddings, final norm and head.

The layers start as the target's first and last one and learn to say the target's next token, by
cross-entropy over the target's own greedy answers.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from tools.draft.answers import Chat
from tools.draft.fitting import fit, grouped
from tools.model_folder import MODEL

START = (0, 29)  # layers of the target that the draft's begin as
BATCH_TOKENS = 4096  # padding included
HELD_OUT = 150  # chats that are not learned from
SEED = 2

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


def batches(chats: list[Chat], seed: int) -> list[Batch]:
    """All chats once, those of like length together, in an order of the seed's.

    Returns:
        For each batch the token ids, (chats, tokens), and where a token is the target's.
    """
    groups = grouped(chats, lambda chat: len(chat.token_ids), most_tokens=BATCH_TOKENS, seed=seed)
    return [_tensors(each) for each in groups]


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

    def loss_of(batch: Batch) -> tuple[torch.Tensor, int]:
        logits, tokens = scored(draft, head, batch)
        return functional.cross_entropy(logits.float(), tokens), len(tokens)

    def judged() -> str:
        return f"agreement on {HELD_OUT} chats: {agreement(draft, head, held_out):.3f}"

    fit(draft, plan, loss_of=loss_of, judged=judged, state=state)
    return draft
