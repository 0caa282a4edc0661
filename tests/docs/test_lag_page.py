"""docs/lag.md names a test for every situation: the names are those of tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(\w+)::(\w+)`")
ON_A_REAL_BROKER = ("commits", "groups", "topics", "transactions", "throttled", "late", "faults", "moves", "deposed")


def path_of(name: str) -> Path:
    """`test_…`: below tests/adapter; another name: on a real broker, below tests/end_to_end."""
    folder, file = ("adapter", name) if name.startswith("test_") else ("end_to_end", f"test_{name}")
    (path,) = (ROOT / "tests" / folder).rglob(f"{file}.py")
    return path


def test_every_test_that_the_page_names_exists() -> None:
    named = NAMED.findall((ROOT / "docs/lag.md").read_text())
    assert len(named) > 30

    missing = [f"{file}::{test}" for file, test in named if f"def {test}(" not in path_of(file).read_text()]

    assert missing == []


def test_every_test_of_a_situation_is_named_on_the_page() -> None:
    page = (ROOT / "docs/lag.md").read_text()
    tests = [
        test for name in ON_A_REAL_BROKER for test in re.findall(r"^def (test_\w+)\(", path_of(name).read_text(), re.M)
    ]
    assert len(tests) > 20

    assert [test for test in tests if test not in page] == []
