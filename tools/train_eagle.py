"""Trains the EAGLE head of the CPU profile, and writes it to `tools/draft/`.

    .venv/bin/python tools/train_eagle.py
    .venv/bin/python tools/build_eagle.py --accept

It learns from the target's answers that `tools/train_draft.py` learns from too, and from the
target's states at each of their tokens. Answers, states and training each go on where they were
stopped. What is there while it works lies in `.models/training/`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.build_eagle import HEAD
from tools.draft.answers import answered, first, num_tokens
from tools.model_folder import MODEL, say, status_of
from tools.train_draft import FOLDER, collect, pack


def main(arguments: list[str] | None = None) -> int:
    """Answers, states, training, and the file; 1 and one clear message if that fails."""
    parser = argparse.ArgumentParser(description="Trains the EAGLE head of the CPU profile.")
    parser.add_argument("--tokens", type=int, default=51_600, help="of answers to learn from")
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args(arguments)

    def build() -> None:
        collect(FOLDER / "answers.jsonl", options.tokens)
        import torch
        from transformers import LlamaModel

        from tools.draft.fitting import own_weights
        from tools.draft.head_training import train
        from tools.draft.states import taken

        chats = first(answered(FOLDER / "answers.jsonl"), options.tokens)
        target = LlamaModel.from_pretrained(MODEL, dtype=torch.float32)
        taught = taken(target, chats, FOLDER / "states")
        say(f"{num_tokens(chats)} tokens of {len(chats)} answers to learn from")
        head = train(target, taught, epochs=options.epochs, state=FOLDER / "head.pt")
        pack(own_weights(head), HEAD)

    return status_of(build)


if __name__ == "__main__":
    sys.exit(main())
