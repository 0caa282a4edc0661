"""Creates certificates: a self-signed pair, and the objects that `certificates` prints.

Keys are ECDSA P-256; names are those that kube-apiserver checks: `<service>.<namespace>.svc`."""

import base64
import datetime
import ipaddress
from dataclasses import dataclass

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiservice.api_group import GROUP, VERSION

SECRET_NAME = "kafka-lag-adapter-tls"  # noqa: S105 - the name of an object
SERVICE_PORT = 443
LABELS = {"app.kubernetes.io/name": "kafka-lag-adapter"}


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate with its key, in PEM. `repr` does not show the key."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Pair(...)"


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Returns a Service's DNS names, first the one that kube-apiserver uses."""
    name = f"{service}.{namespace}.svc"
    return name, f"{name}.cluster.local", f"{service}.{namespace}", service


def self_signed(names: tuple[str, ...], now: datetime.datetime, days: int) -> Pair:
    """Returns a self-signed pair; names may be IP addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _for_server(_certificate(names[0], names[0], key, now, days), names)
    return Pair(certificate=_pem(builder.sign(key, hashes.SHA256())), key=_key_pem(key))


def serving_manifests(namespace: str, service: str, days: int, now: datetime.datetime) -> str:
    """Returns the serving Secret and the APIService as YAML. Their CA is created for one certificate; its key is
    discarded."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _authority(f"{service} serving CA", authority_key, now, days)
    key = ec.generate_private_key(ec.SECP256R1())
    names = service_names(service, namespace)
    builder = _for_server(_certificate(names[0], f"{service} serving CA", key, now, days), names)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = builder.add_extension(issuer, critical=False).sign(authority_key, hashes.SHA256())
    pair = Pair(certificate=_pem(certificate), key=_key_pem(key))
    objects = [_secret(namespace, pair), _api_service(namespace, service, _pem(authority))]
    return yaml.safe_dump_all(objects, sort_keys=False, explicit_start=True)


def _secret(namespace: str, pair: Pair) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET_NAME, "namespace": namespace, "labels": LABELS.copy()},
        "type": "kubernetes.io/tls",
        "data": {"tls.crt": _base64(pair.certificate), "tls.key": _base64(pair.key)},
    }


def _api_service(namespace: str, service: str, authority: bytes) -> dict[str, object]:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{VERSION}.{GROUP}", "labels": LABELS.copy()},
        "spec": {
            "group": GROUP,
            "version": VERSION,
            "service": {"name": service, "namespace": namespace, "port": SERVICE_PORT},
            "caBundle": _base64(authority),
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        },
    }


def _authority(name: str, key: ec.EllipticCurvePrivateKey, now: datetime.datetime, days: int) -> x509.Certificate:
    builder = _certificate(name, name, key, now, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return builder.add_extension(_key_usage(signs_certificates=True), critical=True).sign(key, hashes.SHA256())


def _certificate(
    subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    """Common fields. Valid an hour early, for clocks that are behind."""
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _for_server(builder: x509.CertificateBuilder, names: tuple[str, ...]) -> x509.CertificateBuilder:
    return (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
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


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
