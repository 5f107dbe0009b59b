"""An EAGLE head for a Llama target, as vLLM's `EagleLlamaForCausalLM` runs it.

At position `i` it reads the token at `i + 1` and the target's state at `i`: the last hidden state,
behind the final norm. `fc` makes of both the input of one decoder layer, which has no norm before
its attention. What the layer leaves is a guess at the target's state at `i + 1`; the target's own
head makes of it the token at `i + 2`. A draft of several tokens goes on with guesses for states.

Parameters are named as vLLM wants them. Embeddings and head are the target's, and no part of it.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import (
    LlamaDecoderLayer,
    LlamaRotaryEmbedding,
    apply_rotary_pos_emb,
)

Pair = tuple[torch.Tensor, torch.Tensor]


class Head(nn.Module):  # type: ignore[misc]
    """One layer of the target's shape, and what joins a token with a state."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        layer = LlamaDecoderLayer(config, layer_idx=0)
        layer.input_layernorm = nn.Identity()
        self.layers = nn.ModuleList([layer])
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.rotary = LlamaRotaryEmbedding(config)
        self.head_dim = config.hidden_size // config.num_attention_heads
        self.group = config.num_attention_heads // config.num_key_value_heads

    def forward(
        self,
        embedded: torch.Tensor,
        states: torch.Tensor,
        is_token: torch.Tensor,
        *,
        window: int,
        steps: int,
    ) -> list[torch.Tensor]:
        """Drafts of `steps` tokens from each of the last `window` positions, all at once.

        Args:
            embedded: the embedding of the token at `i + 1` for each `i`, (chats, tokens, width).
            states: the target's state at `i`, of the same shape.
            is_token: false where a short chat is filled up, on its left, (chats, tokens).

        Returns:
            For each step, guesses at the state at `i + 1`, (chats, window, width). No draft of the
            window has got as far as the first `step` of them: those are to be left out.
        """
        past: list[Pair] = []
        joined = self.fc(torch.cat([embedded, states], dim=-1))
        guesses = [self._step(joined, past, is_token, window)]
        for _ in range(steps - 1):
            before = torch.cat([states[:, -window:][:, :1], guesses[-1][:, :-1]], dim=1)
            joined = self.fc(torch.cat([embedded[:, -window:], before], dim=-1))
            guesses.append(self._step(joined, past, is_token, window))
        return guesses

    def _step(
        self, joined: torch.Tensor, past: list[Pair], is_token: torch.Tensor, window: int
    ) -> torch.Tensor:
        """One step of all drafts. Later ones find its keys and values in `past`."""
        layer = self.layers[0]
        here = joined[:, -window:]
        positions = torch.arange(is_token.shape[1])[None, -joined.shape[1] :]
        cos, sin = self.rotary(joined, positions)
        keys = self._heads(layer.self_attn.k_proj(joined))
        queries = self._heads(layer.self_attn.q_proj(here))
        keys, _ = apply_rotary_pos_emb(keys, keys, cos, sin)
        queries, _ = apply_rotary_pos_emb(queries, queries, cos[:, -window:], sin[:, -window:])
        values = self._heads(layer.self_attn.v_proj(joined))
        past.append((self._shared(keys), self._shared(values)))
        attended = _attended(queries, past, is_token).transpose(1, 2).flatten(2)
        summed = here + layer.self_attn.o_proj(attended)
        guess: torch.Tensor = summed + layer.mlp(layer.post_attention_layernorm(summed))
        return guess

    def _heads(self, projected: torch.Tensor) -> torch.Tensor:
        """(chats, tokens, width) as (chats, heads, tokens, head width)."""
        return projected.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def _shared(self, heads: torch.Tensor) -> torch.Tensor:
        """Keys or values once for each head of the queries."""
        return heads.repeat_interleave(self.group, dim=1)


def _attended(queries: torch.Tensor, past: list[Pair], is_token: torch.Tensor) -> torch.Tensor:
    """What the last step of `past` sees, (chats, heads, window, head width).

    A draft that is at `i` in its step `s` knows the target's states up to `i - s`, and has a guess
    for each position since then, made by the steps between.
    """
    step, window = len(past) - 1, queries.shape[2]
    keys, values = past[0]
    num_tokens = keys.shape[2]
    here, there = torch.arange(num_tokens - window, num_tokens), torch.arange(num_tokens)
    is_known = (there <= here[:, None] - step) & is_token[:, None, None, :]
    scores = [(queries @ keys.transpose(2, 3)).masked_fill(~is_known, -1e4)]
    # Moved, so that the guess of each step stands where the draft looks back at it from.
    moved = [[each.roll(step - of, dims=2) for each in past[of]] for of in range(1, step + 1)]
    scores += [(queries * keys).sum(-1, keepdim=True) for keys, _ in moved]
    shares = torch.cat(scores, -1).float().mul(queries.shape[-1] ** -0.5).softmax(-1)
    shares = shares.to(values.dtype)
    attended = shares[..., :num_tokens] @ values
    for of, (_, guessed) in enumerate(moved):
        attended = attended + shares[..., num_tokens + of, None] * guessed
    return attended
