"""The draft model of a profile as a plain engine of its own. Floor 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_specdec.engines.process import ProcessEngine
from pytest_specdec.engines.protocol import Watch
from pytest_specdec.profile import Profile

# What is said of the target's files is not so of the draft's.
OF_THE_TARGET = frozenset(
    {"quantization", "revision", "hf_overrides", "tokenizer", "tokenizer_revision"}
)
# What `speculative_config` says of the draft, by the names of engine arguments.
OF_THE_DRAFT: Mapping[str, str] = {
    "quantization": "quantization",
    "revision": "revision",
    "max_model_len": "max_model_len",
    "draft_tensor_parallel_size": "tensor_parallel_size",
}


def draft_profile(profile: Profile) -> Profile:
    """A profile whose baseline engine is the draft model alone.

    Raises:
        KeyError: the profile has no draft model.
    """
    config = profile.speculation("speculative") or {}
    own = {key: config[told] for told, key in OF_THE_DRAFT.items() if told in config}
    shared = {key: each for key, each in profile.engine_args.items() if key not in OF_THE_TARGET}
    return replace(
        profile,
        name=f"{profile.name}, its draft model alone",
        model=config["model"],
        engine_args={**shared, **own},
        baseline=None,
    )


class DraftAlone:
    """The draft model's engine, started when it is first asked for; not again where it failed.

    Args:
        python: the interpreter of the engine that it is held against.
        log_path: where its own output goes.
        watch: told what goes on.
    """

    def __init__(self, profile: Profile, *, python: Path, log_path: Path, watch: Watch) -> None:
        self._profile = profile
        self._python = python
        self._log_path = log_path
        self._watch = watch
        self._engine: ProcessEngine | None = None
        self._failure: Exception | None = None

    def engine(self, devices: Mapping[str, str]) -> ProcessEngine:
        """The loaded engine.

        Raises:
            SpecdecError: what kept it from loading, each time it is asked for.
        """
        if self._failure is not None:
            raise self._failure
        if self._engine is None:
            self._watch.phase("loading the draft model alone")
            try:
                self._engine = self._started(devices)
                self._engine.load()
            except Exception as error:
                self._failure = error
                self.close()
                raise
        return self._engine

    def close(self) -> None:
        """Ends it, if it runs."""
        if self._engine is not None:
            engine, self._engine = self._engine, None
            engine.close()

    def _started(self, devices: Mapping[str, Any]) -> ProcessEngine:
        return ProcessEngine(
            draft_profile(self._profile),
            "baseline",
            python=self._python,
            log_path=self._log_path,
            devices=devices,
        )
