"""Creates certificates and CAs, and the objects that `certificates` prints.

Keys are ECDSA P-256; names are those that kube-apiserver checks: `<service>.<namespace>.svc`."""

import base64
import datetime
import importlib.metadata
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiservice.api_group import EXTERNAL, ApiGroup

SECRET_NAME = "kafka-lag-adapter-tls"  # noqa: S105 - the name of an object
SERVICE_PORT = 443
PRODUCT = "kafka-lag-adapter"
EARLY = datetime.timedelta(hours=1)
"""Certificates are valid this much before they are made, for clocks that are behind."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate with its key, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def pair(self) -> Pair:
        return Pair(certificate=pem(self.certificate), key=_key_pem(self.key))

    def issue(self, names: tuple[str, ...], now: datetime.datetime, days: int) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _for_server(unsigned(_name(names[0]), self.certificate.subject, key.public_key(), now, days), names)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = builder.add_extension(issuer, critical=False).sign(self.key, hashes.SHA256())
        return Pair(certificate=pem(certificate), key=_key_pem(key))


def new_authority(name: str, now: datetime.datetime, days: int) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = unsigned(_name(name), _name(name), key.public_key(), now, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(key_usage(signs_certificates=True), critical=True)
    return Authority(builder.sign(key, hashes.SHA256()), key)


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Returns a Service's DNS names, first the one that kube-apiserver uses."""
    name = f"{service}.{namespace}.svc"
    return name, f"{name}.cluster.local", f"{service}.{namespace}", service


def self_signed(names: tuple[str, ...], now: datetime.datetime, days: int) -> Pair:
    """Returns a self-signed pair; names may be IP addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _for_server(unsigned(_name(names[0]), _name(names[0]), key.public_key(), now, days), names)
    return Pair(certificate=pem(builder.sign(key, hashes.SHA256())), key=_key_pem(key))


def serving_manifests(
    namespace: str, service: str, days: int, now: datetime.datetime, groups: tuple[ApiGroup, ...] = (EXTERNAL,)
) -> str:
    """Returns the serving Secret and the APIServices as YAML. The key of their CA, made for them, is discarded."""
    authority = new_authority(authority_name(service), now, days)
    pair = authority.issue(service_names(service, namespace), now, days)
    labels = {
        "app.kubernetes.io/name": PRODUCT,
        "app.kubernetes.io/instance": service,
        "app.kubernetes.io/component": "adapter",
        "app.kubernetes.io/version": importlib.metadata.version(PRODUCT),
        "app.kubernetes.io/part-of": PRODUCT,
        "app.kubernetes.io/managed-by": PRODUCT,
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET_NAME, "namespace": namespace, "labels": labels},
        "type": "kubernetes.io/tls",
        "data": {"tls.crt": base64_of(pair.certificate), "tls.key": base64_of(pair.key)},
    }
    place = {"name": service, "namespace": namespace, "port": SERVICE_PORT}
    bundle = authority.pair.certificate
    objects = [secret, *(api_service(group, {"labels": labels.copy()}, place, bundle) for group in groups)]
    return yaml.safe_dump_all(objects, sort_keys=False, explicit_start=True)


def authority_name(service: str) -> str:
    return f"{service} serving CA"


def api_service(
    group: ApiGroup, metadata: Mapping[str, object], service: Mapping[str, object], bundle: bytes
) -> dict[str, object]:
    """Returns the APIService that leads to a Service whose certificate a CA of the bundle has signed."""
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": group.api_service, **metadata},
        "spec": {
            "group": group.name,
            "version": group.version,
            "service": dict(service),
            "caBundle": base64_of(bundle),
            "insecureSkipTLSVerify": False,  # the previous server may have set it, and then no caBundle is accepted
            "groupPriorityMinimum": 100,
            "versionPriority": group.priority,
        },
    }


def unsigned(
    subject: x509.Name, issuer: x509.Name, key: CertificatePublicKeyTypes, now: datetime.datetime, days: float
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLY)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _for_server(builder: x509.CertificateBuilder, names: tuple[str, ...]) -> x509.CertificateBuilder:
    return (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
    )


def key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """Python 3.13 and later refuse CAs whose certificate does not declare that they sign."""
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    """A common name has at most 64 characters; clients check only the alternative names."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
