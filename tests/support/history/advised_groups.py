"""Groups as advice sees them, and what it finds of them."""

import dataclasses

import numpy as np

from spark.advice.finding import Finding
from spark.advice.hpa import advice_for
from spark.figures.model import Group, Periods
from tests.support.history.report_groups import group, topic


def finding(of: Group, code: str) -> Finding | None:
    return next((it for it in advice_for(of).findings if it.code == code), None)


def changed(of: Periods, **columns: float) -> Periods:
    return dataclasses.replace(of, **{name: np.full(len(of), value) for name, value in columns.items()})


def read(of: Periods, **given: object) -> Group:
    return dataclasses.replace(group("billing", topic(of=of)), **given)  # type: ignore[arg-type]  # test's own words
