"""What both trainings share: groups of like length, a run that goes on, states taken once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tools.draft import fitting, states  # noqa: E402 - needs torch
from tools.draft.answers import Chat, first  # noqa: E402
from tools.draft.fitting import fit, grouped, own_weights  # noqa: E402

CHATS = [Chat([1 + (length * each) % 7 for each in range(length)], 2) for length in (5, 9, 4)]


def test_groups_have_all_items_and_few_tokens() -> None:
    items = ["a" * length for length in (9, 1, 5, 5, 30, 2, 8, 3)]
    made = grouped(items, len, most_tokens=20, seed=1)

    assert sorted(item for group in made for item in group) == sorted(items)
    assert all(len(group) * max(map(len, group)) <= 20 or len(group) == 1 for group in made)
    assert grouped(items, len, most_tokens=20, seed=1) == made


def test_the_first_chats_have_the_tokens_that_are_wanted() -> None:
    chats = [Chat([1, 2, 3], number) for number in (2, 3, 1)]

    assert [len(first(chats, wanted)) for wanted in (1, 2, 3, 5, 6, 9)] == [1, 1, 2, 2, 3, 3]


def fitted(state: Path, monkeypatch: pytest.MonkeyPatch, *, killed_at: int | None = None) -> object:
    """What one number has become after 12 steps; or what a run that is killed has left."""
    monkeypatch.setattr(fitting, "SAVED_EVERY", 4)
    torch.manual_seed(0)
    draft = torch.nn.Linear(3, 1)

    def loss_of(step: int) -> tuple[Any, int]:
        if step == killed_at:
            raise KeyboardInterrupt
        return draft(torch.tensor([1.0, step, -step])).square().sum(), 1

    fit(draft, [*range(12)], loss_of=loss_of, judged=lambda: "well", state=state)
    return draft.weight.detach()


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fitted(tmp_path / "whole.pt", monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        fitted(tmp_path / "state.pt", monkeypatch, killed_at=9)
    seen = torch.load(tmp_path / "state.pt")

    assert seen["step"] == 8
    assert torch.equal(fitted(tmp_path / "state.pt", monkeypatch), whole)
    assert {path.name for path in tmp_path.iterdir()} == {"whole.pt", "state.pt"}


def test_a_draft_s_own_weights_are_without_embeddings_and_head() -> None:
    config = transformers.LlamaConfig(
        vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    )
    names = {*own_weights(transformers.LlamaForCausalLM(config))}

    assert "model.norm.weight" in names
    assert not [name for name in names if "embed" in name or "lm_head" in name]


class TestStates:
    @pytest.fixture
    def target(self) -> Any:
        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            vocab_size=8,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=2,
            num_attention_heads=2,
        )
        return transformers.LlamaModel(config).eval()

    def test_they_are_those_that_the_head_reads(self, target: Any, tmp_path: Path) -> None:
        taught = states.taken(target, CHATS, tmp_path)

        assert [each.chat for each in taught] == CHATS
        for each in taught:
            alone = target(torch.tensor([each.chat.token_ids])).last_hidden_state[0]
            assert torch.allclose(each.hidden.float(), alone, atol=0.05)

    def test_they_are_taken_once(
        self,
        target: Any,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """And again where what was the last file has more chats now."""
        monkeypatch.setattr(states, "CHUNK", 2)
        states.taken(target, CHATS[:1], tmp_path)
        states.taken(target, CHATS, tmp_path)
        capsys.readouterr()
        taught = states.taken(target, CHATS, tmp_path)

        assert capsys.readouterr().out == ""
        assert [len(each.hidden) for each in taught] == [5, 9, 4]
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "0000.safetensors",
            "0001.safetensors",
        ]
