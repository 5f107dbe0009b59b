"""What the command line, the ini file and the environment ask for; read once. Floor 5.

Imported by every pytest session that has the plugin installed, so it imports next to nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

UPDATE_CHOICES = ("all", "new")
INCONCLUSIVE_CHOICES = ("fail", "warn")
RECORDINGS = {
    "record": "folder for recordings of what the engines say, to be judged again without them",
    "replay": "folder of recordings to judge again, without engines and without a GPU",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One session's wishes.

    Attributes:
        is_gpu: `--specdec-gpu`.
        update: which stored numbers to write: `all`, `new` (missing ones only) or none.
        update_in_ci: whether that is meant even in CI.
        profile_names: profiles asked for by name.
        python: the interpreter that has vLLM.
        config_file: `specdec.toml`.
        suite_folders: where `.jsonl` files are workloads.
        baselines_folder: where stored baselines lie.
        report_folder: where the reports and the engines' logs go.
        inconclusive: what such a verdict does; `None`: it fails a gate and skips elsewhere.
        strict_baselines: whether stored workloads that no test asks for fail a test of their own.
        is_ci: whether this is a CI environment.
        record_folder: where recordings of this session go, if anywhere.
        replay_folder: where recordings are that are judged again, without engines.
        is_on_recordings: whether the command line, rather than the ini file, names one of them.
        is_worth_it: whether the session asks where speculation pays, instead of gating it.
    """

    is_gpu: bool
    update: Literal["all", "new"] | None
    update_in_ci: bool
    profile_names: tuple[str, ...]
    python: Path
    config_file: Path
    suite_folders: tuple[Path, ...]
    baselines_folder: Path
    report_folder: Path
    inconclusive: Literal["fail", "warn"] | None
    strict_baselines: bool
    is_ci: bool
    record_folder: Path | None = None
    replay_folder: Path | None = None
    is_on_recordings: bool = False
    is_worth_it: bool = False

    @property
    def is_explicit(self) -> bool:
        """Whether an option, rather than a suite's mere presence, asks for engines."""
        is_asked = self.is_gpu or self.is_on_recordings or self.update is not None
        return is_asked or self.is_worth_it or bool(self.profile_names)

    @property
    def is_strict(self) -> bool:
        """Whether this is a gate, where what could not be decided fails."""
        return self.is_gpu or self.is_ci or bool(self.profile_names)

    @property
    def update_command(self) -> str:
        """The command that records what this session measured."""
        chosen = [f"--specdec-profile {name}" for name in self.profile_names]
        gpu = ["--specdec-gpu"] if self.is_gpu else []
        folder = self.suite_folders[0].name if self.suite_folders else ""
        return " ".join(["pytest", folder, *gpu, *chosen, "--update-baselines"])

    @classmethod
    def from_pytest_config(cls, config: pytest.Config) -> Options:
        from pytest_specdec.profile import interpreter

        root = config.rootpath

        def setting(option: str, ini: str) -> str:
            given = config.getoption(option)
            return str(given if given is not None else config.getini(ini))

        recordings = {name: root / each for name, each in _recordings(config).items()}
        is_worth_it = config.getoption("specdec_worth_it")
        if is_worth_it:
            _check_worth_it(config, recordings)
        return cls(
            is_gpu=config.getoption("specdec_gpu"),
            update=config.getoption("update_baselines"),
            update_in_ci=config.getoption("update_baselines_in_ci"),
            profile_names=tuple(dict.fromkeys(config.getoption("specdec_profile_option") or ())),
            python=interpreter(setting("specdec_python_option", "specdec_python"), root),
            config_file=root / str(config.getini("specdec_config")),
            suite_folders=tuple(root / each for each in config.getini("specdec_suites")),
            baselines_folder=root / setting("specdec_baselines_option", "specdec_baselines"),
            report_folder=root / setting("specdec_report_option", "specdec_report"),
            inconclusive=config.getoption("specdec_inconclusive_option")
            or _inconclusive_ini(str(config.getini("specdec_inconclusive") or "")),
            # Where no stored number is read, none is unused.
            strict_baselines=not is_worth_it
            and (
                config.getoption("specdec_strict_baselines_option")
                or config.getini("specdec_strict_baselines")
            ),
            is_ci=os.environ.get("CI", "").lower() not in {"", "0", "false"},
            record_folder=recordings.get("record"),
            replay_folder=recordings.get("replay"),
            is_on_recordings=bool(_given(config)),
            is_worth_it=is_worth_it,
        )


