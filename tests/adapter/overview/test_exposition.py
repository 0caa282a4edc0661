"""Lines of Prometheus's text format: each has its own labels and its own number, as Python would write it."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.columns import LARGEST_OFFSET
from adapter.overview.exposition import LINES_AT_ONCE, labels_of, lines_of

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20)
WHOLE = st.integers(-LARGEST_OFFSET, LARGEST_OFFSET).map(float)
DECIMAL = st.integers(-(10**12), 10**12).map(lambda milli: milli / 1000)
NOT_FINITE = st.sampled_from([float("nan"), float("inf"), float("-inf")])


def written(texts: list[str], values: list[float]) -> list[str]:
    text = b"".join(lines_of("lag", labels_of(texts), np.array(values, dtype=np.float64))).decode()
    return text.split("\n")[:-1]


@pytest.mark.parametrize("values", [WHOLE, DECIMAL, st.one_of(DECIMAL, NOT_FINITE), st.one_of(WHOLE, NOT_FINITE)])
@settings(max_examples=40)
@given(data=st.data())
def test_each_finite_value_is_on_a_line_with_its_labels(values: st.SearchStrategy[float], data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(TEXTS, values), max_size=30))
    expected = [(text, value) for text, value in pairs if np.isfinite(value)]
    found = [line.rpartition(" ") for line in written([text for text, _ in pairs], [value for _, value in pairs])]

    assert [before for before, _, _ in found] == [f"lag{{{text}}}" for text, _ in expected]
    assert [float(number) for _, _, number in found] == [value for _, value in expected]


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ([0.0, 7.0, 1200.0], ["0", "7", "1200"]),
        ([0.0, 0.0005, 12.25, -0.001], ["0.000", "0.000", "12.250", "-0.001"]),
        ([float(2**53), 0.5], [str(2**53), "0"]),
    ],
    ids=["whole numbers", "thousandths", "numbers that have no thousandths"],
)
def test_a_number_has_as_many_decimals_as_its_neighbours_need(values: list[float], numbers: list[str]) -> None:
    assert [line.split()[-1] for line in written(["a"] * len(values), values)] == numbers


def test_lines_come_a_limited_number_at_a_time_and_all_of_them() -> None:
    texts = [f'partition="{number}"' for number in range(2 * LINES_AT_ONCE + 1)]
    pieces = list(lines_of("lag", labels_of(texts), np.arange(len(texts), dtype=np.float64)))

    assert list(accumulate(piece.count(b"\n") for piece in pieces)) == [LINES_AT_ONCE, 2 * LINES_AT_ONCE, len(texts)]
    assert b"".join(pieces).decode().splitlines() == [f"lag{{{text}}} {n}" for n, text in enumerate(texts)]
