"""The certificates that the adapter manages itself, as the data of a Secret, and when they are renewed.

The Secret has the serving pair, the key of the newest CA, and all CAs that are still valid, the newest first. A new CA
signs a serving certificate only after clients have learned it, so that no read fails during a rotation."""

import base64
import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from apiservice.tls.issuing import EARLY, Authority, Pair, base64_of, new_authority, pem

SERVING_DAYS = 90
AUTHORITY_DAYS = 1825
RENEWED_AFTER = 2 / 3
"""The share of its lifetime after which a certificate is renewed."""
SPREAD_SECONDS = 60.0
"""How long kube-apiservers have to learn a new CA before it signs."""
KEYS = ("ca.crt", "ca.key", "tls.crt", "tls.key")


@dataclass(frozen=True)
class Managed:
    authorities: tuple[x509.Certificate, ...]
    """The newest first; `authority_key` is its key, in PEM."""
    authority_key: bytes = field(repr=False)
    serving: Pair

    @property
    def bundle(self) -> bytes:
        return b"".join(pem(each) for each in self.authorities)

    @cached_property
    def certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.serving.certificate)

    @cached_property
    def names(self) -> set[str]:
        names = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return set(names.get_values_for_type(x509.DNSName))

    @cached_property
    def signer(self) -> Authority:
        key = serialization.load_pem_private_key(self.authority_key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the key of the CA is no elliptic-curve key")
        return Authority(self.authorities[0], key)

    def data(self) -> dict[str, str]:
        contents = (self.bundle, self.authority_key, self.serving.certificate, self.serving.key)
        return {key: base64_of(content) for key, content in zip(KEYS, contents, strict=True)}


def managed_of(data: Mapping[str, str]) -> Managed | None:
    """Returns None if the Secret's data are incomplete or unusable."""
    try:
        authorities, authority_key, certificate, key = (base64.b64decode(data[name], validate=True) for name in KEYS)
        newest_first = tuple(x509.load_pem_x509_certificates(authorities))
        managed = Managed(newest_first, authority_key, Pair(certificate=certificate, key=key))
        serving_key = serialization.load_pem_private_key(key, password=None)
        is_usable = (
            managed.signer.key.public_key() == newest_first[0].public_key()
            and serving_key.public_key() == managed.certificate.public_key()
            and bool(managed.names)
        )
    except (KeyError, TypeError, ValueError, UnsupportedAlgorithm, x509.InvalidVersion, x509.ExtensionNotFound):
        return None
    return managed if is_usable else None


def renewed(
    current: Managed | None,
    name: str,
    names: tuple[str, ...],
    now: datetime.datetime,
    *,
    is_spread: bool,
) -> Managed:
    """Returns `current` itself if nothing is due, otherwise the certificates after the next step.

    `is_spread`: kube-apiserver has the newest CA. `name` is that of new CAs; `names` are the Service's."""
    if current is None or current.authorities[0].not_valid_after_utc <= now:
        authority = new_authority(name, now, AUTHORITY_DAYS)
        serving = authority.issue(names, now, SERVING_DAYS)
        return Managed((authority.certificate,), authority.pair.key, serving)
    newest = current.authorities[0]
    if _is_due(newest, now):
        authority = new_authority(name, now, AUTHORITY_DAYS)
        valid = (each for each in current.authorities if now < each.not_valid_after_utc)
        return replace(current, authorities=(authority.certificate, *valid), authority_key=authority.pair.key)
    if _is_signed_by(current.certificate, newest):
        # A Secret that was copied from another namespace has that one's names.
        is_due = _is_due(current.certificate, now) or not current.names.issuperset(names)
    else:
        created = newest.not_valid_before_utc + EARLY
        is_due = is_spread and now - created >= datetime.timedelta(seconds=SPREAD_SECONDS)
    return replace(current, serving=current.signer.issue(names, now, SERVING_DAYS)) if is_due else current


def _is_due(certificate: x509.Certificate, now: datetime.datetime) -> bool:
    """A certificate that is not valid yet was made by a clock that was ahead."""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return not begin <= now < begin + RENEWED_AFTER * (end - begin)


def _is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
