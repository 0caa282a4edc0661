"""A CA in a folder, for a cluster that lives for hours: EC P-256 keys, PEM files."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiservice.tls.issuing import key_usage, unsigned

VALID_FOR = datetime.timedelta(days=30)
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey


class Pair(NamedTuple):
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """Issues leaf certificates into its own folder."""

    folder: Path
    pair: Pair

    def issue(
        self,
        common_name: str,
        organizations: Sequence[str] = (),
        *,
        dns_names: Sequence[str] = (),
        addresses: Sequence[str] = (),
        key: Key | None = None,
        valid_for: datetime.timedelta = VALID_FOR,
    ) -> Pair:
        """Returns a new key, unless one is given, and its certificate, valid for clients and, with names, for servers.

        A common name that was issued before gets a second pair in other files."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        ca = x509.load_pem_x509_certificate(self.pair.certificate.read_bytes())
        ca_key = serialization.load_pem_private_key(self.pair.key.read_bytes(), password=None)
        assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = (
            _certificate(_name(common_name, organizations), ca.subject, key.public_key(), valid_for)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        )
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in dns_names]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return _write(self.folder, common_name, builder.sign(ca_key, hashes.SHA256()), key)


def new_authority(folder: Path, common_name: str) -> Authority:
    """Creates a self-signed CA; its files and those of its leaves are in `folder`."""
    folder.mkdir(parents=True)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _certificate(_name(common_name), _name(common_name), key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(folder, _write(folder, "ca", certificate, key))


def new_key(file: Path) -> Path:
    """Creates a private key without a certificate, as for signing service account tokens."""
    return _write_key(file, ec.generate_private_key(ec.SECP256R1()))


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: PublicKey, valid_for: datetime.timedelta = VALID_FOR
) -> x509.CertificateBuilder:
    return unsigned(subject, issuer, key, datetime.datetime.now(datetime.UTC), valid_for / datetime.timedelta(days=1))


def _write(folder: Path, name: str, certificate: x509.Certificate, key: Key) -> Pair:
    stem = name.replace(":", "-").replace("/", "-")
    if (folder / f"{stem}.crt").exists():
        stem = f"{stem}-{certificate.serial_number:x}"
    file = folder / f"{stem}.crt"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Pair(file, _write_key(folder / f"{stem}.key", key))


def _write_key(file: Path, key: Key) -> Path:
    pkcs8 = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        # kube-apiserver reads the public half out of this form, but not out of PKCS #8.
        pkcs8 if isinstance(key, ed25519.Ed25519PrivateKey) else serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    file.touch(mode=0o600)
    file.write_bytes(pem)
    return file
