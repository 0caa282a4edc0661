"""The serving certificate and the CAs of client certificates, as a TLS context.

New connections use the latest certificate and CAs, so renewals need no restart."""

import contextlib
import datetime
import os
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from adapter.conditions import SERVING_CERTIFICATE, Conditions
from adapter.errors import AdapterError
from adapter.tls import server_context
from apiservice.auth.cluster_settings import Authentication, certificates_of
from apiservice.tls.issuing import Pair, self_signed

RELOAD_SECONDS = 5.0
LONGEST_HANDSHAKE = 16 * 1024  # bytes from the client; one takes about 2 KB, with some intermediate CAs 8 KB
SELF_SIGNED_DAYS = 3650  # nothing verifies it, so it need not expire while the process runs


class CertificateUnusable(AdapterError):
    """A certificate or key cannot be served; the message names the file."""


@dataclass(frozen=True, slots=True)
class PairFiles:
    """PEM files of a certificate (followed by its chain) and of its key."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class _Serving:
    """A pair that both OpenSSL and `cryptography` accept."""

    pair: Pair
    context: ssl.SSLContext
    """Includes the latest client CAs."""
    files: PairFiles
    end: datetime.datetime
    """When the certificate expires."""


class ServingTls:
    """A TLS context that uses the latest certificate and CAs for each new connection."""

    def __init__(self, files: PairFiles) -> None:
        self._files = files
        self._ca_bundle = b""
        self._lock = threading.Lock()  # the cluster watch and the reload run in different threads
        self._serving = _usable(files, _read(files), self._ca_bundle)

    def context(self) -> ssl.SSLContext:
        """Returns the one for a new connection.

        OpenSSL's callback for server names would do, too, but Python prints a traceback for names beyond ASCII."""
        return self._serving.context

    @property
    def served(self) -> str:
        serving = self._serving
        return f"{serving.files.certificate}, valid until {serving.end:%Y-%m-%d %H:%M UTC}"

    def ends_at(self) -> float:
        """Returns when the certificate expires, as Unix time."""
        return self._serving.end.timestamp()

    def trust(self, authentication: Authentication) -> None:
        """Accepts only client certificates of these CAs in later handshakes. Callable from any thread.

        Raises AdapterError and changes nothing if OpenSSL rejects them. Does not read the serving files, so
        that CAs can rotate while those are missing."""
        certificates = certificates_of(f"{authentication.requestheader_ca}\n{authentication.client_ca}")
        # Without the bundles' comments, which OpenSSL accepts in ASCII only.
        bundle = b"".join(each.public_bytes(serialization.Encoding.DER) for each in certificates)
        with self._lock:
            self._serving = replace(self._serving, context=_context(self._serving.pair, bundle))
            self._ca_bundle = bundle

    def serve(self, pair: Pair, files: PairFiles) -> None:
        """Serves this pair from now on; `files` names where it is from. Raises CertificateUnusable."""
        with self._lock:
            if pair != self._serving.pair:
                self._serving = _usable(files, pair, self._ca_bundle)

    def reload(self, conditions: Conditions) -> float:
        """Loads a changed pair; an unusable one leaves the previous one in use. Returns the seconds until the next."""
        try:
            self.serve(_read(self._files), self._files)
            conditions.holds(SERVING_CERTIFICATE, details=self.served)
        except CertificateUnusable as error:
            conditions.fails(SERVING_CERTIFICATE, "NotReloaded", "the previous one is served", details=str(error))
        return RELOAD_SECONDS


def self_signed_files(directory: Path, names: tuple[str, ...], now: datetime.datetime) -> PairFiles:
    """Returns the pair in this directory, and creates it if there is none; raises CertificateUnusable."""
    files = PairFiles(certificate=directory / "tls.crt", key=directory / "tls.key")
    try:
        if files.certificate.exists() and files.key.exists():
            return files
        pair = self_signed(names, now, SELF_SIGNED_DAYS)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.key.touch(mode=0o600)
        files.key.write_bytes(pair.key)
        files.certificate.write_bytes(pair.certificate)  # last, because a pair without a certificate is created again
    except OSError as error:
        raise CertificateUnusable(f"no certificate can be stored in {directory}: {error.strerror}") from error
    return files


