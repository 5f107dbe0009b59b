"""A fake engine: speaks the worker's protocol, answers at once, and misbehaves when told to.

Started in the worker's place, as `--specdec-python` (see `interpreter.install`):

    engine.py WORKER COMMANDS_FD REPLIES_FD

Everything it says follows from the request. An answer is what stands after `ANSWER:` in the last
message, or words drawn from that message; a token is three characters, its id their bytes, so ids
need no vocabulary. Above temperature 0, and without that mark, an answer is drawn from `SAMPLED`,
always the same if the request has a seed. Steps, counters and times are computed and never slept:
with the defaults 3 of 4 draft tokens are accepted, and a speculative step costs as much as a plain
one.

`FAKE_ENGINE` holds a JSON object of settings; keys under `baseline` or `speculative` go to that
engine alone. The speculative engine is the one that is told to speculate; where both are, the
baseline engine is the one that has `FAKE_ENGINE_ROLE`, of an interpreter of its own, or drafts of
`baseline_tokens`. `FAKE_ENGINE_LOG` names a file that gets one line for each command. The standard
library alone is imported.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

CHARS_PER_TOKEN = 3
END = 0
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet")
SAMPLED = {"ace": 0.4, "bay": 0.3, "cod": 0.2, "dew": 0.1}
CONFIG: Mapping[str, Any] = {
    "max_num_seqs": 16,
    "model_config.hf_text_config.vocab_size": len(SAMPLED),
}
VERSIONS = {
    "vllm": "0.32.0",
    "torch": "2.13.0",
    "python": "3.11.9",
    "cuda": None,
    "driver": None,
}
# settings: `accepted` of each draft's tokens; `drafts` are told by each request and the engine, by
# the `engine` alone, by `nobody`, or there are `none`; `diverge` is {prompt, at, calls}, and `at` a
# position, several, or `end`; a token that is not the engine's own is `margin_nats` less likely,
# and at the positions of `margins` that much; `answers` replaces them by part of the prompt; `on`
# says what happens instead of a command's answer;
# a pass takes `wall_factors` times what it would, call by call, and `load_factors`, load by load.
#
# `diverge` may name `circumstances`, and is then for them alone; `accepted_in` says what is
# accepted in some, and `accepted_from` is [call, accepted]; those in `unsupported` are refused so.
# `cached` tokens of each prompt are in a warm cache, and `num_preemptions` happen under preemption.
# A request with a field of `refuses` is refused, and those of `ignores` are as if not there.
# Answers are `drawn` by the probabilities, or as the `likeliest` alone; if not `is_replayed`, a
# seed is nothing to them. `logprob_shift` is added to what is told of each token; `extra_usage`
# tokens too many are counted for each answer.
DEFAULTS: Mapping[str, Any] = {
    "accepted": 3,
    "drafts": "request",
    "step_ms": 10.0,
    "wall_factors": [1.0],
    "load_factors": [1.0],
    "diverge": None,
    "margin_nats": 2.0,
    "margins": {},
    "answers": {},
    "config": {},
    "versions": {},
    "folders": {},
    "on": {},
    "is_with_child": False,
    "accepted_in": {},
    "accepted_from": None,
    "unsupported": [],
    "cached": 2,
    "num_preemptions": 1,
    "refuses": [],
    "ignores": [],
    "drawn": "by the probabilities",
    "is_replayed": True,
    "logprob_shift": 0.0,
    "extra_usage": 0,
    "baseline_tokens": None,
}


class Refusal(Exception):
    """An error to be reported, of a kind the parent knows."""


def encode(text: str) -> list[int]:
    chunks = [text[at : at + CHARS_PER_TOKEN] for at in range(0, len(text), CHARS_PER_TOKEN)]
    return [int.from_bytes(chunk.encode(errors="surrogatepass"), "big") for chunk in chunks]


def decode(token_id: int) -> str:
    size = (token_id.bit_length() + 7) // 8
    return token_id.to_bytes(size, "big").decode(errors="surrogatepass")


def answer_to(prompt: str) -> str:
    """What a faultless engine says."""
    marked = prompt.partition("ANSWER:")[2].strip()
    if marked:
        return marked
    seed = zlib.crc32(prompt.encode())
    return " ".join(WORDS[(seed >> shift) % len(WORDS)] for shift in range(12))


class FakeEngine:
    """One engine's settings and answers."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {**DEFAULTS, **json.loads(os.environ["FAKE_ENGINE"])}
        self.role: str | None = None
        # What its interpreter says of it is so before it knows its arguments.
        self.settings.update(self.settings.get(os.environ.get("FAKE_ENGINE_ROLE", ""), {}))
        self.num_draft_tokens = 0
        self.num_calls: dict[str, int] = {}
        self.load_factor = 1.0

    def answer(self, command: Mapping[str, Any], send: Any) -> Any:
        operation = command["op"]
        if operation == "load":
            self._take_role(command["engine_args"])
        call = self.num_calls[operation] = self.num_calls.get(operation, 0) + 1
        log(op=operation, role=self.role, call=call, command=command)
        on = self.settings["on"]
        self._misbehave(on.get(f"{operation}#{call}", on.get(operation)))
        if operation == "hello":
            return {**VERSIONS, **self.settings["versions"]}
        if operation == "check_names":
            return None
        if operation == "folder":
            return self.settings["folders"].get(command["model"], command["model"])
        if operation == "load":
            return {"load_s": 1.5, "config": {**CONFIG, **self.settings["config"]}}
        if operation == "generate":
            send(progress={"num_finished": 0, "num_output_tokens": 0})
            self._refuse(command["requests"], command["circumstance"])
            return self._generate(command["requests"], call, command["circumstance"])
        return self._score(command["prompt_token_ids"], command["token_ids"])

    def _take_role(self, engine_args: Mapping[str, Any]) -> None:
        speculative = engine_args.get("speculative_config")
        if speculative is not None:
            self.num_draft_tokens = speculative.get("num_speculative_tokens", 4)
        is_baseline = self.num_draft_tokens in (0, self.settings["baseline_tokens"])
        given = os.environ.get("FAKE_ENGINE_ROLE")
        self.role = given or ("baseline" if is_baseline else "speculative")
        self.settings.update(self.settings.get(self.role, {}))
        factors = self.settings["load_factors"]
        if len(factors) > 1:
            self.load_factor = factors[num_loads_before(self.role) % len(factors)]
        if self.settings["is_with_child"]:
            child = subprocess.Popen(["sleep", "300"])
            log(op="child", role=self.role, pid=child.pid)

    def _misbehave(self, how: Any) -> None:
        if how is None:
            return
        sys.stdout.write(f"fake engine: told to {how}\n")
        sys.stdout.flush()
        if how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "exit":
            os._exit(0)
        elif how == "be silent":
            parent = os.getppid()
            while os.getppid() == parent:
                time.sleep(0.02)
            os._exit(1)
        else:
            raise Refusal(*how)

    def _refuse(self, requests: Sequence[Mapping[str, Any]], circumstance: str | None) -> None:
        if circumstance in self.settings["unsupported"]:
            raise Refusal("unsupported", f"cannot be brought there: {circumstance}")
        for field in self.settings["refuses"]:
            if any(field in request for request in requests):
                raise Refusal("request", f"`{field}` is not supported with speculation")

    def _generate(
        self, requests: Sequence[Mapping[str, Any]], call: int, circumstance: str | None
    ) -> dict[str, Any]:
        kept = [
            {key: value for key, value in each.items() if key not in self.settings["ignores"]}
            for each in requests
        ]
        generations = [self._generation(request, call, circumstance) for request in kept]
        factors = self.settings["wall_factors"]
        num_steps = sum(len(each["step_tokens"]) for each in generations)
        step_s = self.settings["step_ms"] / 1000
        drafts = [each["drafts"] for each in generations]
        if self.settings["drafts"] in ("engine", "nobody"):
            generations = [{**each, "drafts": None} for each in generations]
        is_counted = self.num_draft_tokens > 0 and self.settings["drafts"] != "nobody"
        return {
            "generations": generations,
            "wall_s": num_steps * step_s * self.load_factor * factors[(call - 1) % len(factors)],
            "drafts": total(drafts) if is_counted else None,
            "usage": self._engine_usage([each["usage"] for each in generations], circumstance),
        }

    def _engine_usage(
        self, of_requests: Sequence[Mapping[str, int]], circumstance: str | None
    ) -> dict[str, int]:
        is_preempting = circumstance == "under-preemption"
        return {
            **{name: sum(each[name] for each in of_requests) for name in of_requests[0]},
            "num_preemptions": self.settings["num_preemptions"] if is_preempting else 0,
        }

    def _generation(
        self, request: Mapping[str, Any], call: int, circumstance: str | None
    ) -> dict[str, Any]:
        prompt = request["messages"][-1]["content"]
        token_ids, *others = (
            self._answer(request, call, number) for number in range(request.get("n", 1))
        )
        own = completion(request, self._diverged(prompt, token_ids, call, circumstance))
        token_ids = own["token_ids"]
        step_tokens, drafts = self._steps(len(token_ids), self._accepted(call, circumstance))
        is_warm = circumstance == "warm-prefix-cache"
        return {
            "prompt_token_ids": encode(prompt),
            **own,
            "step_tokens": step_tokens,
            "ttft_ms": 20.0,
            "tpot_ms": 5.0 if len(token_ids) > 1 else None,
            "drafts": drafts,
            "usage": {
                "num_prompt_tokens": len(encode(prompt)),
                "num_generation_tokens": len(token_ids) + self.settings["extra_usage"],
                "num_cached_tokens": self.settings["cached"] if is_warm else 0,
            },
            "logprobs": [-0.1 + self.settings["logprob_shift"]] * len(token_ids)
            if "logprobs" in request
            else None,
            "others": [completion(request, each) for each in others],
            "bad_words_token_ids": [encode(word) for word in request["bad_words"]]
            if "bad_words" in request
            else None,
        }

    def _answer(self, request: Mapping[str, Any], call: int, number: int) -> list[int]:
        """One of the answers to a request."""
        prompt, max_tokens = request["messages"][-1]["content"], request["max_tokens"]
        text = self._text(prompt)
        if request.get("temperature", 0) and text is None and "ANSWER:" not in prompt:
            return self._drawn(request, call, number)
        token_ids = [*encode(answer_to(prompt) if text is None else text), END]
        if request.get("ignore_eos"):
            token_ids = token_ids[:-1] * max_tokens
        return token_ids[:max_tokens]

    def _drawn(self, request: Mapping[str, Any], call: int, number: int) -> list[int]:
        """As many tokens as it may have."""
        chunks, max_tokens = list(SAMPLED), request["max_tokens"]
        if self.settings["drawn"] == "likeliest":
            chunks = chunks[:1]
        is_same = self.settings["is_replayed"] and "seed" in request
        source = [self.role, number, request["messages"], request.get("seed")]
        draws = random.Random(json.dumps([*source, None if is_same else call]))
        drawn = draws.choices(chunks, [SAMPLED[each] for each in chunks], k=max_tokens)
        return encode("".join(drawn))

    def _text(self, prompt: str) -> str | None:
        """What is to be said instead."""
        for part, text in self.settings["answers"].items():
            if part in prompt:
                return str(text)
        return None

    def _diverged(
        self, prompt: str, token_ids: list[int], call: int, circumstance: str | None
    ) -> list[int]:
        how = self.settings["diverge"]
        if how is None or how["prompt"] not in prompt or call not in how.get("calls", [call]):
            return token_ids
        if circumstance not in how.get("circumstances", [circumstance]):
            return token_ids
        if how["at"] == "end":
            return token_ids[:-1]
        # The warm-up's few tokens may end before it.
        places = how["at"] if isinstance(how["at"], list) else [how["at"]]
        (other,) = encode("!?!")
        return [other if at in places else token_id for at, token_id in enumerate(token_ids)]

    def _accepted(self, call: int, circumstance: str | None) -> int:
        first, accepted = self.settings["accepted_from"] or (call, self.settings["accepted"])
        if call < first:
            accepted = self.settings["accepted"]
        return int(self.settings["accepted_in"].get(circumstance, accepted))

    def _steps(self, num_tokens: int, accepted: int) -> tuple[list[int], dict[str, Any] | None]:
        """One step for the first token, then one for every draft and its bonus token."""
        if not self.num_draft_tokens:
            return [1] * num_tokens, None
        drafted = self.num_draft_tokens
        if self.settings["drafts"] == "none":
            return [1] * num_tokens, counters(0, accepted=0, drafted=0)
        num_left = num_tokens - 1
        steps = [min(accepted + 1, num_left - at) for at in range(0, num_left, accepted + 1)]
        return [1, *steps], counters(len(steps), accepted=accepted, drafted=drafted)

    def _score(self, prompt_ids: Sequence[int], token_ids: Sequence[int]) -> list[dict[str, Any]]:
        """The engine's own token has -0.1, any other less: by 2 nats if not told otherwise. What
        was drawn has its own probability."""
        window = self.settings["config"].get("model_config.max_model_len", math.inf)
        if len(prompt_ids) + len(token_ids) >= window:
            raise Refusal("request", "the prompt leaves no token of the context window")
        if {*map(decode, token_ids)} <= SAMPLED.keys():
            return [score_of_drawn(token_id) for token_id in token_ids]
        prompt = "".join(map(decode, prompt_ids))
        own = [*encode(answer_to(prompt)), END]
        scores = []
        for position, token_id in enumerate(token_ids):
            best = own[min(position, len(own) - 1)]
            margin = self.settings["margins"].get(str(position), self.settings["margin_nats"])
            scores.append(
                {
                    "token_id": token_id,
                    "text": decode(token_id),
                    "logprob": -0.1 if token_id == best else -0.1 - margin,
                    "rank": 1 if token_id == best else 2,
                    "argmax_token_id": best,
                    "argmax_text": decode(best),
                    "argmax_logprob": -0.1,
                }
            )
        return scores


