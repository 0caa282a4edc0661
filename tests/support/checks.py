"""What `doctor` found, by code."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from adapter.kafka import passport
from apiservice.commands import doctor, reading
from apiservice.doctor.check import Category, Check, Outcome
from apiservice.flags import DoctorFlags
from local.processes import wait_until

WAIT_SECONDS = 120.0
CALL_SECONDS = 20.0
"""In which a broker answers also on a busy machine."""


def outcomes(checks: Iterable[Check], *asked: Outcome) -> dict[str, str]:
    """Code -> the detail of its last check with such an outcome."""
    return {check.code.name: check.detail for check in checks if check.outcome in asked}


def broken(checks: Iterable[Check]) -> dict[str, str]:
    return outcomes(checks, Outcome.FAILED)


def wait_for(find: Callable[[], list[Check]], holds: Callable[[dict[str, str]], bool], what: str) -> dict[str, str]:
    """Returns what is broken once it is what is waited for."""
    seen: list[dict[str, str]] = []

    def is_found() -> bool:
        seen.append(broken(find()))
        return holds(seen[-1])

    wait_until(is_found, what, WAIT_SECONDS)
    return seen[-1]


def of(checks: Iterable[Check], code: str) -> list[Check]:
    return [check for check in checks if check.code.name == code]


def examined(
    folder: Path,
    settings: object,
    *categories: Category,
    patience: float = 120.0,
    **flags: Any,  # noqa: ANN401 - as on the command line
) -> list[Check]:
    """What `doctor` finds in this process with these settings, which are as in the file.

    `patience`: the seconds after which a cluster counts that can be read only in part."""
    file = folder / "settings.yaml"
    file.write_text(yaml.safe_dump(settings))
    given = DoctorFlags(config=file, category=[each.value for each in categories] or None, **flags)
    with (
        mock.patch.object(reading, "PATIENCE_SECONDS", patience),
        mock.patch.object(reading, "FAILED_SECONDS", patience),
        mock.patch.object(passport.meet, "__defaults__", (CALL_SECONDS,)),
    ):
        return doctor.checks_of(given)