def _context(pair: Pair, authorities: bytes) -> ssl.SSLContext:
    """`authorities` are client CAs in DER. Raises OSError, ssl.SSLError or _KeyEncrypted."""
    context = server_context()
    context.sslobject_class = _ShortHandshake
    context.set_alpn_protocols(["http/1.1"])
    # A resumed session would bring back a client certificate without a new check.
    context.num_tickets = 0
    context.verify_mode = ssl.CERT_OPTIONAL
    try:
        if authorities:
            context.load_verify_locations(cadata=authorities)
    except ssl.SSLError as error:
        raise AdapterError(f"the cluster's CA certificates cannot be used: {error.reason or error}") from error
    _load_pair(context, pair)
    return context


class _ShortHandshake(ssl.SSLObject):
    """Shows OpenSSL only so many bytes, because it would examine hundreds of a stranger's certificates."""

    _incoming: ssl.MemoryBIO
    _room = LONGEST_HANDSHAKE

    @classmethod
    def _create(cls, incoming: ssl.MemoryBIO, *others: object, **options: object) -> "_ShortHandshake":
        created: _ShortHandshake = super()._create(incoming, *others, **options)  # type: ignore[misc]  # typeshed lacks it
        created._incoming = incoming
        return created

    def do_handshake(self) -> None:
        received = self._incoming.read()
        self._incoming.write(received[: self._room])
        rest, self._room = received[self._room :], max(0, self._room - len(received))
        try:
            super().do_handshake()
        except ssl.SSLWantReadError as error:
            raise error if self._room else ssl.SSLError("the handshake is too long") from None
        finally:
            self._incoming.write(rest)  # such as a request that came with its end


class _KeyEncrypted(Exception):
    """OpenSSL asks for the key's password."""


def _load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    def refuse() -> str:
        raise _KeyEncrypted

    with _file_of(pair.certificate) as certificate, _file_of(pair.key) as key:
        context.load_cert_chain(certificate, key, password=refuse)


@contextlib.contextmanager
def _file_of(content: bytes) -> Iterator[str]:
    """Yields a path, because `ssl` loads from paths only; the pair's own files may change between two reads."""
    with open(os.memfd_create("certificate"), "wb") as file:  # noqa: PTH123 - no path leads there yet
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def _usable(files: PairFiles, pair: Pair, authorities: bytes) -> _Serving:
    """Returns the pair if OpenSSL can serve it and `cryptography` can parse it; raises CertificateUnusable."""
    try:
        end = x509.load_pem_x509_certificates(pair.certificate)[0].not_valid_after_utc
    except (ValueError, x509.InvalidVersion) as error:
        raise CertificateUnusable(f"{files.certificate} contains no readable certificate: {error}") from error
    try:
        context = _context(pair, authorities)
    except (_KeyEncrypted, OSError) as error:
        raise CertificateUnusable(_refusal(files, error)) from error
    return _Serving(pair, context, files, end)


def _refusal(files: PairFiles, error: Exception) -> str:
    if isinstance(error, _KeyEncrypted):
        return f"the key in {files.key} is encrypted; it must be stored without a password"
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    if reason == "KEY_VALUES_MISMATCH":
        return f"{files.key} is not the key of the certificate in {files.certificate}"
    return f"{files.certificate} and {files.key} cannot be served: {reason or error}"


def _read(files: PairFiles) -> Pair:
    """Compares content, because a Secret's files are replaced through a symlink, which keeps modification times."""
    return Pair(certificate=_content(files.certificate), key=_content(files.key))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateUnusable(f"{path} cannot be read: {error.strerror}") from error
