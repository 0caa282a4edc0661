import string
import time
from collections.abc import Iterable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.metrics.requirement import Operator, Requirement
from apiservice.http.status import BadRequest
from apiservice.metrics_api.label_selector import parse

VALUE_RULE = "a valid label must be an empty string or consist of alphanumeric characters, "
P = "unable to parse requirement: "

INVALID = {
    "foo===": f"{P}found '=', expected: identifier",
    "x==a==b": "found '==', expected: ',' or 'end of string'",
    "!x=a": "found '=', expected: ',' or 'end of string'",
    "!x in (a)": "found 'in', expected: ',' or 'end of string'",
    "x=a b": "found 'b', expected: ',' or 'end of string'",
    "a in (xyz)b notin ()": "found 'b', expected: ',' or 'end of string'",
    "x,,y": "found ',', expected: identifier after ','",
    "x=a,": "found '', expected: identifier after ','",
    "a in (xyz),": "found '', expected: identifier after ','",
    ",x,y": "found ',', expected: !, identifier, or 'end of string'",
    "(": "found '(', expected: !, identifier, or 'end of string'",
    "=a": "found '=', expected: !, identifier, or 'end of string'",
    "!": f"{P}found '', expected: identifier",
    "!!x": f"{P}found '!', expected: identifier",
    "x nott in (y)": f"{P}found 'nott', expected: in, notin, =, ==, !=, gt, lt",
    "a (": f"{P}found '(', expected: in, notin, =, ==, !=, gt, lt",
    "x in": f"{P}found '' expected: '('",
    "x in (a": f"{P}found '', expected: ',' or ')'",
    "a in (xyz abc)": f"{P}found 'abc', expected: ',' or ')'",
    "a notin(": f"{P}found '', expected: ',', ')' or identifier",
    "a in (x,=)": f"{P}found '=', expected: ',', or identifier",
    "x<a": f"{P}values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an integer",
    "x>1.5": f"{P}values[0]: Invalid value: \"1.5\": for 'Gt', 'Lt' operators, the value must be an integer",
    "x>9223372036854775808": f'{P}values[0]: Invalid value: "9223372036854775808": for',
    f"x={'v' * 64}": f'{P}values[0][x]: Invalid value: "{"v" * 64}": must be no more than 63 bytes',
    "x=-a": f'{P}values[0][x]: Invalid value: "-a": {VALUE_RULE}',
    "x=a/b": f'{P}values[0][x]: Invalid value: "a/b": {VALUE_RULE}',
    "x=a||y=b": f'{P}values[0][x]: Invalid value: "a||y": {VALUE_RULE}',
    "x=ü": f'{P}values[0][x]: Invalid value: "ü": {VALUE_RULE}',
    "x=a\0": f'{P}values[0][x]: Invalid value: "a\\u0000": {VALUE_RULE}',
    'x="a"': f'{P}values[0][x]: Invalid value: "\\"a\\"": {VALUE_RULE}',
    "x in (b,-,a)": f'{P}values[0][x]: Invalid value: "-": {VALUE_RULE}',
    "x>-/": f"{P}[values[0]: Invalid value: \"-/\": for 'Gt', 'Lt' operators, the value must be an integer, values[0][",
    "-k=v": f'{P}<nil>: Invalid value: "-k": name part must consist of alphanumeric characters, ',
    "X.y/Z=1": f'{P}<nil>: Invalid value: "X.y/Z": prefix part a lowercase RFC 1123 subdomain must consist of ',
    "/z=1": f'{P}<nil>: Invalid value: "/z": prefix part must be non-empty',
    "z/": f'{P}<nil>: Invalid value: "z/": name part must be non-empty; name part must consist of ',
    "a/b/c=d": f'{P}<nil>: Invalid value: "a/b/c": a valid label key must consist of ',
    f"{'k' * 64}": f'{P}<nil>: Invalid value: "{"k" * 64}": name part must be no more than 63 bytes',
    f"{'a.' * 126}bc/k": f'{P}<nil>: Invalid value: "{"a." * 126}bc/k": prefix part must be no more than 253 bytes',
}

