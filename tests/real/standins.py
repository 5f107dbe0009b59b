"""Stands in for the models that ready profiles name: what their `config.json` must say for vLLM to
take them, by name on the hub. No weights, and no tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LLAMA_8B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "dtype": "bfloat16",
}
LLAMA_70B = LLAMA_8B | {
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
}
VICUNA = LLAMA_8B | {
    "intermediate_size": 11008,
    "num_key_value_heads": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
    "dtype": "float16",
}
QWEN3_8B = LLAMA_8B | {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
}
EAGLE3 = {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1}
BLOCK = {
    "num_hidden_layers": 5,
    "block_size": 16,
    "mask_token_id": 151669,
    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]},
}

CONFIGS: dict[str, dict[str, Any]] = {
    "meta-llama/Llama-3.1-8B-Instruct": LLAMA_8B,
    "nvidia/Llama-3.1-8B-Instruct-FP8": LLAMA_8B,
    "nvidia/Llama-3.3-70B-Instruct-NVFP4": LLAMA_70B,
    "meta-llama/Llama-3.2-1B-Instruct": LLAMA_8B
    | {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "head_dim": 64},
    "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B": LLAMA_8B
    | EAGLE3
    | {"draft_vocab_size": 32000, "max_position_embeddings": 2048},
    "yuhuili/EAGLE3-LLaMA3.3-Instruct-70B": LLAMA_8B
    | EAGLE3
    | {
        "hidden_size": 6144,
        "num_attention_heads": 48,
        "target_hidden_size": 8192,
        "draft_vocab_size": 32000,
    },
    "yuhuili/EAGLE-LLaMA3.1-Instruct-8B": LLAMA_8B | {"num_hidden_layers": 1},
    "lmsys/vicuna-7b-v1.3": VICUNA,
    "abhigoyal/vllm-medusa-vicuna-7b-v1.3": {
        "architectures": ["MedusaModel"],
        "model_type": "medusa",
        "hidden_size": 4096,
        "num_heads": 5,
        "num_hidden_layers": 1,
        "vocab_size": 32000,
        "max_paths": 64,
        "topk": 10,
    },
    "Qwen/Qwen3-8B": QWEN3_8B,
    "amd/PARD-Qwen3-0.6B": QWEN3_8B
    | {
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "pard_token": 151665,
    },
    "z-lab/Qwen3-8B-DFlash-b16": QWEN3_8B | BLOCK | {"architectures": ["DFlashDraftModel"]},
    "deepseek-ai/dspark_qwen3_8b_block7": QWEN3_8B
    | BLOCK
    | {"architectures": ["Qwen3DSparkModel"], "block_size": 7, "markov_rank": 64},
    "Qwen/Qwen3-Next-80B-A3B-Instruct-FP8": {
        "architectures": ["Qwen3NextForCausalLM"],
        "model_type": "qwen3_next",
        "hidden_size": 2048,
        "intermediate_size": 5120,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "vocab_size": 151936,
        "max_position_embeddings": 262144,
        "num_nextn_predict_layers": 1,
        "dtype": "bfloat16",
    },
    "zai-org/GLM-4.5-Air-FP8": {
        "architectures": ["Glm4MoeForCausalLM"],
        "model_type": "glm4_moe",
        "hidden_size": 4096,
        "num_hidden_layers": 46,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151552,
        "max_position_embeddings": 131072,
        "num_nextn_predict_layers": 1,
        "dtype": "bfloat16",
    },
    "nvidia/DeepSeek-R1-FP4": {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 129280,
        "max_position_embeddings": 163840,
        "num_nextn_predict_layers": 1,
        "dtype": "bfloat16",
    },
}


def stand_in(model: str, folder: Path) -> str:
    """The folder, below `folder`, of what stands in for a model of the hub.

    Raises:
        KeyError: nothing stands in for it.
    """
    path = folder / model
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(CONFIGS[model]), encoding="utf-8")
    return str(path)
