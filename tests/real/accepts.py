"""A program for the interpreter that has vLLM: what its own classes say of profiles, with nothing
loaded and nothing downloaded.

    python accepts.py < asked.json

Asked are one object a profile: `engine_args`, `speculative_config` and `env` as a profile has them,
but each model a folder that holds a `config.json`, and its `compute_capability`. Answered is a list
of what is refused of each, one line a reason; it is empty where vLLM takes all of it.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
import typing
from collections.abc import Iterator, Mapping
from typing import Any

# What this build of vLLM, for a CPU, would refuse although a GPU has it: held to its list of names,
# and kept from the models' own configuration.
OF_A_DEVICE = ("attention_backend", "kv_cache_dtype", "quantization")


def refused(asked: Mapping[str, Any]) -> Iterator[str]:
    yield from refused_arguments(asked["engine_args"])
    yield from refused_environment(asked["env"])
    yield from refused_backend(asked)
    yield from refused_speculation(asked)


def refused_arguments(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Each by the type that vLLM declares for it."""
    from pydantic import TypeAdapter, ValidationError
    from vllm.engine import arg_utils
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS

    types = {field.name: field.type for field in dataclasses.fields(arg_utils.EngineArgs)}
    for name, value in arguments.items():
        if name not in types:
            yield f"engine_args: no such name: {name}"
        elif name == "attention_backend":
            yield from refused_name(value)
        elif name == "quantization":
            if value not in QUANTIZATION_METHODS:
                yield f"engine_args: no such quantization: {value}"
        else:
            try:
                kind = types[name]
                kind = eval(kind, vars(arg_utils)) if isinstance(kind, str) else kind
                TypeAdapter(kind).validate_python(value)
            except ValidationError as error:
                yield f"engine_args: {name}: {error.errors()[0]['msg']}"


def refused_name(backend: str) -> Iterator[str]:
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    if backend not in AttentionBackendEnum.__members__:
        yield f"no such attention backend: {backend}"


def refused_environment(env: Mapping[str, str]) -> Iterator[str]:
    from vllm import envs

    yield from (f"env: no such name: {name}" for name in env if name not in dir(envs))


def refused_backend(asked: Mapping[str, Any]) -> Iterator[str]:
    """Whether the attention backend says that it runs where the profile is for, and invariant to
    the batch where that is asked. One whose kernels are not installed cannot be asked."""
    from vllm.platforms.interface import DeviceCapability
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    name = asked["engine_args"].get("attention_backend")
    if name not in AttentionBackendEnum.__members__:
        return
    try:
        backend = AttentionBackendEnum[name].get_class()
    except Exception:  # what an import raises where there is no GPU is anything
        return
    for capability in asked["compute_capability"]:
        major = int(capability.partition(".")[0])
        if not backend.supports_compute_capability(DeviceCapability(major, 0)):
            yield f"{name} does not support compute capability: {capability}"
    if asked["env"].get("VLLM_BATCH_INVARIANT") == "1" and not backend.supports_batch_invariance():
        yield f"{name} is not invariant to the batch"


def refused_speculation(asked: Mapping[str, Any]) -> Iterator[str]:
    """`SpeculativeConfig`, made as an engine makes it, of the target's configuration."""
    from vllm.config import ParallelConfig, SpeculativeConfig
    from vllm.engine.arg_utils import EngineArgs

    given = {k: v for k, v in asked["engine_args"].items() if k not in OF_A_DEVICE}
    config = asked["speculative_config"]
    try:
        target = EngineArgs(**given, skip_tokenizer_init=True).create_model_config()
        # Named, or it would be chosen by the GPUs that are here.
        parallel = ParallelConfig(
            tensor_parallel_size=given.get("tensor_parallel_size", 1),
            distributed_executor_backend="mp",
        )
        target.verify_with_parallel_config(parallel)
        made = SpeculativeConfig(
            **config, target_model_config=target, target_parallel_config=parallel
        )
    except Exception as error:  # whatever its classes raise is the answer
        yield f"speculative_config: {type(error).__name__}: {error}"
        return
    if made.method != config["method"]:
        yield f"speculative_config: `{config['method']}` is taken for: {made.method}"
    if made.num_speculative_tokens != config["num_speculative_tokens"]:
        yield f"speculative_config: drafts of {made.num_speculative_tokens} tokens are made"


def methods() -> dict[str, bool]:
    """The ways to speculate that vLLM names, and whether one of its model runners knows them."""
    from vllm.config.speculative import MTPModelTypes, SpeculativeConfig, SpeculativeMethod
    from vllm.v1.worker import gpu_model_runner
    from vllm.v1.worker.gpu import spec_decode

    own = (each for name, each in vars(SpeculativeConfig).items() if name.startswith("use"))
    rooms = (gpu_model_runner, spec_decode, *filter(callable, own))
    source = "".join(map(inspect.getsource, rooms))
    of_one_model = {*typing.get_args(MTPModelTypes)} - {"mtp"}
    named = {*typing.get_args(SpeculativeMethod)} - of_one_model
    return {name: f'"{name}"' in source for name in sorted(named)}


def take_for_granted() -> None:
    """That looking at a model's class touches no GPU, which vLLM has a process of its own for, with
    an import of vLLM in each; and the package that suffix decoding is in."""
    from vllm.config import speculative
    from vllm.model_executor.models import registry

    registry._run_in_subprocess = lambda look: look()
    speculative.has_arctic_inference = lambda: True


if __name__ == "__main__":
    take_for_granted()
    asked = json.load(sys.stdin)
    answers = {name: [*refused(each)] for name, each in asked.items()}
    print(json.dumps({"refused": answers, "methods": methods()}))
