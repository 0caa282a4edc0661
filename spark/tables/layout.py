"""Where the tables lie, relative to the history's location. No other module spells these paths.

<location>/samples/date=YYYY-MM-DD/hour=HH/<writer>-<first sample, UTC>.parquet
<location>/autoscalers/date=YYYY-MM-DD/<writer>-<time, UTC>.json
<location>/hours/date=YYYY-MM-DD/hour=HH/    deltas, totals, partitions, summary, per_minute and carry .parquet, or of
                                              a large hour -00.parquet, -01.parquet, …; _record.json
<location>/hourly/date=YYYY-MM-DD/           hourly.parquet, _record.json
<location>/daily/YYYY-MM-DD.parquet
<location>/minutes/YYYY-MM-DD.parquet

A compacted hour has every one of its files, also those without a row, and keeps their names when it is made again: so
`hours/*/*/deltas*.parquet` finds each row once.
"""

import re
from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SAMPLES, HOURS, HOURLY, DAILY, MINUTES = "samples", "hours", "hourly", "daily", "minutes"
AUTOSCALERS = "autoscalers"
DELTAS, TOTALS, PARTITIONS, SUMMARY, CARRY = "deltas", "totals", "partitions", "summary", "carry"
PER_MINUTE = "per_minute"
TABLES_OF_AN_HOUR = (DELTAS, TOTALS, PARTITIONS, SUMMARY, PER_MINUTE, CARRY)
OF_TABLE = re.compile(r"(-\d+)?\.parquet")
"""What comes after the table in the name of a file."""
RECORD = "_record.json"
"""Says what a folder's tables were made from. Spark's readers of whole folders ignore such a name."""


def hour_name(start: datetime) -> str:
    """`date=2026-11-20/hour=07`, below `samples` and `hours`."""
    return f"{start:date=%Y-%m-%d/hour=%H}"


def start_of(name: str) -> datetime | None:
    """`date=2026-11-20/hour=07` -> its start. None: not an hour's name, or a year before 1970."""
    try:
        start = datetime.strptime(name, "date=%Y-%m-%d/hour=%H").replace(tzinfo=UTC)
    except ValueError:
        return None
    return start if start >= EPOCH and hour_name(start) == name else None


def start_of_day(day: str) -> datetime | None:
    """`2026-11-20` -> its start."""
    return start_of(f"date={day}/hour=00")


def samples_folder(hour: str) -> str:
    """`hour`, here and below: an hour's name, `date=…/hour=…`."""
    return f"{SAMPLES}/{hour}"


def hour_folder(hour: str) -> str:
    return f"{HOURS}/{hour}"


def hour_of(path: str) -> str:
    """The hour's name of a folder or file below `samples` or `hours`: `hours/date=…/hour=…/deltas.parquet`."""
    return "/".join(path.split("/")[1:3])


def table_files(table: str, parts: int) -> list[str]:
    """Names of a table's files, in the order of the topics in them. `table`: one of TABLES_OF_AN_HOUR."""
    return [f"{table}.parquet"] if parts == 1 else [f"{table}-{part:02}.parquet" for part in range(parts)]


def hour_tables(hour: str, table: str, parts: int) -> list[str]:
    """Paths of these files."""
    return [f"{hour_folder(hour)}/{name}" for name in table_files(table, parts)]


def is_of_table(file_name: str, table: str) -> bool:
    """Whether a file in an hour's folder belongs to the table."""
    return file_name.startswith(table) and OF_TABLE.fullmatch(file_name.removeprefix(table)) is not None


def day_of(hour: str) -> str:
    """`date=2026-11-20/hour=07` -> `2026-11-20`."""
    return hour.partition("/")[0].removeprefix("date=")


def hourly_folder(day: str) -> str:
    """`day`, here and below: `2026-11-20`."""
    return f"{HOURLY}/date={day}"


def hourly_table(day: str) -> str:
    return f"{hourly_folder(day)}/{HOURLY}.parquet"


def daily_table(day: str) -> str:
    return f"{DAILY}/{day}.parquet"


def minutes_table(day: str) -> str:
    return f"{MINUTES}/{day}.parquet"
