"""Stand-in workers, which are given to ProcessEngine as its interpreter, and who still runs."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pytest_specdec.profile import Profile, Timeouts

PRELUDE = """
import json, os, signal, subprocess, sys, time

commands = os.fdopen(int(sys.argv[2]))
replies = int(sys.argv[3])
command = {}

def take():
    global command
    command = json.loads(commands.readline())
    return command

def say(text):
    os.write(replies, text.encode() + b"\\n")

def reply(**message):
    say(json.dumps(message))

def greet():
    take()
    reply(result={"vllm": "1.2.3", "torch": "4.5", "python": "3", "cuda": None, "driver": None})

def load():
    greet()
    take()
    reply(result={"load_s": 1.5, "config": {"a": 1}})

def answer(token=7):
    return {"prompt_token_ids": [1], "token_ids": [token], "text": "t", "finish_reason": "length",
            "stop_reason": None, "step_tokens": [1], "ttft_ms": 1.0, "tpot_ms": None,
            "drafts": None}

def generate(token=7):
    reply(result={"generations": [answer(token) for _ in command["requests"]], "wall_s": 1.0,
                  "drafts": None})

def hang():
    while True:
        time.sleep(1000)
"""


def interpreter(folder: Path, body: str) -> Path:
    """An executable file that is told what a worker is told and does `body`."""
    path = folder / "interpreter"
    path.write_text(f"#!{sys.executable} -IS\n{PRELUDE}\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def profile(root: Path, **timeouts: float) -> Profile:
    """A profile with nothing of its own but how long things may take."""
    return Profile(
        name="small",
        root=root,
        device="cpu",
        model="m",
        speculative_config={"method": "ngram"},
        timeouts=Timeouts(**{"import_s": 20, "load_s": 20, "silence_s": 20, **timeouts}),
    )


def group(leader: int) -> list[int]:
    """The processes of a group that still run; ended ones that nobody has asked after do not."""
    running = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of_group = stat.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(of_group) == leader and state not in "ZX":
            running.append(int(stat.parent.name))
    return running


def group_ends(leader: int, *, within_s: float) -> bool:
    """Waits for the last process of a group to end."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not group(leader):
            return True
        time.sleep(0.02)
    return not group(leader)
