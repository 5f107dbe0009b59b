"""The fenced blocks of the documentation, with the page and the line where each one begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent.parent
# What checks and verdicts say stands there as `text`, held to every character by `test_findings`
# and `test_verdicts`.
ELSEWHERE = ("docs/reference/findings", "docs/reference/verdicts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block.

    Attributes:
        page: relative to the repository.
        line: of its first fence, from 1.
        language: what stands behind the fence; empty where nothing does.
    """

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def assert_none(found: Iterable[object], what: str) -> None:
    """Fails with what was found that must not be there. (pytest explains asserts in test modules
    alone.)"""
    named = ", ".join(map(str, found))
    assert not named, f"{what}: {named}"


def pages() -> list[Path]:
    """Every page whose examples are run, relative to the repository."""
    return [
        Path("README.md"),
        Path("CONTRIBUTING.md"),
        Path("benchmarks/README.md"),
        *sorted(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")),
    ]


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """Those of a page, in order."""
    for token in MarkdownIt().parse(text):
        if token.type in {"fence", "code_block"} and token.map is not None:
            yield Block(page=page, line=token.map[0] + 1, language=token.info, text=token.content)


BLOCKS = [
    block
    for page in pages()
    for block in blocks_of(str(page), (ROOT / page).read_text(encoding="utf-8"))
    if not (block.language == "text" and block.page.startswith(ELSEWHERE))
]
