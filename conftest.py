"""pytest takes plugins from the conftest file at the root alone."""

pytest_plugins = ["pytester"]
