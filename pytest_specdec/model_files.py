"""What a model folder says about itself, read before any engine starts. Floor 1.

A draft proposes token ids, so target and draft must mean the same text by the same id. vLLM
compares the sizes of the two vocabularies; equal sizes with different tokens would draft garbage
that the target rejects, in silence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_specdec.errors import ModelError
from pytest_specdec.profile import Profile

WEIGHTS = ("*.safetensors", "*.bin", "*.gguf", "*.pt")


def check_folder(model: str, profile: Profile) -> None:
    """Refuses a model folder that is missing or incomplete; hub names are left to the engine.

    Raises:
        ModelError: naming the folder, and the profile's `setup` command where it has one.
    """
    folder = Path(model)
    if not folder.is_absolute():
        return
    hint = (
        f"make it with: {profile.setup}"
        if profile.setup is not None
        else f"check `model` of profile `{profile.name}` in `specdec.toml`"
    )
    if not folder.is_dir():
        raise ModelError(f"profile `{profile.name}`: no model folder: {folder}", hint=hint)
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"profile `{profile.name}`: the model folder has no `config.json`: {folder}", hint=hint
        )
    if not any(next(folder.glob(pattern), None) for pattern in WEIGHTS):
        raise ModelError(
            f"profile `{profile.name}`: the model folder has no weights: {folder}", hint=hint
        )


def check_vocabulary(target: Path, draft: Path) -> None:
    """Refuses a draft model whose vocabulary is not the target's.

    Args:
        target: the target's folder, with `config.json` and `tokenizer.json`.
        draft: the draft's.

    Raises:
        ModelError: naming what differs.
    """
    sizes = [_vocab_size(_read(folder / "config.json")) for folder in (target, draft)]
    if sizes[0] != sizes[1]:
        raise _mismatch(f"`vocab_size` is {sizes[0]} in the target and {sizes[1]} in the draft")
    tokenizers = [folder / "tokenizer.json" for folder in (target, draft)]
    if not all(tokenizer.is_file() for tokenizer in tokenizers):
        return
    target_ids, draft_ids = (_token_ids(tokenizer) for tokenizer in tokenizers)
    differing = [
        token
        for token in target_ids.keys() | draft_ids.keys()
        if target_ids.get(token) != draft_ids.get(token)
    ]
    if differing:
        token = min(differing, key=lambda each: (target_ids.get(each, 1 << 60), each))
        raise _mismatch(
            f"{len(differing)} tokens differ; the first is {token!r}: id {target_ids.get(token)} "
            f"in the target, {draft_ids.get(token)} in the draft"
        )


def _mismatch(fact: str) -> ModelError:
    return ModelError(
        f"target and draft do not share a vocabulary: {fact}",
        hint="take a draft model of the target's own family",
    )


def _vocab_size(config: Mapping[str, Any]) -> int | None:
    """Multimodal configurations keep it one level down."""
    size = config.get("vocab_size", (config.get("text_config") or {}).get("vocab_size"))
    return None if size is None else int(size)


def _token_ids(path: Path) -> dict[str, int]:
    tokenizer = _read(path)
    try:
        vocab = tokenizer["model"]["vocab"]
        ids = dict(vocab) if isinstance(vocab, dict) else {t[0]: i for i, t in enumerate(vocab)}
        ids.update({each["content"]: each["id"] for each in tokenizer.get("added_tokens", ())})
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"the tokenizer has no vocabulary to compare: {path}") from error
    return ids


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot be read: {path}\n{error}") from error
    if not isinstance(content, dict):
        raise ModelError(f"not a JSON object: {path}")
    return content
