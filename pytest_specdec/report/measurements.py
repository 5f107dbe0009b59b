"""Imported measurements as JSON, in this project's own names; what is not known is `null`.

Floor 4.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from pytest_specdec.imports.imported import ImportedMeasurement


def measurements_json(measurements: Sequence[ImportedMeasurement]) -> str:
    """The text: a list, an object a measurement."""
    return json.dumps([asdict(each) for each in measurements], indent=2, allow_nan=False) + "\n"