def completion(request: Mapping[str, Any], token_ids: list[int]) -> dict[str, Any]:
    """What is told of each answer to a request."""
    text = "".join(map(decode, token_ids))
    stop_reason = next((each for each in stops_of(request) if each in text), None)
    if stop_reason is not None:
        text = text[: text.index(stop_reason)]
        token_ids = token_ids[: -(-len(text + stop_reason) // CHARS_PER_TOKEN)]
    is_ended = token_ids[-1:] == [END] or stop_reason is not None
    is_cut = len(token_ids) == request["max_tokens"] and not is_ended
    return {
        "token_ids": token_ids,
        "text": text,
        "finish_reason": "length" if is_cut else "stop",
        "stop_reason": stop_reason,
    }


def stops_of(request: Mapping[str, Any]) -> list[str]:
    """`stop`, which may be one string."""
    stops = request.get("stop", [])
    return [stops] if isinstance(stops, str) else stops


def score_of_drawn(token_id: int) -> dict[str, Any]:
    """Where all of `SAMPLED` may stand; the most likely one is the first there."""
    text, names = decode(token_id), list(SAMPLED)
    logprobs = [math.log(probability) for probability in SAMPLED.values()]
    return {
        "token_id": token_id,
        "text": text,
        "logprob": logprobs[names.index(text)],
        "rank": names.index(text) + 1,
        "argmax_token_id": encode(names[0])[0],
        "argmax_text": names[0],
        "argmax_logprob": logprobs[0],
        "top_logprobs": logprobs,
    }


def counters(num_drafts: int, *, accepted: int, drafted: int) -> dict[str, Any]:
    """Every draft has `drafted` tokens, of which the first `accepted` are taken."""
    return {
        "num_drafts": num_drafts,
        "num_draft_tokens": num_drafts * drafted,
        "num_accepted_tokens": num_drafts * accepted,
        "num_accepted_tokens_per_pos": [
            num_drafts if position < accepted else 0 for position in range(drafted)
        ],
    }


def total(counted: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
    per_pos = [each["num_accepted_tokens_per_pos"] for each in counted]
    return {
        **{name: sum(each[name] for each in counted) for name in names},
        "num_accepted_tokens_per_pos": [sum(position) for position in zip(*per_pos, strict=True)],
    }


def log(**facts: Any) -> None:
    """One line in one write, so that two engines do not mix theirs."""
    path = os.environ.get("FAKE_ENGINE_LOG")
    if path is None:
        return
    line = json.dumps({"pid": os.getpid(), "time_s": time.monotonic(), **facts}) + "\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)


def num_loads_before(role: str) -> int:
    """Engines of the role that were loaded before, in all sessions of the log."""
    from pathlib import Path

    lines = Path(os.environ["FAKE_ENGINE_LOG"]).read_text().splitlines()
    return sum((each["op"], each["role"]) == ("load", role) for each in map(json.loads, lines))


def serve(commands: TextIO, replies: TextIO) -> None:
    def send(**message: Any) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    engine = FakeEngine()
    log(op="start", role=None, visible=os.environ.get("CUDA_VISIBLE_DEVICES"))
    for line in commands:
        command = json.loads(line)
        if command["op"] == "shutdown":
            log(op="end", role=engine.role)
            return
        try:
            send(result=engine.answer(command, send))
        except Refusal as refusal:
            kind, message = refusal.args
            send(error={"kind": kind, "message": message})


def main() -> None:
    commands_fd, replies_fd = (int(argument) for argument in sys.argv[2:4])
    with os.fdopen(commands_fd) as commands, os.fdopen(replies_fd, "w") as replies:
        serve(commands, replies)


if __name__ == "__main__":
    main()
