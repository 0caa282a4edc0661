"""Each code of `doctor` has its page, which says what it means, how to see it and how to mend it."""

import re
from pathlib import Path

import pytest

from apiservice.doctor.check import Category, Code
from apiservice.doctor.codes import CODES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_the_page_of_a_code_has_its_claim_and_all_its_parts(code: Code) -> None:
    lines = (ROOT / code.link).read_text().splitlines()

    assert lines[0] == f"# {code.name}: {code.claim}"
    assert [line for line in lines if line.startswith("## ")] == ["## How to see it", "## How to mend it"]
    assert all(any(text and not text.startswith("#") for text in part) for part in parts_of(lines))


def parts_of(lines: list[str]) -> list[list[str]]:
    headings = [at for at, line in enumerate(lines) if line.startswith("#")]
    return [lines[begin:end] for begin, end in zip(headings, [*headings[1:], len(lines)], strict=True)]


def test_no_page_is_left_of_a_code_that_is_gone() -> None:
    assert {path.stem for path in (ROOT / "docs/codes").iterdir()} == {code.name for code in CODES}


def test_codes_are_unique() -> None:
    names = [code.name for code in CODES]

    assert len(set(names)) == len(names)


def test_the_table_of_codes_has_all_of_them_by_category() -> None:
    table = (ROOT / "docs/doctor.md").read_text().partition("## Codes")[2]
    found = re.findall(r"\*\*(\w+)\*\*|\[(KLA\d+)\]", table)

    assert [category or code for category, code in found] == [
        each for category in Category for each in (category.value, *(c.name for c in CODES if c.category is category))
    ]


@pytest.mark.parametrize("code", [code.name for code in CODES])
def test_the_break_of_a_code_is_made_on_real_parts(code: str) -> None:
    files = (ROOT / "tests/end_to_end").rglob("test_*.py")

    assert any(f'"{code}"' in test for path in files for test in sources_about_doctor(path))


def sources_about_doctor(path: Path) -> list[str]:
    """Returns the source of each test in which doctor is run."""
    parts = re.split(r"^(?=def test_)", path.read_text(), flags=re.MULTILINE)
    return parts[1:] if "doctor" in parts[0] or "doctor" in path.name else []
