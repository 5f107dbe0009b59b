"""What pytest's report of a test says: all that the controlling process of pytest-xdist has of it.

Floor 5.
"""

from __future__ import annotations

import re
from typing import Any

_MISSING = re.compile(r"file .*, line \d+\n(?:.*\n)*?E +(.+)")


def properties_of(report: Any) -> dict[str, Any]:
    """Those of its test; none of what is no test."""
    return dict(getattr(report, "user_properties", ()))


def reason_of(report: Any) -> str:
    """The failure's own text, without a traceback, or why it was skipped or expected to fail."""
    if (reason := getattr(report, "wasxfail", None)) is not None:
        return str(reason).removeprefix("reason: ")
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    # What has no such fixture begins with where it is; a worker sends the text of that alone.
    if (missing := _MISSING.match(str(report.longrepr))) is not None:
        return missing[1]
    # A failure that was asked for without a traceback is its text, and an exception has one beside
    # its traceback. `longreprtext` of either puts the worker of pytest-xdist first.
    style = getattr(getattr(report.longrepr, "reprtraceback", None), "style", "value")
    crash = None if style == "value" else report.longrepr.reprcrash
    return str(report.longrepr if crash is None else crash.message)
