"""What the draft learns, and how: two layers under the target's embeddings, final norm and head.

The layers start as the target's first and last one and learn to say the next token of what the
assistant says, by cross-entropy: in the target's own greedy answers, in the worked examples before
them, and in as many chats again that are examples alone. Those cost no time of the target's, and
teach to copy, which most of structured work is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from tools.draft.answers import Chat
from tools.draft.fitting import fit, grouped
from tools.draft.prompts import examples
from tools.model_folder import MODEL

START = (0, 29)  # layers of the target that the draft's begin as
BATCH_TOKENS = 4096  # padding included
HELD_OUT = 150  # chats that are not learned from
SEED = 2
# The model's chat template: `<|im_start|>assistant\n` begins a turn of it, `<|im_end|>` ends it.
TURN_BEGIN, TURN_END = [1, 520, 9531, 198], 2

Batch = tuple[torch.Tensor, torch.Tensor]
Mask = Callable[[Chat], list[bool]]
"""Which tokens of a chat are learned, or judged."""


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


def example_chats(seed: int, number: int) -> list[Chat]:
    """Chats of worked examples, tokenized as the target reads them; none of it is the target's."""
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    rendered = (
        tokenizer.apply_chat_template(each, return_dict=False)
        for each in itertools.islice(examples(seed), number)
    )
    return [Chat([*token_ids], 0) for token_ids in rendered]


def of_the_target(chat: Chat) -> list[bool]:
    """The answer at the chat's end."""
    before = len(chat.token_ids) - chat.num_answer_tokens
    return [at >= before for at in range(len(chat.token_ids))]


def of_the_assistant(chat: Chat) -> list[bool]:
    """Every answer, those of worked examples too, each with the token that ends it."""
    mask, is_said = [], False
    for at, token_id in enumerate(chat.token_ids):
        mask.append(is_said)
        if token_id == TURN_END:
            is_said = False
        elif chat.token_ids[max(0, at + 1 - len(TURN_BEGIN)) : at + 1] == TURN_BEGIN:
            is_said = True
    return mask


def batches(chats: list[Chat], seed: int, mask: Mask) -> list[Batch]:
    """All chats once, those of like length together, in an order of the seed's.

    Returns:
        For each batch the token ids, (chats, tokens), and which of them the mask has.
    """
    groups = grouped(chats, lambda chat: len(chat.token_ids), most_tokens=BATCH_TOKENS, seed=seed)
    return [_tensors(each, mask) for each in groups]


def _tensors(chats: list[Chat], mask: Mask) -> Batch:
    width = max(len(chat.token_ids) for chat in chats)
    ids = torch.zeros(len(chats), width, dtype=torch.long)
    is_masked = torch.zeros(len(chats), width, dtype=torch.bool)
    for row, chat in enumerate(chats):
        length = len(chat.token_ids)
        ids[row, :length] = torch.tensor(chat.token_ids)
        is_masked[row, :length] = torch.tensor(mask(chat))
    return ids, is_masked


def scored(draft: LlamaForCausalLM, head: torch.Tensor, batch: Batch) -> Batch:
    """The draft's logits before each masked token, (tokens, vocabulary), and the tokens."""
    ids, is_masked = batch
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = draft.model(input_ids=ids).last_hidden_state[:, :-1][is_masked[:, 1:]]
        logits = functional.linear(hidden, head)
    return logits, ids[:, 1:][is_masked[:, 1:]]


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
    held_out = batches(chats[:HELD_OUT], SEED, of_the_target)
    plan = _plan(chats[HELD_OUT:], epochs)

    def loss_of(batch: Batch) -> tuple[torch.Tensor, int]:
        logits, tokens = scored(draft, head, batch)
        return functional.cross_entropy(logits.float(), tokens), len(tokens)

    def judged() -> str:
        return f"agreement on {HELD_OUT} chats: {agreement(draft, head, held_out):.3f}"

    fit(draft, plan, loss_of=loss_of, judged=judged, state=state)
    return draft


def _plan(chats: list[Chat], epochs: int) -> list[Batch]:
    """Each epoch has all chats, and as many of examples alone that no other epoch has."""
    seeds = range(SEED, SEED + epochs)
    return [
        batch
        for seed in seeds
        for batch in batches([*chats, *example_chats(seed, len(chats))], seed, of_the_assistant)
    ]
