"""What the draft learns from: the assistant's words, in answers and in worked examples."""

from __future__ import annotations

from itertools import islice

import pytest

pytest.importorskip("torch", reason="the training needs torch")

from tools.draft.answers import Chat
from tools.draft.prompts import examples, prompts
from tools.draft.training import (
    TURN_BEGIN,
    TURN_END,
    batches,
    example_chats,
    of_the_assistant,
    of_the_target,
)
from tools.model_folder import MODEL

WORD = 7
# A question, an example, a question, and an answer that was cut short.
CHAT = Chat([WORD, *TURN_BEGIN, WORD, TURN_END, WORD, *TURN_BEGIN, WORD, WORD], 2)


def test_the_target_said_the_end() -> None:
    assert [at for at, is_said in enumerate(of_the_target(CHAT)) if is_said] == [12, 13]


def test_the_assistant_said_examples_too_and_how_they_end() -> None:
    assert [at for at, is_said in enumerate(of_the_assistant(CHAT)) if is_said] == [5, 6, 12, 13]


def test_a_batch_has_what_the_mask_has_and_no_padding() -> None:
    short = Chat([*TURN_BEGIN, WORD], 1)
    [(ids, is_masked)] = batches([CHAT, short], 1, of_the_assistant)
    assert ids.shape == is_masked.shape == (2, 14)
    assert sorted(is_masked.sum(dim=1).tolist()) == [1, 4]
    assert ids[is_masked].tolist().count(WORD) == 4


def test_examples_end_with_an_answer_and_open_work_has_none() -> None:
    chats = [*islice(examples(1), 200)]
    assert all(chat[-1]["role"] == "assistant" for chat in chats)
    with_some = (chat[:-1] for chat in prompts(1) if len(chat) > 1)
    assert chats == [*islice(with_some, 200)]


@pytest.mark.skipif(not MODEL.is_dir(), reason="the small model is not built")
def test_examples_are_tokenized_as_the_target_reads_them() -> None:
    for chat in example_chats(1, 20):
        said = of_the_assistant(chat)
        assert sum(said) > 5
        # The template ends a turn with a line break, which nobody says.
        assert (chat.token_ids[-2], said[-2:]) == (TURN_END, [True, False])
