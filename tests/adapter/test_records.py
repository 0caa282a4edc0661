import pytest

from adapter.records import records_of


class Place:
    taken: bool
    number: int
    seconds: float


class Sized:
    number: int
    size: int


def test_fields_of_a_record_are_written_in_the_array_that_holds_it() -> None:
    places = records_of(Place, 2, 3)
    places["number"] = 5
    place = places[1, 2]
    place.seconds, place.taken = 0.5, True

    assert places["seconds"].tolist() == [[0, 0, 0], [0, 0, 0.5]]
    assert (place.number, places["taken"].sum()) == (5, 1)


def test_a_field_that_python_could_not_read_is_refused() -> None:
    with pytest.raises(ValueError, match="Sized has fields with names of numpy's records: size"):
        records_of(Sized, 1)
