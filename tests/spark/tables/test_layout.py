import pytest

from spark.tables import layout


@pytest.mark.parametrize(
    "name", ["date=2026-13-01/hour=07", "date=2026-11-20/hour=24", "date=1969-12-31/hour=23", "date=2026-11-20", ""]
)
def test_a_name_of_no_hour_has_no_start(name: str) -> None:
    assert layout.start_of(name) is None
