"""The kit as an engine's Python finds it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

from tests.faults.install import installed_kit


def test_the_plugin_is_found_by_its_entry_point(tmp_path: Path) -> None:
    folder = installed_kit(tmp_path / "kit")
    (kit,) = distributions(path=[str(folder)])
    (point,) = kit.entry_points
    assert kit.metadata["Name"] == "specdec-faults"
    assert (point.group, point.name) == ("vllm.general_plugins", "specdec_faults")


def test_it_can_be_installed_over_itself(tmp_path: Path) -> None:
    assert installed_kit(installed_kit(tmp_path)) == tmp_path
    assert len([*distributions(path=[str(tmp_path)])]) == 1


def test_nothing_is_touched_where_no_switch_is_set(tmp_path: Path) -> None:
    """Not even imported: vLLM need not be there."""
    code = (
        "import sys\n"
        "from importlib.metadata import entry_points\n"
        "(point,) = entry_points(group='vllm.general_plugins', name='specdec_faults')\n"
        "point.load()()\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('vllm', 'torch')]\n"
        "assert 'specdec_faults.drafts' not in sys.modules\n"
    )
    environment = {"PYTHONPATH": str(installed_kit(tmp_path))}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
