"""A client's certificate and key in any of the usual forms, and the authorities that it trusts, as an SSLContext."""

import re
import secrets
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from adapter.settings.secret_files import CredentialsInvalid, SecretFile, SecretFiles
from adapter.tls import client_context

PEM_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    name: str
    """The key of the settings and the path."""
    chain: Sequence[x509.Certificate]
    key: PrivateKeyTypes = field(repr=False)

    def load_into(self, context: ssl.SSLContext) -> None:
        """An SSLContext reads files only, so the key goes through one that is encrypted for this moment."""
        once = secrets.token_bytes(32).hex().encode()
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(once))
        with tempfile.NamedTemporaryFile(prefix="kafka-lag-adapter-") as file:
            file.write(b"".join([*(one.public_bytes(Encoding.PEM) for one in self.chain), key]))
            file.flush()
            try:
                context.load_cert_chain(file.name, password=once)
            except ssl.SSLError as error:
                raise CredentialsInvalid(f"{self.name} is refused by OpenSSL: {error.reason}") from error

    def expiry(self, now: datetime) -> str:
        """Returns what is to be said if it is not valid now; empty: nothing."""
        begins, ends = self.chain[0].not_valid_before_utc, self.chain[0].not_valid_after_utc
        if now > ends:
            return f"{self.name} expired on {ends:%Y-%m-%d %H:%M} UTC"
        return f"{self.name} is valid only from {begins:%Y-%m-%d %H:%M} UTC" if now < begins else ""


def trusting(authorities: Sequence[SecretFile]) -> ssl.SSLContext:
    """Returns a context that trusts these authorities alone; without any, those of the system."""
    context = client_context()
    if not authorities:
        context.load_default_certs()
    for file in authorities:
        try:
            # Bundles have comments, in any encoding.
            context.load_verify_locations(cadata=b"\n".join(PEM_CERTIFICATE.findall(file.content)).decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsInvalid(f"{file.name} contains no PEM certificates") from error
    return context


def certificate_of(files: SecretFiles) -> ClientCertificate | None:
    """Raises CredentialsInvalid if certificate and key cannot be read or do not belong together."""
    certificate, key, bundle = files.get("certificate"), files.get("key"), files.get("bundle")
    password = files.get("key_password")
    if bundle is not None:
        return _in_bundle(bundle, password)
    if certificate is None or key is None:
        alone = certificate or key
        if alone is None:
            return None
        raise CredentialsInvalid(f"{alone.name} is alone: a certificate and its key are needed together")
    chain, private = _chain_in(certificate), _key_in(key, password)
    # Some tools write the authority first.
    own = [one for one in chain if one.public_key() == private.public_key()]
    if not own:
        raise CredentialsInvalid(f"{key.name} is not the key of {certificate.name}")
    return ClientCertificate(certificate.name, [*own, *(one for one in chain if one not in own)], private)


def _chain_in(file: SecretFile) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(b"\n".join(PEM_CERTIFICATE.findall(file.content)))
    except ValueError as error:
        raise CredentialsInvalid(f"{file.name} contains no PEM certificate") from error


def _key_in(file: SecretFile, password: SecretFile | None) -> PrivateKeyTypes:
    try:
        return load_pem_private_key(file.content, None)
    except TypeError:
        return _decrypted(file, password)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CredentialsInvalid(f"{file.name} contains no PEM private key of a known kind") from error


def _decrypted(file: SecretFile, password: SecretFile | None) -> PrivateKeyTypes:
    if password is None:
        raise CredentialsInvalid(f"{file.name} is encrypted, and keyPasswordFile is missing")
    try:
        return load_pem_private_key(file.content, password.text.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CredentialsInvalid(f"{file.name} cannot be decrypted: wrong passphrase in {password.name}") from error


def _in_bundle(file: SecretFile, password: SecretFile | None) -> ClientCertificate:
    try:
        bundle = pkcs12.load_key_and_certificates(file.content, password.text.encode() if password else None)
    except (ValueError, UnsupportedAlgorithm) as error:
        if password is None:
            raise CredentialsInvalid(f"{file.name} cannot be opened, and keyPasswordFile is missing") from error
        what = "wrong passphrase" if "password" in str(error).lower() else "it is not PKCS#12"
        raise CredentialsInvalid(f"{file.name} cannot be opened with {password.name}: {what}") from error
    key, certificate, others = bundle
    if key is None or certificate is None:
        raise CredentialsInvalid(f"{file.name} lacks the private key or its certificate")
    return ClientCertificate(file.name, [certificate, *others], key)
