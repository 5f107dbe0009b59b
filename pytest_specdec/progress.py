"""Progress while engines load and generate, past pytest's capturing. Floor 5."""

from __future__ import annotations

import pytest


class TerminalWatch:
    """A line for each phase; on a terminal also how far it has come, on a line rewritten in place.

    Silent with `-q` and where there is no terminal reporter.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def phase(self, text: str) -> None:
        """Writes the phase on a line of its own."""
        self._write(text, is_final=True)

    def progress(self, text: str) -> None:
        """Rewrites the line at the bottom of a terminal; logs are spared it."""
        self._write(text, is_final=False)

    def _write(self, text: str, *, is_final: bool) -> None:
        plugins = self._config.pluginmanager
        reporter = plugins.get_plugin("terminalreporter")
        capture = plugins.get_plugin("capturemanager")
        if reporter is None or capture is None or reporter.verbosity < 0:
            return
        if not is_final and not reporter.isatty:
            return
        with capture.global_and_fixture_disabled():
            if is_final:
                reporter.write_line(f"specdec: {text}")
            else:
                reporter.rewrite(f"specdec: {text}", erase=True)
