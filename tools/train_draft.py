"""Trains the draft model of the CPU profile, and writes what is its own to `tools/draft/`.

    .venv/bin/python tools/train_draft.py
    .venv/bin/python tools/build_draft.py --accept

First the target answers prompts of a seeded generator, then the draft learns from its answers;
each goes on where it was stopped. What is there while it works lies in `.models/training/`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.build_draft import LAYERS
from tools.draft.answers import ENVIRONMENT, answered, num_tokens
from tools.model_folder import ROOT, BuildError, say, status_of

FOLDER = ROOT / ".models" / "training"
MAX_BYTES = 16_000_000  # what the repository takes


def collect(path: Path, wanted: int) -> None:
    """Has the target answer, in a process that vLLM has to itself."""
    if num_tokens(answered(path)) >= wanted:
        return
    library = Path(sys.prefix) / "lib" / "libiomp5.so"  # vLLM's CPU build wants it loaded first
    done = subprocess.run(
        [sys.executable, "-m", "tools.draft.answers", str(path), str(wanted)],
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT, "LD_PRELOAD": str(library)},
        check=False,
    )
    if done.returncode != 0:
        raise BuildError("the target did not answer", hint="its last lines are above; run it again")


def pack(weights: Mapping[str, Any], path: Path) -> None:
    """Writes the draft's own weights in bfloat16.

    Raises:
        BuildError: they are too large to be kept in the repository.
    """
    import torch
    from safetensors.torch import save_file

    small = {
        name: tensor.detach().to(torch.bfloat16).contiguous() for name, tensor in weights.items()
    }
    num_bytes = sum(tensor.numel() * 2 for tensor in small.values())
    if num_bytes > MAX_BYTES:
        raise BuildError(f"too large to keep: {num_bytes} bytes", hint="take fewer layers")
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(small, path, metadata={"format": "pt"})
    path.chmod(0o644)
    say(f"{path.relative_to(ROOT)}: {num_bytes} bytes")


def main(arguments: list[str] | None = None) -> int:
    """Answers, training, and the file; 1 and one clear message if that fails."""
    parser = argparse.ArgumentParser(description="Trains the draft model of the CPU profile.")
    parser.add_argument("--tokens", type=int, default=150_000, help="of answers to learn from")
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args(arguments)

    def build() -> None:
        collect(FOLDER / "answers.jsonl", options.tokens)
        from tools.draft.fitting import own_weights
        from tools.draft.training import train

        chats = answered(FOLDER / "answers.jsonl")
        draft = train(chats, epochs=options.epochs, state=FOLDER / "state.pt")
        pack(own_weights(draft), LAYERS)

    return status_of(build)


if __name__ == "__main__":
    sys.exit(main())
