"""docs/lag.md names a test for every situation: the names are those of tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(\w+)::(\w+)`")
ON_A_REAL_BROKER = ("commits", "groups", "topics", "transactions", "throttled", "late", "brokers")


def path_of(name: str) -> Path:
    """As the page says where its short names are."""
    folder = ROOT / "tests"
    places = [folder / "end_to_end" / f"test_{prefix}{name}.py" for prefix in ("situations_", "group_", "faults_", "")]
    return next(path for path in (*places, folder / f"{name}.py") if path.exists())


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
