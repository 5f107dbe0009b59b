"""What the target thinks before each token of a chat: its last hidden states, which an EAGLE head
reads and learns to foresee. They are taken once, and kept chunk by chunk in bfloat16: it goes on
where it was stopped.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch.nn.utils.rnn import pad_sequence
from transformers import LlamaModel

from tools.draft.answers import Chat
from tools.model_folder import say

CHUNK, AT_ONCE = 32, 8  # chats of one file, and of one pass of the target


@dataclass(frozen=True, slots=True)
class Taught:
    """A chat, and the target's hidden state at each of its tokens, (tokens, width), bfloat16.

    The state is the one that the target's head reads: behind the final norm, as vLLM hands it on.
    """

    chat: Chat
    hidden: torch.Tensor


def taken(target: LlamaModel, chats: list[Chat], folder: Path) -> list[Taught]:
    """All chats with their states; those that `folder` does not have yet are taken and kept."""
    folder.mkdir(parents=True, exist_ok=True)
    chunks = [chats[start : start + CHUNK] for start in range(0, len(chats), CHUNK)]
    taught: list[Taught] = []
    for number, chunk in enumerate(chunks):
        lengths = [len(chat.token_ids) for chat in chunk]
        path = folder / f"{number:04}.safetensors"
        kept = load_file(path)["hidden"] if path.exists() else None
        if kept is None or len(kept) != sum(lengths):  # it may have been the last one, and smaller
            began = time.monotonic()
            kept = _hidden(target, [chat.token_ids for chat in chunk])
            save_file({"hidden": kept}, path.with_suffix(".part"))
            path.with_suffix(".part").replace(path)
            per_s = len(kept) / (time.monotonic() - began)
            say(f"states of chunk {number + 1} of {len(chunks)}, {per_s:.0f} tokens a second")
        taught += map(Taught, chunk, torch.split(kept, lengths))
    return taught


def _hidden(target: LlamaModel, chats: list[list[int]]) -> torch.Tensor:
    """States of all tokens of all chats, one chat behind the other."""
    states: dict[int, torch.Tensor] = {}
    order = sorted(range(len(chats)), key=lambda index: len(chats[index]))
    for start in range(0, len(order), AT_ONCE):
        rows = order[start : start + AT_ONCE]
        padded = pad_sequence([torch.tensor(chats[row]) for row in rows], batch_first=True)
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = target(input_ids=padded, use_cache=False).last_hidden_state
        for row, of_chat in zip(rows, hidden, strict=True):
            states[row] = of_chat[: len(chats[row])].to(torch.bfloat16)
    return torch.cat([states[row] for row in range(len(chats))])
