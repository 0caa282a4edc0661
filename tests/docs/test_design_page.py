"""docs/design.md has a row for every module and package directly below the three packages."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.compile(r"^\| (`.+?`) \|", re.MULTILINE)


def named_in(page: str, package: str) -> Counter[str]:
    """The modules in the first columns of the tables below the package's headings."""
    sections = re.split(r"^##", page, flags=re.MULTILINE)
    own = "\n".join(section for section in sections if section.startswith(f"# {package}/"))
    return Counter(name for row in ROWS.findall(own) for name in re.findall(r"`(\w+)/?`", row))


@pytest.mark.parametrize("package", ["adapter", "apiservice", "spark"])
def test_every_module_has_its_place_on_the_page_and_none_is_there_that_is_gone(package: str) -> None:
    named = named_in((ROOT / "docs/design.md").read_text(), package)
    files = [*(ROOT / package).glob("*.py"), *(path.parent for path in (ROOT / package).glob("*/__init__.py"))]
    modules = Counter(path.stem for path in files if path.stem != "__init__")

    assert {"not on the page": list(modules - named), "gone, or there twice": list(named - modules)} == {
        "not on the page": [],
        "gone, or there twice": [],
    }
