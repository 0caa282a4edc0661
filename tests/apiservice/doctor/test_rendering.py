"""How checks are shown: as lines, as JSON, and as a status."""

import json
import subprocess
import sys

import pytest

from apiservice.doctor import codes
from apiservice.doctor.check import Check, failed, passed, skipped, warned
from apiservice.doctor.rendering import document_of, lines_of, status_of

GOOD = [passed(codes.NAMES, "kafka-0:9092"), passed(codes.NAMES, "kafka-1:9092")]
WARNED = warned(codes.QUIRKS, "broker 1", "it is old")
BAD = failed(codes.PORTS, "kafka-0:9092", "it refuses the connection")
NOWHERE = ("--bootstrap-servers", "127.0.0.1:1")


def shown(*checks: Check) -> list[str]:
    return "\n".join(line.plain for line in lines_of(checks)).splitlines()


def test_what_holds_is_one_line_for_all_subjects() -> None:
    assert shown(*GOOD)[:3] == [
        "kafka",
        "-----",
        "√ KLA201 host names of bootstrap servers resolve (kafka-0:9092, kafka-1:9092)",
    ]


def test_what_fails_is_followed_by_what_was_found_what_to_do_and_the_page() -> None:
    lines = shown(BAD)

    assert lines[2].endswith("KLA202 bootstrap servers accept connections (kafka-0:9092)")
    assert lines[2].startswith(("\N{MULTIPLICATION SIGN} ",))
    assert [line.strip() for line in lines[3:6]] == [BAD.detail, codes.PORTS.remedy, "docs/codes/KLA202.md"]


def test_the_last_line_counts_the_outcomes() -> None:
    assert shown(*GOOD, WARNED, BAD, skipped(codes.TLS, "", "KLA202 failed"))[-1] == (
        "√ 2 ok, ‼ 1 warning, \N{MULTIPLICATION SIGN} 1 failed, - 1 skipped"
    )


def test_the_words_of_others_stay_on_one_line_without_colours() -> None:
    lines = shown(failed(codes.PORTS, "a\nb", "it says\n\x1b[31mred"))

    assert "it says [31mred" in lines[3]
    assert "(a b)" in lines[2]


@pytest.mark.parametrize(("checks", "status"), [([WARNED, BAD], "failed"), ([*GOOD, WARNED], "warning"), (GOOD, "ok")])
def test_the_status_is_the_worst_outcome(checks: list[Check], status: str) -> None:
    assert status_of(checks) == status
    assert document_of(checks)["status"] == status


def test_a_category_that_was_not_checked_is_one_line() -> None:
    lines = shown(*(skipped(code, "", "no --config") for code in (codes.NAMES, codes.PORTS)))

    assert lines[:4] == ["kafka", "-----", "- no --config", ""]


def run(*flags: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "apiservice", "doctor", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_ends_with_status_1_if_a_check_fails_and_prints_json_if_asked() -> None:
    ended = run(*NOWHERE, "--output", "json", "--category", "kafka")

    assert (ended.returncode, ended.stderr) == (1, "")
    document = json.loads(ended.stdout)
    assert document["status"] == "failed"
    (found,) = (each for each in document["checks"] if each["outcome"] == "failed")
    assert found == {
        "code": "KLA202",
        "category": "kafka",
        "outcome": "failed",
        "claim": codes.PORTS.claim,
        "subject": "127.0.0.1:1",
        "detail": "bootstrap server 127.0.0.1:1 refuses the connection",
        "remedy": codes.PORTS.remedy,
        "link": "docs/codes/KLA202.md",
    }


def test_the_command_ends_with_status_0_if_nothing_fails() -> None:
    ended = run("--category", "settings")

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "skipped" in ended.stdout.splitlines()[-1]


def test_an_unknown_category_is_one_sentence() -> None:
    ended = run("--category", "kafkas")

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("kafka-lag-adapter: --category: 'kafkas' is not one of settings, kafka")
