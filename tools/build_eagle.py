"""Makes the folder of the EAGLE head of the CPU profile, out of the head that is kept here.

It was trained by `tools/train_eagle.py` on the target's own states and answers. It is kept in
bfloat16 and multiplied out to float32, which is exact: the folder has one digest on every machine,
in `requirements/eagle.json`. Embeddings, head and tokenizer are not in it: vLLM takes the target's.
Run under the environment's Python, after `tools/build_model.py`:

    .venv/bin/python tools/build_eagle.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.model_folder import EAGLE, MODEL, ROOT, build_program, needed, say, write_json

HEAD = ROOT / "tools" / "draft" / "head.safetensors"
DIGESTS = ROOT / "requirements" / "eagle.json"


def write_eagle(folder: Path, *, target: Path = MODEL, head: Path = HEAD) -> None:
    """Writes the two files of the head into the existing `folder`.

    Raises:
        BuildError: the target or the head is not there.
    """
    import torch
    from safetensors.torch import load_file, save_file

    config = needed(target / "config.json", "`.venv/bin/python tools/build_model.py`")
    needed(head, "`git checkout tools/draft`, or `.venv/bin/python tools/train_eagle.py`")
    own = {name: tensor.to(torch.float32) for name, tensor in load_file(head).items()}
    say(f"multiplying out {len(own)} tensors of the head")
    save_file(own, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # safetensors makes it readable to its owner only
    # The target's keys: vLLM puts `Eagle` before the architecture when the method is `eagle`.
    of_target = json.loads(config.read_text(encoding="utf-8"))
    write_json(folder / "config.json", {**of_target, "num_hidden_layers": 1})


def main(arguments: list[str] | None = None) -> int:
    """Makes the folder."""
    about = "Builds the EAGLE head of the CPU profile."
    return build_program(arguments, about=about, folder=EAGLE, digests=DIGESTS, write=write_eagle)


if __name__ == "__main__":
    sys.exit(main())