def add_options(parser: pytest.Parser) -> None:
    """Declares the options and their ini twins."""
    group = parser.getgroup("specdec", "gate for speculative decoding in vLLM")
    group.addoption(
        "--specdec-gpu",
        action="store_true",
        help="gate the GPU profile; without a GPU it accepts this is an error, never a skip",
    )
    group.addoption(
        "--specdec-profile",
        dest="specdec_profile_option",
        action="append",
        metavar="NAME",
        help="gate this profile of specdec.toml; may be given again for another one",
    )
    group.addoption(
        "--specdec-worth-it",
        action="store_true",
        help="ask whether speculation pays, instead of gating it: each workload at each point of "
        "its sweep, and each of the profile's `worth_it.speculative_configs`",
    )
    group.addoption(
        "--update-baselines",
        nargs="?",
        const="all",
        type=_update_mode,
        metavar="all|new",
        help="write the measured numbers to the stored baselines: `all` (the default) replaces "
        "those of the workloads that ran, `new` only adds missing ones",
    )
    group.addoption(
        "--update-baselines-in-ci",
        action="store_true",
        help="let --update-baselines write in a CI environment too",
    )
    group.addoption(
        "--specdec-inconclusive",
        dest="specdec_inconclusive_option",
        type=_inconclusive,
        metavar="fail|warn",
        help="what an `inconclusive` verdict does: `fail` its test, or skip it and `warn`; unset: "
        "it fails a gate and skips elsewhere (ini: specdec_inconclusive)",
    )
    parser.addini(
        "specdec_inconclusive", "`fail` or `warn`: what an `inconclusive` verdict does", default=""
    )
    group.addoption(
        "--specdec-strict-baselines",
        dest="specdec_strict_baselines_option",
        action="store_true",
        help="add a test for each profile, which fails where a stored workload is one that no test "
        "asks for (ini: specdec_strict_baselines)",
    )
    parser.addini(
        "specdec_strict_baselines",
        "whether a stored workload that no test asks for fails a test of its own",
        type="bool",
        default=False,
    )
    for name, default, meaning in (
        ("python", sys.executable, "interpreter that has vLLM; pytest's own need not"),
        ("baselines", "baselines", "folder of the stored baselines"),
        ("report", ".specdec", "folder for the reports and the engines' logs"),
    ):
        group.addoption(
            f"--specdec-{name}",
            dest=f"specdec_{name}_option",
            metavar="PATH" if name == "python" else "DIR",
            help=f"{meaning} (ini: specdec_{name})",
        )
        parser.addini(f"specdec_{name}", f"{meaning}; relative to rootdir", default=default)
    for name, meaning in RECORDINGS.items():
        group.addoption(
            f"--specdec-{name}",
            dest=f"specdec_{name}_option",
            metavar="DIR",
            help=f"{meaning} (ini: specdec_{name})",
        )
        parser.addini(f"specdec_{name}", f"{meaning}; relative to rootdir", default="")
    parser.addini("specdec_config", "the file that holds the profiles", default="specdec.toml")
    parser.addini(
        "specdec_suites",
        "folders whose .jsonl files are workloads, relative to rootdir",
        type="args",
        default=["suites"],
    )


def _check_worth_it(config: pytest.Config, recordings: Collection[str]) -> None:
    """Refuses what `--specdec-worth-it` has no use for."""
    if config.getoption("update_baselines") is not None:
        raise pytest.UsageError(
            "`--specdec-worth-it` and `--update-baselines` contradict each other: points of a "
            "sweep are not stored\nhint: leave one of them out"
        )
    for name in recordings:
        raise pytest.UsageError(
            f"`--specdec-worth-it` and `--specdec-{name}` contradict each other: points of a "
            f"sweep are not recorded\nhint: leave one of them out; `-o specdec_{name}=` undoes the "
            "ini setting"
        )


def _given(config: pytest.Config) -> dict[str, str]:
    """The folders of recordings that the command line names."""
    named = {name: config.getoption(f"specdec_{name}_option") for name in RECORDINGS}
    return {name: str(folder) for name, folder in named.items() if folder}


def _recordings(config: pytest.Config) -> dict[str, str]:
    """The folders of recordings: those of the command line, or else those of the ini file."""
    ini = {name: str(config.getini(f"specdec_{name}")) for name in RECORDINGS}
    named = _given(config) or {name: folder for name, folder in ini.items() if folder}
    if len(named) > 1:
        raise pytest.UsageError(
            "`--specdec-record` and `--specdec-replay` contradict each other: what is replayed is "
            "recorded already\nhint: leave one of them out"
        )
    return named


def _update_mode(value: str) -> str:
    if value not in UPDATE_CHOICES:
        raise argparse.ArgumentTypeError(
            f"`{value}` is neither `all` nor `new`; put paths before the option, or write "
            "--update-baselines=all"
        )
    return value


def _inconclusive(value: str) -> str:
    if value not in INCONCLUSIVE_CHOICES:
        raise argparse.ArgumentTypeError(f"`{value}` is neither `fail` nor `warn`")
    return value


def _inconclusive_ini(value: str) -> Any:
    try:
        return _inconclusive(value) if value else None
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"ini setting `specdec_inconclusive`: {error}") from None
