from datetime import UTC, datetime

import pytest

from spark.tables import layout

SEVEN = datetime(2026, 11, 20, 7, tzinfo=UTC)
NAME = "date=2026-11-20/hour=07"


def test_an_hour_is_one_folder_with_fixed_names() -> None:
    assert [layout.hour_table(NAME, table) for table in layout.TABLES_OF_AN_HOUR] == [
        f"hours/{NAME}/deltas.parquet",
        f"hours/{NAME}/totals.parquet",
        f"hours/{NAME}/partitions.parquet",
        f"hours/{NAME}/summary.parquet",
        f"hours/{NAME}/carry.parquet",
    ]


def test_an_hour_s_name_is_found_in_any_path_below_it() -> None:
    assert layout.hour_of(layout.samples_folder(NAME)) == NAME
    assert layout.hour_of(layout.hour_table(NAME, layout.TOTALS)) == NAME
    assert (layout.hour_name(SEVEN), layout.start_of(NAME), layout.day_of(NAME)) == (NAME, SEVEN, "2026-11-20")


def test_a_day_has_its_hours_in_a_folder_and_itself_in_a_file() -> None:
    assert layout.hourly_table("2026-11-20") == "hourly/date=2026-11-20/hourly.parquet"
    assert layout.daily_table("2026-11-20") == "daily/2026-11-20.parquet"


@pytest.mark.parametrize(
    "name", ["date=2026-13-01/hour=07", "date=2026-11-20/hour=24", "date=1969-12-31/hour=23", "date=2026-11-20", ""]
)
def test_a_name_of_no_hour_has_no_start(name: str) -> None:
    assert layout.start_of(name) is None
