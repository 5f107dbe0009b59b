"""The exceptions of this package, all raised with a message a person can act on.

    SpecdecError
    |-- ConfigError             a value in `specdec.toml` or in an option is wrong
    |   `-- ModelError          a model folder is missing, or target and draft do not fit together
    |-- WorkloadError           a `.jsonl` workload cannot be read
    |-- StoredBaselineError     a file under `baselines/` cannot be read, or an update is refused
    |-- RecordingError          a recording cannot be read or written, or is not of what is asked
    |-- ReportError             a saved report.json cannot be read, or a report not be written
    |-- HardwareError           the accelerator a profile or an option asks for is not here
    |-- ImportFileError         what another tool wrote cannot be read as a measurement
    `-- EngineError             an engine did not do what it was asked
        |-- EngineUnavailable   the interpreter cannot import vLLM
        |-- EngineStartError    the engine did not load
        |-- EngineDied          the engine's process ended
        |-- EngineTimeout       the engine fell silent, or takes longer than it may
        |-- RequestRefused      vLLM does not take a request; the engine goes on
        |-- CircumstanceUnsupported  the engine cannot be brought there; it goes on
        `-- NotRecorded         the engine was not asked this when its answers were recorded

and two warnings, `InconclusiveWarning` and `BenchmarkWarning`.

A message states the fact first, then what to do on a line of its own that begins `hint:`.
Floor 0: imports nothing from the package.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SpecdecError(Exception):
    """The root; `str` of it is the whole message, hint included.

    Args:
        message: the fact, in one or a few lines.
        hint: what to do next; printed on its own line.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")


class ConfigError(SpecdecError):
    """A value in `specdec.toml` or in an option is wrong."""


class ModelError(ConfigError):
    """A model folder is missing, or target and draft do not fit together."""


class WorkloadError(SpecdecError):
    """A `.jsonl` workload cannot be read."""


class StoredBaselineError(SpecdecError):
    """A file under `baselines/` cannot be read, or an update is refused."""


class RecordingError(SpecdecError):
    """A recording cannot be read or written, or is not of what is asked of it."""


class ReportError(SpecdecError):
    """A saved `report.json` cannot be read, or a report cannot be written."""


class HardwareError(SpecdecError):
    """The accelerator that a profile or an option asks for is not here."""


class ImportFileError(SpecdecError):
    """A file that another tool wrote cannot be read as a measurement."""


class EngineError(SpecdecError):
    """An engine did not do what it was asked."""


class EngineUnavailable(EngineError):
    """The chosen interpreter cannot import vLLM."""


class EngineStartError(EngineError):
    """The engine did not load."""


class EngineDied(EngineError):
    """The engine's process ended."""


class EngineTimeout(EngineError):
    """The engine fell silent for longer than it may, or took longer than it may."""


class RequestRefused(EngineError):
    """vLLM does not take a request; the engine is unharmed."""


class CircumstanceUnsupported(EngineError):
    """The engine cannot be brought under a circumstance that a workload names."""


class NotRecorded(EngineError):
    """The engine was not asked this when its answers were recorded."""


# After one of these no engine of the pair can be asked again; a refused request is not among them.
FATAL = (ConfigError, EngineUnavailable, EngineStartError, EngineDied, EngineTimeout)


class InconclusiveWarning(UserWarning):
    """A verdict is `inconclusive`, and its test is skipped by `--specdec-inconclusive=warn`."""


class BenchmarkWarning(UserWarning):
    """The installed pytest-benchmark cannot be given the times of the engines' passes."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for the unknown `name`: the nearest known name, or all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return "known here: " + ", ".join(f"`{known_name}`" for known_name in names)
