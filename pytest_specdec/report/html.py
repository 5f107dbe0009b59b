"""`report.html`: one page that needs nothing else, made of what `report.json` holds.

No script is in it, and its Content-Security-Policy lets none run and nothing load, whatever a model
wrote; beside that, every value is escaped on its way in. `jinja2` is imported on use. Floor 4.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pytest_specdec.report.excerpt import excerpt, visible
from pytest_specdec.report.figures import decimal
from pytest_specdec.report.page import page
from pytest_specdec.report.told import COLUMNS, OWN_COLUMNS, SEVERITIES
from pytest_specdec.report.told_worth_it import COST_COLUMNS

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = "templates"


def html_page(data: Mapping[str, Any]) -> str:
    """The page's text."""
    template = _environment().get_template("report.html.j2")
    return template.render(
        view=page(data),
        columns=COLUMNS,
        own_columns=OWN_COLUMNS,
        cost_columns=COST_COLUMNS,
        style=_style(),
        policy=_policy(),
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pytest_specdec.report", TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_seen,
    )
    environment.filters |= {
        "asked": _asked,
        "decimal": decimal,
        "excerpt": excerpt,
        "meaning": lambda severity: SEVERITIES[severity],
        "px": lambda value: f"{value:.1f}",
        "share": lambda value: f"{value:.0%}",
        "shortened": lambda text, limit: text if len(text) <= limit else f"{text[: limit - 1]}…",
    }
    return environment


def _seen(value: Any) -> Any:
    """What a model wrote, with what cannot be seen made visible; markup is ours and as it was."""
    return visible(value) if type(value) is str else value


@cache
def _style() -> Any:
    from markupsafe import Markup

    css = files("pytest_specdec.report").joinpath(TEMPLATES, "report.css")
    return Markup(css.read_text(encoding="utf-8"))  # noqa: S704  # a file of ours


def _policy() -> str:
    """Nothing but the one style that is ours, known by its digest."""
    digest = base64.b64encode(hashlib.sha256(str(_style()).encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _asked(request: Mapping[str, Any]) -> str:
    """A request as people read it: the messages, then the rest of it."""
    lines = [
        f"{each.get('role')}: {_text(each.get('content'))}" for each in request.get("messages", ())
    ]
    rest = {key: value for key, value in request.items() if key != "messages"}
    return "\n".join([*lines, *([_text(rest)] if rest else [])])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
