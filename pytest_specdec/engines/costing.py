"""What engines took, by what they said once loaded and by their models' files. Floor 1."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_specdec.engines.cost import Cost, EngineCost
from pytest_specdec.engines.protocol import EngineFacts
from pytest_specdec.generation import Role
from pytest_specdec.model_fit import size_ratio
from pytest_specdec.model_weights import Weights, local_folder, read_weights
from pytest_specdec.profile import Profile


def cost_of(
    profile: Profile, facts: Mapping[Role, EngineFacts], peaks: Mapping[Role, int | None]
) -> Cost | None:
    """What both engines of a profile took; `None` before both have loaded.

    Args:
        peaks: `peak_memory_bytes` of each.
    """
    if {"baseline", "speculative"} - facts.keys():
        return None
    target, draft = _weights(profile, profile.target_model), _draft_weights(profile, "speculative")
    config = facts["speculative"].config
    return Cost(
        baseline=_of_engine(profile, "baseline", facts["baseline"], peaks.get("baseline")),
        speculative=_of_engine(
            profile, "speculative", facts["speculative"], peaks.get("speculative")
        ),
        draft_weights_bytes=None if draft is None else _held(draft, config),
        size_ratio=None if target is None or draft is None else size_ratio(target, draft),
    )


def _of_engine(profile: Profile, role: Role, facts: EngineFacts, peak: int | None) -> EngineCost:
    config = facts.config
    blocks = config.get("cache_config.num_gpu_blocks")
    size = config.get("cache_config.block_size")
    models = [_weights(profile, profile.target_model)]
    if _draft_model(profile, role) is not None:
        models.append(_draft_weights(profile, role))
    held = [_held(each, config) for each in models if each is not None]
    return EngineCost(
        load_s=facts.load_s,
        weights_bytes=sum(held) if len(held) == len(models) else None,
        kv_cache_blocks=blocks,
        kv_cache_tokens=None if blocks is None or size is None else blocks * size,
        peak_memory_bytes=peak,
    )


def _held(weights: Weights, config: Mapping[str, object]) -> int:
    """Quantised on loading they are smaller than that, by what vLLM does not tell."""
    return weights.bytes_as(str(config.get("model_config.dtype")))


def _draft_model(profile: Profile, role: Role) -> str | None:
    return (profile.speculation(role) or {}).get("model")


def _draft_weights(profile: Profile, role: Role) -> Weights | None:
    draft = _draft_model(profile, role)
    return None if draft is None else _weights(profile, draft)


def _weights(profile: Profile, model: str) -> Weights | None:
    revision = profile.engine_args.get("revision") if model == profile.target_model else None
    return read_weights(local_folder(model, env=profile.env, revision=revision))
