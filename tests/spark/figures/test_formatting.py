import math

import pytest

from spark.figures import formatting

SPACE = "\u202f"


def plain(text: str) -> str:
    return text.replace(SPACE, " ")


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, "0 %"),
        (0.0002, "< 0.1 %"),
        (0.0828, "8.3 %"),
        (0.1, "10 %"),
        (0.391, "39.1 %"),
        (0.618, "61.8 %"),
        (0.9996, "> 99.9 %"),
        (1.0, "100 %"),
        (math.nan, "unknown"),
    ],
)
def test_a_share_has_one_digit_after_the_point_and_is_never_rounded_to_all_or_nothing(share: float, shown: str) -> None:
    assert plain(formatting.share(share)) == shown


@pytest.mark.parametrize(
    ("least", "most", "shown"),
    [(1, 1, "1 member"), (2, 2, "2 members"), (0, 1, "0 to 1 members"), (1, 4, "1 to 4 members")],
)
def test_a_span_is_one_number_where_nothing_varies(least: float, most: float, shown: str) -> None:
    assert formatting.span(least, most, "member") == shown


def test_a_span_of_what_was_not_counted_is_unknown() -> None:
    assert formatting.span(math.nan, math.nan, "member") == "unknown members"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Stuck: it reads 1.5 /s. Look for it.", "Stuck: it reads 1.5 /s."),
        ("The cause is max.poll.interval.ms. Raise it.", "The cause is max.poll.interval.ms."),
        ("No end", "No end"),
    ],
)
def test_a_sentence_ends_at_a_full_stop_that_a_space_follows(text: str, first: str) -> None:
    assert formatting.first_sentence(text) == first


def test_an_axis_of_durations_has_one_unit() -> None:
    said = [formatting.short_duration(seconds) for seconds in (0, 15, 90, 5400, 43_200, 129_600)]

    assert said == ["0", "15\u202fs", "1.5\u202fmin", "1.5\u202fh", "12\u202fh", "1.5\u202fd"]
