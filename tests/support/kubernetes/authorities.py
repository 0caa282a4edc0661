"""Certificate authorities made by hand for tests: a cluster's two, and strangers."""

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiservice.auth.cluster_settings import Authentication, authentication_of

CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH
SERVER = ExtendedKeyUsageOID.SERVER_AUTH


@dataclass(frozen=True)
class Issued:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def key_pem(self, password: bytes | None = None) -> bytes:
        encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        return self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Certificate and key as files."""
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_text(self.pem)
        key.write_bytes(self.key_pem())
        return certificate, key


class Authority:
    """A CA; with `issuer`, an intermediate one. Without key identifiers, what it issues names it by its name alone."""

    def __init__(self, name: str, issuer: "Authority | None" = None, *, has_key_identifiers: bool = True) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        self.name = _name(name, ())
        self._has_key_identifiers = has_key_identifiers
        builder = self._identified(_builder(self.name, key.public_key(), datetime.timedelta(days=365)), key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.own = issuer._sign(builder, key) if issuer else Issued(_signed(builder, self.name, key), key)

    @property
    def pem(self) -> str:
        return self.own.pem

    def issue(
        self,
        common_name: str,
        groups: tuple[str, ...] = (),
        usages: tuple[x509.ObjectIdentifier, ...] = (CLIENT,),
        valid_for: datetime.timedelta = datetime.timedelta(hours=1),
        dns_names: tuple[str, ...] = (),
    ) -> Issued:
        """A certificate without subjectAltName, as front proxies have, unless names are given."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._identified(_builder(_name(common_name, groups), key.public_key(), valid_for), key)
        if usages:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if dns_names:
            names = [x509.DNSName(name) for name in dns_names]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return self._sign(builder, key)

    def _sign(self, builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> Issued:
        if self._has_key_identifiers:
            issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.own.key.public_key())
            builder = builder.add_extension(issuer, critical=False)
        return Issued(_signed(builder, self.name, self.own.key), key)

    def _identified(self, builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        if not self._has_key_identifiers:
            return builder
        return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def version_4(certificate: str) -> bytes:
    """The certificate (PEM) with a version that no standard knows: OpenSSL serves it, `cryptography` refuses it."""
    der, version_3 = ssl.PEM_cert_to_DER_cert(certificate), bytes.fromhex("a003020102")
    assert der.count(version_3) == 1
    return ssl.DER_cert_to_PEM_cert(der.replace(version_3, bytes.fromhex("a003020103"))).encode()


def authentication(
    proxies: "str | Authority", clients: "str | Authority", allowed_names: tuple[str, ...] = ("front-proxy-client",)
) -> Authentication:
    return authentication_of(config_map_data(proxies, clients, allowed_names))


def config_map_data(
    proxies: "str | Authority", clients: "str | Authority", allowed_names: tuple[str, ...] = ("front-proxy-client",)
) -> dict[str, str]:
    """The ConfigMap kube-system/extension-apiserver-authentication, as kube-apiserver writes it."""
    names = ", ".join(f'"{name}"' for name in allowed_names)
    return {
        "client-ca-file": clients if isinstance(clients, str) else clients.pem,
        "requestheader-client-ca-file": proxies if isinstance(proxies, str) else proxies.pem,
        "requestheader-allowed-names": f"[{names}]",
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }


def client_context(folder: Path, shown: Issued | None = None) -> ssl.SSLContext:
    """How a client connects that looks at no server certificate and shows this one of its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if shown is not None:
        context.load_cert_chain(*shown.write(folder, f"client-{shown.certificate.serial_number}"))
    return context


def _name(common_name: str, groups: tuple[str, ...]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(name: x509.Name, key: ec.EllipticCurvePublicKey, valid_for: datetime.timedelta) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - datetime.timedelta(days=2)).not_valid_after(now + valid_for)


def _signed(
    builder: x509.CertificateBuilder,
    issuer: x509.Name,
    signer: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    return builder.issuer_name(issuer).sign(signer, hashes.SHA256())
