"""Joins the draft model of the CPU profile: its own layers, which are kept here, and the target's
embeddings, head and tokenizer.

Its two layers were trained by `tools/train_draft.py` on the target's own answers. They are kept in
bfloat16 and multiplied out to float32, which is exact: the folder has one digest on every machine,
in `requirements/draft.json`. Run under the environment's Python, after `tools/build_model.py`:

    .venv/bin/python tools/build_draft.py
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.model_folder import DRAFT, MODEL, ROOT, build_program, needed, say, write_json

LAYERS = ROOT / "tools" / "draft" / "layers.safetensors"
DIGESTS = ROOT / "requirements" / "draft.json"
EMBEDDINGS = "model.embed_tokens.weight"  # the head too: they are tied
OF_THE_TARGET = ("chat_template.jinja", "tokenizer.json", "tokenizer_config.json")


def write_draft(folder: Path, *, target: Path = MODEL, layers: Path = LAYERS) -> None:
    """Writes the five files of the model into the existing `folder`.

    Raises:
        BuildError: the target or the layers are not there.
    """
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    needed(target / "model.safetensors", "`.venv/bin/python tools/build_model.py`")
    needed(layers, "`git checkout tools/draft`, or `.venv/bin/python tools/train_draft.py`")
    own = {name: tensor.to(torch.float32) for name, tensor in load_file(layers).items()}
    say(f"joining {len(own)} tensors of the draft with the target's embeddings")
    with safe_open(target / "model.safetensors", framework="pt") as file:
        own[EMBEDDINGS] = file.get_tensor(EMBEDDINGS)
    save_file(own, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # safetensors makes it readable to its owner only
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    num_layers = len({name.split(".")[2] for name in own if name.startswith("model.layers.")})
    write_json(folder / "config.json", {**config, "num_hidden_layers": num_layers})
    for name in OF_THE_TARGET:
        shutil.copyfile(target / name, folder / name)


def main(arguments: list[str] | None = None) -> int:
    """Joins the draft."""
    about = "Builds the draft model of the CPU profile."
    return build_program(arguments, about=about, folder=DRAFT, digests=DIGESTS, write=write_draft)


if __name__ == "__main__":
    sys.exit(main())
