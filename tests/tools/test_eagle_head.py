"""The EAGLE head: a training step is the draft that vLLM makes, position by position."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tools.draft import head_training  # noqa: E402 - needs torch
from tools.draft.answers import Chat  # noqa: E402
from tools.draft.fitting import own_weights  # noqa: E402
from tools.draft.head import Head  # noqa: E402
from tools.draft.head_training import (  # noqa: E402
    STEPS,
    accepted,
    lesson,
    linear_guess,
    train,
)
from tools.draft.states import Taught  # noqa: E402

WORDS, WIDTH = 12, 16
CORNERS = torch.eye(WORDS, WIDTH)
CONFIG = transformers.LlamaConfig(
    vocab_size=WORDS,
    hidden_size=WIDTH,
    intermediate_size=24,
    num_hidden_layers=1,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
)


@pytest.fixture
def head() -> Head:
    torch.manual_seed(0)
    return Head(CONFIG)


def as_a_llama(head: Head) -> Any:
    """The same weights where transformers runs them, without the norms that the head has not."""
    model = transformers.LlamaModel(CONFIG)
    model.layers[0].input_layernorm = torch.nn.Identity()
    model.norm = torch.nn.Identity()
    model.layers[0].load_state_dict(head.layers[0].state_dict())
    return model


def test_its_parameters_have_the_names_that_vllm_wants(head: Head) -> None:
    assert {*own_weights(head)} == {
        "fc.weight",
        "layers.0.self_attn.q_proj.weight",
        "layers.0.self_attn.k_proj.weight",
        "layers.0.self_attn.v_proj.weight",
        "layers.0.self_attn.o_proj.weight",
        "layers.0.mlp.gate_proj.weight",
        "layers.0.mlp.up_proj.weight",
        "layers.0.mlp.down_proj.weight",
        "layers.0.post_attention_layernorm.weight",
    }


@pytest.mark.parametrize("filled", [0, 3])
def test_all_drafts_at_once_are_drafts_one_by_one(head: Head, filled: int) -> None:
    """As vLLM drafts: from a position on, each guess goes in for the state that is not known."""
    embedded, states = torch.randn(2, 1, 9, WIDTH)
    is_token = torch.arange(9 + filled)[None] >= filled
    nothing = torch.full((1, filled, WIDTH), 7.0)
    guesses = head(
        torch.cat([nothing, embedded], 1),
        torch.cat([nothing, states], 1),
        is_token,
        window=6,
        steps=STEPS,
    )
    model = as_a_llama(head)

    for start in range(3, 9 - STEPS + 1):
        known = states[:, : start + 1]
        for step in range(STEPS):
            joined = head.fc(torch.cat([embedded[:, : start + 1 + step], known], dim=-1))
            guess = model(inputs_embeds=joined).last_hidden_state[:, -1:]
            assert torch.allclose(guesses[step][:, start - 3 + step], guess[:, 0], atol=1e-5)
            known = torch.cat([known, guess], dim=1)


def counting(length: int, num_answer_tokens: int, first: int = 0) -> Taught:
    """Words that count up; a state is the corner of the word that comes next."""
    words = [(first + index) % WORDS for index in range(length)]
    following = [(word + 1) % WORDS for word in words]
    return Taught(Chat(words, num_answer_tokens), CORNERS[following].to(torch.bfloat16))


def counts_on(by: int) -> Any:
    """What turns a word's corner into that of the word `by` further on."""
    matrix = torch.zeros(WIDTH, WIDTH)
    for word in range(WORDS):
        matrix[(word + by) % WORDS, word] = 1
    return matrix


@pytest.mark.parametrize("part", ["token", "state"])
@pytest.mark.parametrize(
    ("by", "expected"), [(0, [0, 0, 0]), (1, [1, 6 / 7, 5 / 7]), (2, [0, 0, 0])]
)
def test_what_is_accepted_lines_up(head: Head, part: str, by: int, expected: list[float]) -> None:
    """The token that is read and the state's are both the one before the token that is asked for.

    Of the seven drafts in an answer of eight tokens, one ends behind its first token and one behind
    its second.
    """
    nothing = torch.zeros(WIDTH, WIDTH)
    parts = [counts_on(by), nothing] if part == "token" else [nothing, counts_on(by)]
    with torch.no_grad():
        head.fc.weight.copy_(torch.cat(parts, dim=1))
        head.layers[0].self_attn.o_proj.weight.zero_()
        head.layers[0].mlp.down_proj.weight.zero_()

    assert accepted(head, CORNERS, [lesson([counting(20, 8)])]) == pytest.approx(expected)


def test_a_lesson_has_the_ends_of_its_chats_together() -> None:
    given = lesson([counting(5, 2), counting(7, 3)])

    assert given.ids.tolist() == [[0, 0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6]]
    assert given.is_token.sum(1).tolist() == [5, 7]
    assert given.is_answer.tolist() == [[False] * 5 + [True] * 2, [False] * 4 + [True] * 3]
    assert torch.equal(given.states[:, -1].argmax(-1), torch.tensor([5, 7]))
    assert given.window == 4


def test_the_linear_guess_counts_on() -> None:
    taught = [counting(20, 8, first) for first in range(WORDS)]
    guess = linear_guess(CORNERS, taught)

    word = CORNERS[[3]]
    assert torch.allclose(guess @ torch.cat([word, word], 1)[0], CORNERS[4], atol=1e-2)


def test_it_learns_to_count_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is at its end at once when it is trained again."""
    monkeypatch.setattr(head_training, "linear_guess", lambda *_: torch.zeros(WIDTH, 2 * WIDTH))
    monkeypatch.setattr(head_training, "HELD_OUT", 1)
    torch.manual_seed(0)
    target = transformers.LlamaModel(CONFIG)
    with torch.no_grad():
        target.embed_tokens.weight.copy_(CORNERS)
    taught = [counting(20 + number % 3, 8, number) for number in range(13)]
    state = tmp_path / "head.pt"
    head = train(target, taught, epochs=80, state=state)

    assert accepted(head, CORNERS, [lesson([counting(20, 8)])]) == pytest.approx([1, 6 / 7, 5 / 7])
    again = train(target, taught, epochs=80, state=state)
    assert all(
        torch.equal(tensor, own_weights(again)[name]) for name, tensor in own_weights(head).items()
    )
