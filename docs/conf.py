"""How Sphinx makes the pages: `make docs`, with warnings as errors."""

from pytest_specdec import __version__

project = "pytest-specdec"
author = "the authors of pytest-specdec"
version = release = __version__

extensions = ["myst_parser"]
nitpicky = True
myst_heading_anchors = 3  # as on GitHub, so that one link serves both

html_theme = "furo"
html_title = f"pytest-specdec {release}"
html_copy_source = False
html_show_copyright = False
