"""The site is made without a warning: links that lead nowhere, pages that no other page names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.docs.test_reference import DOCS


def test_the_site_is_made_without_a_warning(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    made = subprocess.run(
        [*build, "-d", str(tmp_path / "read"), str(DOCS), str(tmp_path / "site")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.stderr, made.returncode) == ("", 0)
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert all((tmp_path / "site" / page).exists() for page in pages)
