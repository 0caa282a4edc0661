"""When the certificates in the Secret are renewed, and by which step."""

import datetime

import pytest
from cryptography import x509

from apiservice.tls.managed import AUTHORITY_DAYS, SERVING_DAYS, Managed, managed_of, renewed

NOW = datetime.datetime(2026, 11, 22, tzinfo=datetime.UTC)
NAMES = ("kafka-lag-adapter.lag.svc",)
DAY = datetime.timedelta(days=1)


def after(current: Managed | None, days: float, *, is_spread: bool = True) -> Managed:
    return renewed(current, "CA", NAMES, NOW + days * DAY, is_spread=is_spread)


FIRST = after(None, 0)


def test_the_secret_keeps_all_of_it() -> None:
    assert managed_of(FIRST.data()) == FIRST
    assert FIRST.certificate.not_valid_after_utc == NOW + SERVING_DAYS * DAY
    FIRST.certificate.verify_directly_issued_by(FIRST.authorities[0])


@pytest.mark.parametrize("key", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
def test_a_secret_with_an_unusable_or_foreign_part_counts_as_empty(key: str) -> None:
    other = after(None, 0).data()

    assert managed_of({}) is None
    assert managed_of({**FIRST.data(), key: "no base64"}) is None
    assert managed_of({**FIRST.data(), key: ""}) is None
    assert managed_of({**FIRST.data(), key: other[key]}) is None


def test_nothing_changes_before_two_thirds_of_a_lifetime() -> None:
    assert after(FIRST, 59) is FIRST


def test_a_serving_certificate_is_renewed_by_the_same_authority() -> None:
    later = after(FIRST, 61, is_spread=False)

    assert later.authorities == FIRST.authorities
    assert later.certificate.not_valid_after_utc == NOW + (61 + SERVING_DAYS) * DAY


def test_a_certificate_that_lacks_a_name_is_issued_again() -> None:
    """As after a Secret was copied from another namespace."""
    copied = renewed(None, "CA", ("kafka-lag-adapter.staging.svc",), NOW, is_spread=False)
    own = after(copied, 1, is_spread=False)

    assert own.authorities == copied.authorities
    assert own.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value == (
        FIRST.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    )
    assert after(own, 2, is_spread=False) is own


def test_a_new_authority_signs_only_after_it_has_spread() -> None:
    days = AUTHORITY_DAYS * 2 / 3 + 1
    current = after(FIRST, days - 10)
    both = after(current, days)
    assert both.authorities[1:] == current.authorities
    assert both.serving == current.serving

    minute = 61 / 86400
    assert after(both, days + minute / 2) is both
    assert after(both, days + minute, is_spread=False) is both
    signed = after(both, days + minute)
    signed.certificate.verify_directly_issued_by(both.authorities[0])
    assert signed.authorities == both.authorities


def test_an_authority_that_has_ended_leaves_the_bundle() -> None:
    days = AUTHORITY_DAYS * 2 / 3 + 1
    both = after(FIRST, days)
    third = after(both, days * 2)

    assert third.authorities[1:] == both.authorities[:1]


def test_after_a_long_absence_all_is_new_at_once() -> None:
    later = after(FIRST, AUTHORITY_DAYS + 1)

    assert len(later.authorities) == 1
    later.certificate.verify_directly_issued_by(later.authorities[0])
    names = later.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [*NAMES]
