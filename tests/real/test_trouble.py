"""Real engines that are killed, stopped or told what they do not know: one clear error, and
nothing left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.engines.pair import EnginePair
from pytest_specdec.engines.process import ProcessEngine
from pytest_specdec.errors import ConfigError, EngineDied, EngineTimeout
from pytest_specdec.generation import ROLES
from pytest_specdec.profile import Profile, Timeouts
from pytest_specdec.workload import Prompt
from tests.engines.workers import group, group_ends
from tests.real.conftest import PROMPTS, Recorder, row, workload


def test_a_worker_that_is_killed_while_it_generates(small_profile: Profile, tmp_path: Path) -> None:
    class Killer(Recorder):
        """Kills the speculative engine at its first sign of work on a timed pass."""

        victim: int | None = None

        def progress(self, text: str) -> None:
            if self.victim is None and ": speculative engine, block " in text:
                self.victim = pair._engines["speculative"].pid
                os.kill(self.victim, signal.SIGKILL)

    watch = Killer()
    pair = EnginePair(
        small_profile, python=Path(sys.executable), log_folder=tmp_path / "logs", watch=watch
    )
    long = [row("story", PROMPTS["story"], max_tokens=64)]
    asked = workload(tmp_path, "long", long)
    leaders: list[int] = []
    try:
        for role in ROLES:
            pair.engine(role)
        leaders = [pair._engines[role].pid for role in ROLES]
        with pytest.raises(EngineDied) as caught:
            pair.run(asked)
        assert watch.victim == leaders[1]
        first, second, *tail = str(caught.value).splitlines()
        assert first == (
            "the speculative engine of profile `smollm2-ngram` died while generating: "
            "killed by SIGKILL; the system may be out of memory"
        )
        assert second == f"log: {tmp_path}/logs/smollm2-ngram-speculative.log"
        assert any("INFO" in line for line in tail)
        assert all(group_ends(leader, within_s=2) for leader in leaders)
        with pytest.raises(EngineDied, match=r"^not run, because earlier the speculative engine"):
            pair.run(asked)
        assert pair.num_starts == {"baseline": 1, "speculative": 1}
    finally:
        pair.close()


def test_unknown_arguments_are_refused_unloaded_and_a_stopped_engine_is_ended(
    small_profile: Profile, tmp_path: Path
) -> None:
    """In one test, so that vLLM is imported once."""
    profile = replace(small_profile, timeouts=Timeouts(silence_s=3))
    engine = ProcessEngine(
        profile, "speculative", python=Path(sys.executable), log_path=tmp_path / "engine.log"
    )
    right = profile.engine_arguments("speculative")
    config = {**right["speculative_config"], "num_speculative_token": 3}
    try:
        _is_refused_unloaded(
            engine,
            {**right, "max_modal_len": 9},
            "`max_modal_len` in `engine_args`\nhint: did you mean `max_model_len`?",
        )
        _is_refused_unloaded(
            engine,
            {**right, "speculative_config": config},
            "`num_speculative_token` in `speculative_config`\n"
            "hint: did you mean `num_speculative_tokens`?",
        )
        engine.check_names(right)
        engine.load()
        _is_ended_when_stopped(engine)
    finally:
        engine.close()


def _is_refused_unloaded(engine: ProcessEngine, wrong: Mapping[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        engine.check_names(wrong)
    assert str(caught.value) == f"profile `smollm2-ngram`: this vLLM does not know {told}"
    log = engine.log_path.read_text(encoding="utf-8", errors="replace")
    assert "Initializing" not in log


def _is_ended_when_stopped(engine: ProcessEngine) -> None:
    request = row("story", PROMPTS["story"], max_tokens=400)
    prompt = Prompt(id=request.pop("id"), request=request, json_schema=None, sql=None, line=1)
    leader, stopped = engine.pid, 0.0

    def stop(_: Mapping[str, int]) -> None:
        nonlocal stopped
        if not stopped:
            os.kill(leader, signal.SIGSTOP)
            stopped = time.monotonic()

    with pytest.raises(EngineTimeout) as caught:
        engine.generate([prompt], concurrency=1, progress=stop)
    assert 2.5 < time.monotonic() - stopped < 8
    first, second, *tail, hint = str(caught.value).splitlines()
    assert first == (
        "the speculative engine of profile `smollm2-ngram` was silent for 3 s while generating, "
        "and was ended"
    )
    assert second == f"log: {engine.log_path}"
    assert any("INFO" in line for line in tail)
    assert hint == "hint: if it is slow rather than hung, raise the profile's `timeouts`"
    assert not group(leader)
