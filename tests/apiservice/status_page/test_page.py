"""What the status page shows: the groups by urgency, the HPAs beside them, and how old it is; unknown is never 0."""

from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from adapter.cluster.groups import MemberCount
from adapter.conditions import LISTENING, VALUES, Conditions
from adapter.overview.lines import OTHERS, Attention
from adapter.overview.trends import LagTrends
from apiservice.status_page.page import MOST_GROUPS, MOST_HPAS, MOST_HPAS_OF_GROUP, Page, page_of
from apiservice.status_page.rendering import html_of, security_policy, shown
from tests.support.kubernetes.hpas import external, hpa
from tests.support.samples import NEVER_READ, NOW, Key, Row, cluster, row, settings, view
from tests.support.status_pages import HOSTILE, PLAIN, autoscalers, page, page_with_names, sources

ROWS: dict[Key, Row] = {
    ("billing", "orders", 0): row(0, 12_000),
    ("mail", "orders", 0): row(10, 10),
    ("silent", "orders", 0): NEVER_READ,
}


class Reader(HTMLParser):
    """Collects the words that a reader sees, and every element with the names of its attributes."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.words: list[str] = []
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.feed(page.decode())

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.words += [] if tag == "bdi" else [" "]


def text(of: Page) -> str:
    return " ".join("".join(Reader(html_of(of)).words).split())


def test_the_groups_come_in_the_order_of_top() -> None:
    made = page(ROWS)

    assert [(each.line.group, each.line.attention) for each in made.rows] == [
        ("silent", Attention.UNKNOWN),
        ("billing", Attention.LAGGING),
        ("mail", Attention.NONE),
    ]
    assert made.urgent == {Attention.UNKNOWN: 1, Attention.LAGGING: 1}
    assert "Of 3 groups: 1 unknown 1 lagging" in text(made)


def test_an_unknown_lag_is_said_in_words_with_its_reason_and_never_shown_as_0() -> None:
    words = text(page({("silent", "orders", 0): NEVER_READ}))

    assert "unknown silent" in words
    assert "broker 2 at kafka-2:9092 does not answer unknown not known - - -" in words
    assert " 0 " not in words.split("Out/s HPAs")[1].split("Lags are in messages")[0]


def test_the_page_says_how_old_the_oldest_part_is_and_what_is_too_old() -> None:
    words = text(page({("billing", "orders", 0): row(0, 5).aged(9), ("mail", "orders", 0): row(1, 1)}))

    assert "Cluster main: the lag of 2 groups is known; the oldest part is 9s old." in words
    assert "What is older than 60s counts as unknown." in words


def test_what_is_stale_is_unknown_and_says_its_age() -> None:
    made = page({("billing", "orders", 0): row(0, 5).aged(95).unknown("broker 1 at kafka-1:9092 does not answer")})

    assert made.rows[0].line.attention is Attention.UNKNOWN
    assert "Cluster main: no lag is known." in text(made)
    assert "95 s" in text(made)


def test_the_lag_of_the_last_hour_ends_with_the_lag_of_now() -> None:
    trends = LagTrends()
    for ago, lag in ((120.0, 50.0), (60.0, 70.0)):
        trends = trends.followed_by(NOW - ago, [("main", "billing")], np.array([lag]))
    made = page({("billing", "orders", 0): row(0, 90)}, trends=trends)

    assert made.rows[0].trend.words == "at most 90 in 2m"
    assert "Lag Last 5m Wait" in text(made)
    assert made.rows[0].trend.path.count(" ") == 5  # three points


def test_members_and_state_are_unknown_until_a_broker_has_reported_them() -> None:
    rows: dict[Key, Row] = {("billing", "orders", 0): row(0, 5)}
    described = replace(view(rows), members_of={"billing": MemberCount(0, NOW)}.get)

    assert "billing state unknown, members unknown, 1 partition" in text(page(rows))
    assert "billing state unknown, 0 members, 1 partition" in text(page_of(sources(described)))


def test_each_hpa_shows_what_it_asks_for_what_it_gets_and_what_it_did_with_it() -> None:
    condition = {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas", "message": "more than 9"}
    fine = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": "ready"}
    asked = hpa(
        "consumer", external(group="billing"), currentReplicas=6, desiredReplicas=9, conditions=[condition, fine]
    )
    made = page(ROWS, hpas=autoscalers(asked))

    assert [each.name for each in made.rows[1].hpas] == ["consumer"]
    words = text(made)
    assert (
        "shop/consumer Deployment/consumer kafka_consumergroup_lag group=billing target AverageValue 1k 12000" in words
    )
    assert "6 → 9 0 to 9 ScalingLimited True: TooManyReplicas more than 9" in words
    assert "ReadyForNewScale" not in words


def test_a_value_that_an_hpa_does_not_get_is_refused_with_the_reason() -> None:
    words = text(page(ROWS, hpas=autoscalers(hpa("consumer", external(group="silent")))))

    assert "no value lag of group silent is not known: orders/0: broker 2 at kafka-2:9092 does not answer" in words


def test_hpas_of_unknown_groups_and_of_urgent_ones_come_first() -> None:
    groups = ["mail", "billing", "nobody"]
    made = page(ROWS, hpas=autoscalers(*(hpa(group, external(group=group)) for group in groups)))

    assert [each.name for each in made.hpa_lines] == ["nobody", "billing", "mail"]


def test_conditions_that_are_not_true_come_first() -> None:
    conditions = Conditions()
    conditions.holds(LISTENING)
    conditions.fails(VALUES, "Partial", "broker 2 at kafka-2:9092 does not answer", cluster="main")
    made = page(ROWS, conditions=conditions)

    assert [each.name for each in made.conditions] == ["values", "listening"]
    assert "false values of cluster main: broker 2 at kafka-2:9092 does not answer Partial since" in text(made)


def test_a_tenant_sees_its_own_groups_and_hpas() -> None:
    given = settings(rules=[{"group": "billing", "namespaces": ["shop"]}], tenancy="closed")
    hpas = autoscalers(hpa("a", external(group="billing")), hpa("b", external(group="billing"), namespace="mall"))
    seen = {name: page(ROWS, name, given=given, hpas=hpas) for name in ("shop", "mall")}

    assert [each.line.group for each in seen["shop"].rows] == ["billing"]
    assert [each.name for each in seen["shop"].hpa_lines] == ["a"]
    assert (seen["mall"].groups, [each.name for each in seen["mall"].hpa_lines]) == (0, ["b"])
    assert "billing" not in text(page(ROWS, "mall", given=given))


def test_a_group_leads_to_its_explanation_from_either_address() -> None:
    rows: dict[Key, Row] = {("a/b c", "orders", 0): row(0, 5), (".", "orders", 0): row(0, 5)}

    assert [each.link for each in page(rows).rows] == ["", "explain/a%2Fb%20c"]
    assert page(rows, "shop").rows[1].link == "kafka_consumergroup_lag/a%2Fb%20c"


def test_groups_that_may_have_any_name_lead_nowhere() -> None:
    made = page_of(sources(view({}, silence="broker 2 at kafka-2:9092 does not answer")))

    assert [(each.line.group, each.link) for each in made.rows] == [(OTHERS, "")]
    assert "unknown (others)" in text(made)


def test_more_groups_and_hpas_than_a_page_has_are_left_out_in_words() -> None:
    rows: dict[Key, Row] = {(f"g{number}", "orders", 0): row(0, 5) for number in range(MOST_GROUPS + 7)}
    hpas = autoscalers(*(hpa(f"h{number}", external(group="g1")) for number in range(MOST_HPAS + 1)))
    words = text(page(rows, hpas=hpas))

    assert "These are the 300 most urgent of 307 groups" in words
    assert "These are 200 of 201 HPAs" in words


def test_of_many_hpas_of_a_group_its_line_has_the_first_and_how_many_more_there_are() -> None:
    rows: dict[Key, Row] = {("billing", "orders", 0): row(0, 5), ("mail", "orders", 0): row(0, 1)}
    of_billing = (hpa(f"h{number:03}", external(group="billing")) for number in range(MOST_HPAS + 1))
    made = page(rows, hpas=autoscalers(*of_billing, hpa("m", external(group="mail"))))

    assert [(len(each.hpas), each.more_hpas) for each in made.rows] == [
        (MOST_HPAS_OF_GROUP, MOST_HPAS + 1 - MOST_HPAS_OF_GROUP),
        (0, 1),
    ]
    words = text(made)
    assert "shop/h003 1 → 2 shop/h004 1 → 2 and 196 more" in words
    assert "mail state unknown, members unknown, 1 partition 1 known once, so far - - - 1 more" in words


def test_several_clusters_are_told_apart() -> None:
    given = settings(clusters=[cluster("east"), cluster("west")])
    rows: dict[Key, Row] = {("billing", "orders", 0): row(0, 5)}
    made = page_of(sources(*(view(rows, name, given) for name in ("east", "west")), given=given))

    assert [each.cluster for each in made.clusters] == ["east", "west"]
    assert "billing cluster west, state unknown" in text(made)


def test_without_groups_and_hpas_the_page_says_so() -> None:
    words = text(page({}))

    assert "No group is known." in words
    assert "No HPA reads metrics of this adapter." in words


def test_names_of_every_kind_make_no_element_and_no_attribute() -> None:
    hostile, plain = (Counter(Reader(page_with_names(names)).elements) for names in (HOSTILE, PLAIN))

    # A group named `..` has no link, on neither page.
    assert plain - hostile == Counter({("a", ("href",)): 2})
    assert hostile - plain == Counter()


@pytest.mark.parametrize("name", HOSTILE)
def test_every_link_stays_below_the_page(name: str) -> None:
    for namespace in (None, "shop"):
        (made,) = page({(name, "orders", 0): row(0, 5)}, namespace).rows
        first, *rest = made.link.split("/")
        assert (first, len(rest)) in {("explain", 1), ("kafka_consumergroup_lag", 1), ("", 0)}
        assert not set(made.link) & set("<>\"'?#\\ ")


def test_characters_that_mislead_are_shown_as_numbers() -> None:
    assert shown("a\u202eb\x00c\nd\udcffe") == "a\\u202eb\\x00c\\nd\\udcffe"


def test_the_page_needs_nothing_from_elsewhere_and_allows_no_script() -> None:
    found = {tag for tag, _ in Reader(html_of(page(ROWS))).elements}

    assert not found & {"script", "img", "iframe", "object", "form", "base"}
    assert security_policy().startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in security_policy()
