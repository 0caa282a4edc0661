import json
import logging

from apiservice.logs import EventFormatter, JsonFormatter


def test_control_characters_of_others_begin_no_line_of_the_log_and_reach_no_terminal() -> None:
    record = logging.makeLogRecord(
        {"levelname": "WARNING", "name": "tokens", "msg": "no\n2026 INFO: forged\x85x\x1b[2J"}
    )
    error = ValueError("said\n2026 INFO: forged\x1b[2J")
    record.exc_info = (ValueError, error, None)
    first, *others = EventFormatter().format(record).splitlines()

    assert first.endswith(" WARNING tokens: no 2026 INFO: forged x [2J")
    assert others
    assert all(line.startswith("  ") and line.isprintable() for line in others)


def test_a_line_of_json_has_its_keys_and_counts_repeats() -> None:
    record = logging.LogRecord("adapter", logging.WARNING, "", 0, "no\n%s", ("forged",), None)
    record.created, record.msecs = 1_795_261_709.75, 750.0
    formatter = JsonFormatter()
    first, second = (json.loads(formatter.format(record)) for _ in range(2))

    assert first == {
        "time": "2026-11-21T11:48:29.750Z",
        "level": "warning",
        "logger": "adapter",
        "message": "no forged",
        "count": 1,
    }
    assert second == first | {"count": 2}


def test_json_has_an_error_with_its_traceback_in_one_line() -> None:
    record = logging.LogRecord("adapter", logging.ERROR, "", 0, "failed", (), None)
    record.exc_info = (ValueError, ValueError("said"), None)
    line = JsonFormatter().format(record)

    assert "\n" not in line
    assert "ValueError: said" in json.loads(line)["exception"]
