"""What the EAGLE head learns, and how: as in a draft of `STEPS` tokens it goes on with its own
guesses at the target's states, and learns at each step the target's next token, by cross-entropy
over the target's own greedy answers, and the state that would have come.

It begins as the linear guess at the next state, under a copy of the target's last layer that says
nothing yet.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional
from transformers import LlamaModel

from tools.draft.fitting import fit, grouped
from tools.draft.head import Head
from tools.draft.states import Taught

STEPS = 3  # the `num_speculative_tokens` of the profile
OF_STATES = 0.1  # what the guess at a state counts beside that at a token
BATCH_TOKENS = 2048  # filling included
HELD_OUT = 64  # chats that are not learned from
FITTED = 200  # chats that the linear guess is taken from
SEED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Chats side by side with their ends together, filled up on the left; all (chats, tokens)."""

    ids: torch.Tensor
    states: torch.Tensor  # of the target, (chats, tokens, width)
    is_token: torch.Tensor
    is_answer: torch.Tensor

    @property
    def window(self) -> int:
        """Positions at the end that drafts start from: those whose next token is an answer's."""
        return int(self.is_answer.sum(1).max()) + 1


def lesson(group: list[Taught]) -> Lesson:
    """What is learned at once."""
    shape = (len(group), max(len(each.chat.token_ids) for each in group))
    ids = torch.zeros(shape, dtype=torch.long)
    states = torch.zeros(*shape, group[0].hidden.shape[-1])
    is_token, is_answer = torch.zeros(2, *shape, dtype=torch.bool)
    for row, each in enumerate(group):
        length = len(each.chat.token_ids)
        ids[row, -length:] = torch.tensor(each.chat.token_ids)
        states[row, -length:] = each.hidden.float()
        is_token[row, -length:] = True
        is_answer[row, -each.chat.num_answer_tokens :] = True
    return Lesson(ids=ids, states=states, is_token=is_token, is_answer=is_answer)


def groups(taught: list[Taught], seed: int) -> list[list[Taught]]:
    """All chats once, in lessons."""
    return grouped(
        taught, lambda each: len(each.chat.token_ids), most_tokens=BATCH_TOKENS, seed=seed
    )


def untrained(target: LlamaModel, taught: list[Taught]) -> Head:
    """The head as it begins."""
    config = copy.deepcopy(target.config)
    config.num_hidden_layers = 1
    head, last = Head(config), target.layers[-1]
    layer = head.layers[0]
    layer.load_state_dict(last.state_dict(), strict=False)
    with torch.no_grad():
        # What the last layer's own norm gave its attention, of a state behind the final norm.
        scale = last.input_layernorm.weight / target.norm.weight
        for projection in (
            layer.self_attn.q_proj,
            layer.self_attn.k_proj,
            layer.self_attn.v_proj,
        ):
            projection.weight.mul_(scale)
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
        head.fc.weight.copy_(linear_guess(target.embed_tokens.weight, taught))
    return head


def linear_guess(embeddings: torch.Tensor, taught: list[Taught]) -> torch.Tensor:
    """The matrix that comes closest to the next state, given the next token and this state."""
    width = embeddings.shape[1]
    squares, products = torch.zeros(2 * width, 2 * width), torch.zeros(2 * width, width)
    for each in taught:
        ids, states = torch.tensor(each.chat.token_ids), each.hidden.float()
        known = torch.cat([embeddings[ids[1:]], states[:-1]], dim=1)
        squares += known.T @ known
        products += known.T @ states[1:]
    squares.diagonal().add_(1e-4 * squares.diagonal().mean())
    return torch.linalg.solve(squares, products).T


def drafted(head: Head, embeddings: torch.Tensor, given: Lesson, steps: int) -> list[torch.Tensor]:
    """Guesses of each step, (chats, window, width)."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        following = functional.embedding(given.ids.roll(-1, dims=1), embeddings)
        guesses: list[torch.Tensor] = head(
            following, given.states, given.is_token, window=given.window, steps=steps
        )
    return guesses


def loss_of(
    head: Head, embeddings: torch.Tensor, words: torch.Tensor, group: list[Taught]
) -> tuple[torch.Tensor, int]:
    """The loss over a lesson, and how many guesses it is the mean of.

    Args:
        embeddings: the target's, which are its head too, (vocabulary, width).
        words: the tokens among which the head has to choose, in order. All others take ten times
            as long, and the guess at the state keeps the head away from them.
    """
    given = lesson(group)
    window, of_words = given.window, embeddings[words].to(torch.bfloat16)
    ids, states, is_answer = (
        each[:, -window:] for each in (given.ids, given.states, given.is_answer)
    )
    loss, num_guesses = torch.zeros(()), 0
    for step, guess in enumerate(drafted(head, embeddings, given, STEPS)):
        is_asked = is_answer[:, 1 : window - 1 - step]  # where the draft started
        asked = guess[:, step:-2][is_asked]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = functional.linear(asked, of_words).float()
        tokens = torch.searchsorted(words, ids[:, step + 2 :][is_asked])
        loss = loss + functional.cross_entropy(logits, tokens)
        of_states = functional.smooth_l1_loss(asked, states[:, step + 1 : -1][is_asked])
        loss = loss + OF_STATES * of_states
        num_guesses += len(tokens)
    return loss / STEPS, num_guesses


def accepted(head: Head, embeddings: torch.Tensor, held_out: list[Lesson]) -> list[float]:
    """For each token of a draft, how often it and all before it are the target's.

    Over drafts from every position of the answers, with the whole vocabulary to choose from.
    """
    total, right = 0, [0] * STEPS
    for given in held_out:
        window = given.window
        ids = given.ids[:, -window:]
        is_right = given.is_answer[:, -window:][:, 1:-1]
        total += int(is_right.sum())
        with torch.no_grad():
            guesses = drafted(head, embeddings, given, STEPS)
        for step, guess in enumerate(guesses):
            is_right = is_right[:, : window - 2 - step].clone()
            chosen = (guess[:, step:-2][is_right].float() @ embeddings.T).argmax(-1)
            is_right[is_right.clone()] = chosen == ids[:, step + 2 :][is_right]
            right[step] += int(is_right.sum())
    return [each / total for each in right]


def train(target: LlamaModel, taught: list[Taught], *, epochs: int, state: Path) -> Head:
    """The trained head. Goes on at the step that `state` holds, and writes it as it goes."""
    torch.manual_seed(SEED)
    embeddings = target.embed_tokens.weight.detach()
    words = torch.tensor([token for each in taught for token in each.chat.token_ids]).unique()
    held_out = [lesson(group) for group in groups(taught[:HELD_OUT], SEED)]
    plan = [group for epoch in range(epochs) for group in groups(taught[HELD_OUT:], SEED + epoch)]
    head = untrained(target, taught[HELD_OUT : HELD_OUT + FITTED])

    def judged() -> str:
        shares = ", ".join(f"{share:.3f}" for share in accepted(head, embeddings, held_out))
        return f"accepted at each position, over {HELD_OUT} chats: {shares}"

    def loss(group: list[Taught]) -> tuple[torch.Tensor, int]:
        return loss_of(head, embeddings, words, group)

    fit(head, plan, loss_of=loss, judged=judged, state=state)
    return head