CANONICAL = {
    "": "",
    " \t\r\n": "",
    "x=a,y=b,z=c": "x=a,y=b,z=c",
    "z=c,x!=a,y=b": "x!=a,y=b,z=c",
    "x=": "x=",
    "x=,z= ": "x=,z=",
    "!x": "!x",
    "! x": "!x",
    "x>1,z<5": "x>1,z<5",
    "x==a": "x==a",
    "notin=in": "notin=in",
    "in=in": "in=in",
    "in in (in)": "in in (in)",
    "in": "in",
    "x in ()": "x in ()",
    "x notin ( )": "x notin ()",
    "x in (abc,)": "x in (,abc)",
    "x in (a,,a,,)": "x in (,a)",
    "x notin (, a)": "x notin (,a)",
    "x in (b,a)": "x in (a,b)",
    "a in (x,y,notin, z,in)": "a in (in,notin,x,y,z)",
    "x notin (abc,,def),bar,z in (),w": "bar,w,x notin (,abc,def),z in ()",
    "this-is-another-dns.domain.com/key-with-dash in (so,what)": (
        "this-is-another-dns.domain.com/key-with-dash in (so,what)"
    ),
    "0.1.2.domain/99 notin (10.10.100.1, tick.tack.clock)": "0.1.2.domain/99 notin (10.10.100.1,tick.tack.clock)",
    "foo  in\t (abc)": "foo in (abc)",
    f"{'k' * 63}={'v' * 63}": f"{'k' * 63}={'v' * 63}",
    f"{'a.' * 126}b/k": f"{'a.' * 126}b/k",
}

EDGES = [
    ("x in ()", "", True),
    ("x in ()", None, False),
    ("x notin ()", None, True),
    ("x>1", "v2", False),
    ("x<1", "-9223372036854775809", False),
]


def canonical_text(requirements: Iterable[Requirement]) -> str:
    """Returns the selector in Kubernetes' own notation."""
    return ",".join(map(text_of, requirements))


def text_of(requirement: Requirement) -> str:
    values = ",".join(sorted(requirement.values))
    match requirement.operator:
        case Operator.ABSENT:
            return f"!{requirement.key}"
        case Operator.IN | Operator.NOT_IN:
            return f"{requirement.key} {requirement.operator} ({values})"
        case _:
            return f"{requirement.key}{requirement.operator}{values}"


