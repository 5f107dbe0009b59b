"""What a session says before its first test: what is gated, with what, on what. Floor 5."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_specdec.options import Options
from pytest_specdec.profile_gate import ProfileGate


def header_line(gate: ProfileGate, root: Path) -> str:
    """One profile; its vLLM is known once its engines have started."""
    versions = gate.pair.versions
    beside = f" (baseline engine: {own})" if (own := versions.get("baseline_vllm")) else ""
    engine = f"vLLM {versions['vllm']}{beside}, torch {versions['torch']}" if versions else "vLLM -"
    session = f"profile {gate.profile.name}; {engine}; {gate.hardware}"
    if gate.options.is_worth_it:
        return session
    folder = relative(gate.options.baselines_folder / gate.hardware.key, root)
    elsewhere = "" if gate.stored else f" ({_elsewhere(gate)})"
    return f"{session}; stored baselines: {folder}{elsewhere}"


def folder_lines(options: Options, root: Path) -> Iterator[str]:
    """Where recordings go, or come from."""
    for verb, path in (
        ("recorded to", options.record_folder),
        ("replayed from", options.replay_folder),
    ):
        if path is not None:
            yield f"{verb}: {relative(path, root)}"


def relative(path: Path, root: Path) -> str:
    """As it is told: from the project's folder, where it lies in it."""
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _elsewhere(gate: ProfileGate) -> str:
    """What is stored for a profile that has nothing stored on this hardware."""
    others = gate.stored_numbers.hardware_keys
    return "none for this profile" + (f"; there are for: {', '.join(others)}" if others else "")
