"""Puts the faults where a Python that has vLLM finds them, with nothing downloaded or built."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

KIT = Path(__file__).parent


def installed_kit(folder: Path) -> Path:
    """The folder with the kit in it, as an installer leaves it; name it in `PYTHONPATH`."""
    project = tomllib.loads((KIT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = project["name"].replace("-", "_")
    source, ignored = KIT / "src" / name, shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, folder / name, dirs_exist_ok=True, ignore=ignored)
    info = folder / f"{name}-{project['version']}.dist-info"
    info.mkdir(exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