@pytest.mark.parametrize(("text", "message"), INVALID.items())
def test_a_bad_selector_is_refused_in_the_words_of_kubernetes(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse(text)

    assert str(refused.value).startswith(message)


def test_a_long_list_of_invalid_values_is_reported_briefly() -> None:
    with pytest.raises(BadRequest) as refused:
        parse(f"x in ({','.join(f'-{number}' for number in range(3000))})")

    assert str(refused.value).count("Invalid value") == 10


def test_an_invalid_value_is_reported_with_the_rule() -> None:
    with pytest.raises(BadRequest) as refused:
        parse("x=-a")

    assert str(refused.value).endswith(
        "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
        "(e.g. 'MyValue',  or 'my_value',  or '12345', "
        "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    )


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_a_selector_is_written_back_as_kubernetes_writes_it(text: str, canonical: str) -> None:
    assert canonical_text(parse(text)) == canonical


@pytest.mark.parametrize(("text", "value", "matches"), EDGES)
def test_a_label_at_the_edge_of_a_requirement_matches_as_in_kubernetes(
    text: str, value: str | None, *, matches: bool
) -> None:
    (requirement,) = parse(text)

    assert requirement.matches(value) is matches


# What the grammar says, written a second time and otherwise: names are drawn character by character.
ALPHANUMERIC = st.sampled_from(string.ascii_letters + string.digits)
INNER = st.text(st.sampled_from(string.ascii_letters + string.digits + "-_."), max_size=61)
NAME = st.one_of(
    ALPHANUMERIC, st.builds(lambda first, inner, last: first + inner + last, ALPHANUMERIC, INNER, ALPHANUMERIC)
)
DOMAIN = st.lists(st.sampled_from(["a", "kafka", "x-1", "0"]), min_size=1, max_size=4).map(".".join)
KEY = st.one_of(NAME, st.builds("{}/{}".format, DOMAIN, NAME))
LABEL = st.one_of(st.just(""), NAME)
SPACE = st.text(st.sampled_from(" \t\r\n"), max_size=2)
INTEGER = st.integers(-(2**63), 2**63 - 1)
Drawn = tuple[str, str, tuple[str, ...]]


@st.composite
def drawn_requirement(draw: st.DrawFn) -> Drawn:
    """Key, operator and values."""
    operator = draw(st.sampled_from(["exists", "!", "=", "==", "!=", "in", "notin", ">", "<"]))
    key = draw(KEY)
    if operator in ("exists", "!"):
        return key, operator, ()
    if operator in (">", "<"):
        return key, operator, (str(draw(st.integers(0, 2**63 - 1))),)
    size = 1 if operator in ("=", "==", "!=") else draw(st.integers(1, 5))
    return key, operator, tuple(draw(st.lists(LABEL, min_size=size, max_size=size)))


@st.composite
def written_selector(draw: st.DrawFn) -> tuple[list[Drawn], str]:
    """Requirements, and one of the ways to write them."""
    requirements = draw(st.lists(drawn_requirement(), max_size=5))
    texts = []
    for key, operator, values in requirements:
        if operator == "exists":
            parts = [key]
        elif operator == "!":
            parts = ["!", key]
        elif operator in ("in", "notin"):
            parts = [f"{key} ", operator, f"({','.join(draw(SPACE) + value for value in values)}", ")"]
        else:
            parts = [key, operator, values[0]]
        texts.append(draw(SPACE) + "".join(part + draw(SPACE) for part in parts))
    return requirements, ",".join(texts)


def fulfils(requirement: Drawn, value: str | None) -> bool:
    """The rule of each operator, by itself."""
    _, operator, values = requirement
    match operator:
        case "exists":
            return value is not None
        case "!":
            return value is None
        case "=" | "==" | "in":
            return value in values
        case "!=" | "notin":
            return value not in values
    if value is None or not value.lstrip("+-").isdigit():
        return False
    return int(value) > int(values[0]) if operator == ">" else int(value) < int(values[0])


@given(written_selector())
def test_every_way_to_write_a_selector_is_read(written: tuple[list[Drawn], str]) -> None:
    requirements, text = written
    expected = [
        (key, "" if operator == "exists" else operator, frozenset(values)) for key, operator, values in requirements
    ]

    found = [(one.key, str(one.operator), one.values) for one in parse(text)]

    assert found == sorted(expected, key=lambda one: one[0])


@given(written_selector())
def test_the_canonical_text_says_the_same(written: tuple[list[Drawn], str]) -> None:
    requirements = parse(written[1])

    assert parse(canonical_text(requirements)) == requirements


@given(drawn_requirement(), st.one_of(st.none(), LABEL, INTEGER.map(str)), st.booleans())
def test_a_requirement_matches_as_its_operator_says(drawn: Drawn, value: str | None, listed: bool) -> None:  # noqa: FBT001 - drawn
    key, operator, values = drawn
    label = values[0] if listed and values else value
    requirement = Requirement(key, Operator("" if operator == "exists" else operator), frozenset(values))

    assert requirement.matches(label) == fulfils(drawn, label)


@given(st.text(), st.text(st.sampled_from("ab1-/.=!<>(), \tin\0ü"), max_size=60))
def test_arbitrary_text_is_a_selector_or_invalid(anything: str, nearly: str) -> None:
    for text in (anything, nearly):
        try:
            requirements = parse(text)
        except BadRequest:
            continue

        assert parse(canonical_text(requirements)) == requirements


@pytest.mark.parametrize("unit", ["k=v,", "!k,", "a", "a.", "x in (a,", "(", "=", " ", "-", "a-", "é", "k in (b,a),"])
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    """Ten times the text within thirty times the time; quadratic would be a hundred."""
    assert seconds_for(unit * 10_000) < 30 * seconds_for(unit * 1_000) + 0.05


def seconds_for(text: str) -> float:
    def once() -> float:
        start = time.process_time()
        with suppress(BadRequest):
            parse(text)
        return time.process_time() - start

    return min(once() for _ in range(3))
