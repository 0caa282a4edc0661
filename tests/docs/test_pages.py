"""The pages agree with each other and with the code: links lead somewhere, every page is on the landing page, and the
messages that docs/troubleshooting.md quotes are those of the code."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUOTED = re.compile(r"`([^`\n]*)`")
OURS = re.compile(r"^\| (`.+?`) \| .+\|$", re.MULTILINE)
ELSEWHERE = ("https://", "http://", "mailto:")


def anchors(page: Path) -> set[str]:
    """Returns the anchors of the page's headings on GitHub."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[tuple[str, Path, str]]:
    """Every link within the repository: as written, its file and its anchor."""
    for target in LINK.findall(page.read_text()):
        if not target.startswith(ELSEWHERE):
            file, _, anchor = target.partition("#")
            yield target, (page.parent / file if file else page), anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = [
        target
        for target, file, anchor in links(page)
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file))
    ]

    assert broken == []


def test_the_landing_page_lists_every_page() -> None:
    listed = (DOCS / "README.md").read_text()

    assert [page.name for page in DOCS.glob("*.md") if page.name not in listed] == []


@cache
def texts() -> tuple[str, ...]:
    """Every text in the code, with … for what is filled in."""
    trees = [ast.parse(path.read_text()) for name in ("adapter", "apiservice") for path in (ROOT / name).rglob("*.py")]
    return tuple(text for tree in trees for node in ast.walk(tree) if (text := text_of(node)))


def text_of(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def section(heading: str) -> str:
    page = (DOCS / "troubleshooting.md").read_text()
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("heading", ["404", "503"])
def test_every_quoted_message_is_one_of_the_codes(heading: str) -> None:
    quoted = [message for cell in OURS.findall(section(heading)) for message in QUOTED.findall(cell)]
    parts = {part for message in quoted for part in re.split(r":? *… *|: ", message) if len(part) > 8}

    assert len(quoted) > 5
    assert [part for part in parts if not any(part in text for text in texts())] == []
