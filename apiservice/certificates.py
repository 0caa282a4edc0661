"""The serving certificate and the CAs for client certificates: files and the cluster's settings in, a TLS context out.

Connections get what is newest when they begin: a renewed pair and rotated CAs need no restart.
"""

import datetime
import hashlib
import logging
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from adapter.errors import AdapterError
from apiservice.authentication import Authentication, AuthenticationInvalid
from apiservice.issuing import self_signed

logger = logging.getLogger(__name__)

SELF_SIGNED_DAYS = 3650  # nothing verifies it, so nothing is gained by having it expire under a running process


class CertificateUnusable(AdapterError):
    """A certificate or key cannot be served; the message names the file."""


@dataclass(frozen=True, slots=True)
class PairFiles:
    """Where a certificate (its chain after it) and its key are, PEM."""

    certificate: Path
    key: Path


class ServingTls:
    """The context that a listener is started with; each new connection gets the newest certificate and CAs by it."""

    def __init__(self, files: PairFiles) -> None:
        """Load the pair; CertificateUnusable."""
        self._files = files
        self._ca_bundle = ""
        self._lock = threading.Lock()  # the cluster's watch and the reload are two threads
        self._fingerprint = _fingerprint(files)
        self._problem = ""
        self._newest = _context(files, self._ca_bundle)
        # Called in every handshake, whether the client names a server or not.
        self.context = _context(files, self._ca_bundle)
        self.context.sni_callback = self._choose_newest

    @property
    def served(self) -> str:
        """The served certificate's file and end, for people."""
        return f"{self._files.certificate}, valid until {_end(self._files)}"

    def trust(self, authentication: Authentication) -> None:
        """Take client certificates of these CAs, and of no others, in handshakes from now on; from any thread.

        AuthenticationInvalid, and what was trusted before stays so.
        """
        with self._lock:
            bundle = f"{authentication.requestheader_ca}\n{authentication.client_ca}".strip()
            self._newest = _context(self._files, bundle)
            self._ca_bundle = bundle

    def reload_if_changed(self) -> None:
        """Serve the pair that the files hold now; one that cannot be served is logged once and the old one kept."""
        try:
            with self._lock:
                self._reload()
            self._problem = ""
        except CertificateUnusable as error:
            self._note(str(error))

    def _reload(self) -> None:
        fingerprint = _fingerprint(self._files)
        if fingerprint == self._fingerprint:
            return
        self._newest = _context(self._files, self._ca_bundle)
        self._fingerprint = fingerprint
        logger.info("serving certificate reloaded: %s", self.served)

    def _note(self, problem: str) -> None:
        if problem != self._problem:
            logger.warning("the new serving certificate is refused, the old one stays: %s", problem)
        self._problem = problem

    def _choose_newest(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _: ssl.SSLContext) -> None:
        connection.context = self._newest


def self_signed_files(directory: Path, names: tuple[str, ...], now: datetime.datetime) -> PairFiles:
    """The pair in this directory; made there if there is none yet. CertificateUnusable if that cannot be done."""
    files = PairFiles(certificate=directory / "tls.crt", key=directory / "tls.key")
    try:
        if files.certificate.exists() and files.key.exists():
            return files
        pair = self_signed(names, now, SELF_SIGNED_DAYS)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.certificate.write_bytes(pair.certificate)
        files.key.touch(mode=0o600)
        files.key.write_bytes(pair.key)
    except OSError as error:
        raise CertificateUnusable(f"no certificate can be kept in {directory}: {error.strerror}") from error
    return files


def _context(files: PairFiles, ca_bundle: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # A resumed session would bring back a client certificate that nobody checked again.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.verify_mode = ssl.CERT_OPTIONAL
    # Go takes any certificate of a bundle for a root, also one that another CA signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if ca_bundle:
        _load_authorities(context, ca_bundle)
    _load_pair(context, files)
    return context


def _load_authorities(context: ssl.SSLContext, ca_bundle: str) -> None:
    try:
        context.load_verify_locations(cadata=ca_bundle)
    except ssl.SSLError as error:
        raise AuthenticationInvalid(f"the cluster's CA certificates cannot be used: {error.reason or error}") from error


def _load_pair(context: ssl.SSLContext, files: PairFiles) -> None:
    def refuse() -> str:
        raise CertificateUnusable(f"the key in {files.key} is encrypted; it must be stored without a password")

    _read(files.certificate), _read(files.key)  # OpenSSL would not say which of them it cannot read
    try:
        context.load_cert_chain(files.certificate, files.key, password=refuse)
    except ssl.SSLError as error:
        raise CertificateUnusable(f"{_worse_half(files)}: {error.reason or error}") from error


def _worse_half(files: PairFiles) -> str:
    try:
        x509.load_pem_x509_certificates(_read(files.certificate))
    except ValueError:
        return f"{files.certificate} holds no certificate that can be read"
    return f"{files.key} is not the key of the certificate in {files.certificate}"


def _fingerprint(files: PairFiles) -> bytes:
    """Of the content: a Secret's files are swapped by a link, which times of change do not always show."""
    return hashlib.sha256(_read(files.certificate) + b"\0" + _read(files.key)).digest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateUnusable(f"{path} cannot be read: {error.strerror}") from error


def _end(files: PairFiles) -> str:
    leaf = x509.load_pem_x509_certificates(_read(files.certificate))[0]
    return f"{leaf.not_valid_after_utc:%Y-%m-%d %H:%M UTC}"
