"""Verifies client certificates against each of the cluster's two CA bundles separately.

The TLS handshake accepts certificates of both CAs, so a successful handshake does not show which of them signed."""

import time
from dataclasses import dataclass

from cachetools import LRUCache
from cryptography import x509
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiservice.auth.caller import Caller, authenticated
from apiservice.auth.cluster_settings import Authentication, certificates_of

Chain = tuple[bytes, ...]
"""The peer's certificates from the handshake, in DER, its own first; empty if it sent none."""


@dataclass(frozen=True, slots=True)
class CertificateProof:
    """What a chain proves until `valid_until` (epoch seconds): the front proxy, or a client."""

    is_front_proxy: bool
    client: Caller | None
    valid_until: float


class Peers:
    """Caches proofs for one version of the CA bundles. Not thread-safe."""

    def __init__(self, authentication: Authentication) -> None:
        self.authentication = authentication
        self._front_proxies = _store(authentication.requestheader_ca)
        self._clients = _store(authentication.client_ca)
        self._proofs: LRUCache[Chain, CertificateProof] = LRUCache(maxsize=256)

    def proof_of(self, chain: Chain) -> CertificateProof:
        proof = self._proofs.get(chain, _NOBODY)
        if time.time() >= proof.valid_until:
            proof = self._examine(chain)
            if proof is not _NOBODY:
                self._proofs[chain] = proof
        return proof

    def _examine(self, chain: Chain) -> CertificateProof:
        """OpenSSL accepted the chain; a part that `cryptography` cannot parse proves nothing."""
        try:
            return self._proven([x509.load_der_x509_certificate(part) for part in chain])
        except (ValueError, x509.InvalidVersion):
            return _NOBODY

    def _proven(self, certificates: list[x509.Certificate]) -> CertificateProof:
        leaf, intermediates = certificates[0], certificates[1:]
        verified = _prove(self._front_proxies, leaf, intermediates)
        allowed = self.authentication.allowed_names
        if verified is not None and (not allowed or _common_name(leaf) in allowed):
            return CertificateProof(is_front_proxy=True, client=None, valid_until=_end(verified))
        verified = _prove(self._clients, leaf, intermediates)
        if verified is not None and _common_name(leaf):
            client = authenticated(Caller(name=_common_name(leaf), uid="", groups=_groups(leaf), extra=()))
            return CertificateProof(is_front_proxy=False, client=client, valid_until=_end(verified))
        return _NOBODY


# Not cached: anybody can send chains that prove nothing, and one that is not valid yet may become so.
_NOBODY = CertificateProof(is_front_proxy=False, client=None, valid_until=0)


def _store(bundle: str) -> verification.Store | None:
    certificates = certificates_of(bundle)
    return verification.Store(certificates) if certificates else None


def _prove(
    store: verification.Store | None, leaf: x509.Certificate, intermediates: list[x509.Certificate]
) -> list[x509.Certificate] | None:
    """Returns the certificates from the leaf to a CA of the store if they are valid now for client authentication."""
    if store is None:
        return None
    builder = verification.PolicyBuilder().store(store).max_chain_depth(4)
    verifier = builder.extension_policies(ca_policy=_CA_POLICY, ee_policy=_CLIENT_POLICY).build_client_verifier()
    try:
        return verifier.verify(leaf, intermediates).chain
    except verification.VerificationError:
        return None


def _check_may_sign(_policy: object, _certificate: x509.Certificate, constraints: x509.BasicConstraints) -> None:
    if not constraints.ca:
        raise ValueError("not a CA")


def _check_signs_certificates(_policy: object, _certificate: x509.Certificate, usage: x509.KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("not for signing certificates")


def _check_is_for_clients(_policy: object, _certificate: x509.Certificate, usage: x509.ExtendedKeyUsage | None) -> None:
    """As in Go's crypto/x509, a certificate without extended key usage is valid for all uses."""
    purposes = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    if usage is not None and purposes.isdisjoint(usage):
        raise ValueError("not for clients")


# The library's defaults are for the public web and require a subjectAltName, which front proxies' certificates rarely
# have; only the common name counts here.
_CA_POLICY = (
    verification.ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, verification.Criticality.AGNOSTIC, _check_may_sign)
    .may_be_present(x509.KeyUsage, verification.Criticality.AGNOSTIC, _check_signs_certificates)
)
_CLIENT_POLICY = verification.ExtensionPolicy.permit_all().may_be_present(
    x509.ExtendedKeyUsage, verification.Criticality.AGNOSTIC, _check_is_for_clients
)


def _end(verified: list[x509.Certificate]) -> float:
    """Returns when the first of these certificates expires, in epoch seconds."""
    return min(certificate.not_valid_after_utc.timestamp() for certificate in verified)


def _common_name(leaf: x509.Certificate) -> str:
    names = leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    # Like Go, use the last common name if there are several.
    return str(names[-1].value) if names else ""


def _groups(leaf: x509.Certificate) -> tuple[str, ...]:
    return tuple(str(name.value) for name in leaf.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
