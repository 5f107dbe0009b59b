"""Parts of the Markdown, in which text is text.

What models and prompts said stands in `<pre>`, where Markdown is text, or with what may be markup
as entities, so that it can be neither markup nor a link nor a mention. Floor 4; pure.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

from pytest_specdec.report.excerpt import visible

# All that may be markup within a line, and what makes a link of an address.
_MARKUP = re.compile(r"""[&<>"'`*_\[\]|~\\#@!$]|:(?=//)|(?<=www)\.""", re.IGNORECASE)


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Of cells that are Markdown already."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def inline(text: Any) -> str:
    """One line that is text and nothing else. A mention is broken by a space of no width, since
    GitHub looks for those after Markdown."""
    line = " ".join(visible(str(text)).split())
    return _MARKUP.sub(lambda mark: f"&#{ord(mark[0])};", line).replace("&#64;", "&#64;\u200b")


def pre(text: str) -> str:
    """A blank line inside would end nothing: `<pre>` goes on to its end tag, which is escaped."""
    return f"<pre>{html.escape(visible(text))}</pre>\n"
