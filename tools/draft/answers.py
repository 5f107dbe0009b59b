"""The target's own greedy answers, which the draft is trained on. Run by `tools/train_draft.py`, in
a process of its own, and kept chunk by chunk: it goes on where it was stopped.

A line of the file is one chat: `token_ids` of all of it, of which the last `num_answer_tokens` are
the target's.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.draft.prompts import prompts
from tools.model_folder import MODEL, say

SEED = 1
CHUNK = 256  # chats between two writes, all in flight at once
MAX_TOKENS = 96
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "KMP_BLOCKTIME": "1",
    "VLLM_CPU_KVCACHE_SPACE": "4",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}


@dataclass(frozen=True, slots=True)
class Chat:
    """One chat, tokenized, with the target's answer at its end."""

    token_ids: list[int]
    num_answer_tokens: int


def answered(path: Path) -> list[Chat]:
    """What the file holds; a line that was cut off by the end of a process is not counted."""
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    return [Chat(**json.loads(line)) for line in whole.splitlines()]


def num_tokens(chats: list[Chat]) -> int:
    """Tokens of all answers."""
    return sum(chat.num_answer_tokens for chat in chats)


def first(chats: list[Chat], wanted: int) -> list[Chat]:
    """As many of the first chats as have `wanted` tokens of answers, or all of them."""
    totals = itertools.accumulate(chat.num_answer_tokens for chat in chats)
    return chats[: 1 + sum(total < wanted for total in totals)]


def answer(path: Path, wanted: int) -> None:
    """Adds answers to the file until they have `wanted` tokens."""
    done = answered(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(map(_line, done)), encoding="utf-8")
    total, chats = num_tokens(done), _answers(len(done))
    while total < wanted:
        began = time.monotonic()
        new = next(chats)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(map(_line, new))
        total += num_tokens(new)
        per_s = num_tokens(new) / (time.monotonic() - began)
        say(f"{total} of {wanted} tokens of answers, {per_s:.0f} a second")


def _answers(skipped: int) -> Iterator[list[Chat]]:
    """Chunks of answers to all prompts behind the first ones."""
    from vllm import LLM, SamplingParams

    engine = LLM(
        str(MODEL),
        dtype="bfloat16",
        enforce_eager=True,
        max_model_len=1024,
        max_num_seqs=CHUNK,
    )
    sampling = SamplingParams(temperature=0, max_tokens=MAX_TOKENS)
    waiting = itertools.islice(prompts(SEED), skipped, None)
    while True:
        outputs = engine.chat([*itertools.islice(waiting, CHUNK)], sampling, use_tqdm=False)
        yield [
            Chat(
                [*each.prompt_token_ids, *each.outputs[0].token_ids], len(each.outputs[0].token_ids)
            )
            for each in outputs
        ]


def _line(chat: Chat) -> str:
    return f"{json.dumps(asdict(chat))}\n"


if __name__ == "__main__":
    answer(Path(sys.argv[1]), int(sys.argv[2]))
