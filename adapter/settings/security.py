"""How to connect to a cluster's brokers; `adapter.settings.credentials` opens the files that are named here."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from adapter.settings import types

LOGIN = ("username", "passwordFile")
NEEDED = {
    None: ("mechanism", *LOGIN),
    "PLAIN": LOGIN,
    "SCRAM-SHA-256": LOGIN,
    "SCRAM-SHA-512": LOGIN,
    "OAUTHBEARER": (*LOGIN, "tokenEndpoint"),
    "AWS_MSK_IAM": (),
    "GSSAPI": (),
}
"""Mechanism -> the keys that it needs."""
TLS_KEYS = ("caFile", "certFile", "keyFile", "keyPasswordFile")
TOKEN_KEYS = ("tokenEndpoint", "tokenEndpointCaFile", "scope", "saslExtensions")
PKCS12 = (".p12", ".pfx")


class Protocol(StrEnum):
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def encrypts(self) -> bool:
        return self in {Protocol.SSL, Protocol.SASL_SSL}

    @property
    def authenticates(self) -> bool:
        return self in {Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL}


Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI"]


class Security(types.SettingsPart):
    """Secrets are files, so that they can be mounted and rotated."""

    protocol: Protocol = Protocol.PLAINTEXT
    mechanism: Mechanism | None = None
    username: types.Name | None = None
    """For OAUTHBEARER, the client id."""
    username_file: types.File | None = None
    password_file: types.File | None = None
    """For OAUTHBEARER, the client secret."""
    ca_file: types.File | None = None
    """PEM; absent: the system's certificate authorities."""
    cert_file: types.File | None = None
    """PEM: the client's certificate with its intermediates; or PKCS#12, which also contains the key."""
    key_file: types.File | None = None
    """PEM: PKCS#1, PKCS#8 or EC, encrypted or not."""
    key_password_file: types.File | None = None
    secret_folders: tuple[types.File, ...] = ()
    """Mounted Secrets as Strimzi, KEDA and Confluent lay them out; for what the other keys do not set."""
    token_endpoint: Annotated[str, AfterValidator(types.web_address)] | None = None
    token_endpoint_ca_file: types.File | None = None
    scope: types.Name | None = None
    sasl_extensions: dict[types.Name, types.Name] = Field(default_factory=dict)

    @property
    def set_keys(self) -> frozenset[str]:
        """Returns the keys that the file sets; usernameFile counts as username."""
        fields = type(self).model_fields
        keys = {str(fields[name].alias) for name in self.model_fields_set if getattr(self, name)}
        return frozenset(keys | {"username"} if "usernameFile" in keys else keys)

    @model_validator(mode="after")
    def _parts_belong_together(self) -> Self:
        if problems := [*self._contradictions(), *(() if self.secret_folders else self._missing())]:
            raise ValueError("; ".join(problems))
        return self

    def _missing(self) -> Iterator[str]:
        if self.protocol.authenticates:
            missing = (key for key in NEEDED[self.mechanism] if key not in self.set_keys)
            yield from (f"{key} is needed with {self.mechanism or self.protocol}" for key in missing)
        if not self.protocol.encrypts:
            return
        if ("certFile" in self.set_keys) != ("keyFile" in self.set_keys) and not self.has_bundle:
            yield "certFile and keyFile must be set together"
        elif self.key_password_file and not self.key_file and not self.has_bundle:
            yield "keyPasswordFile has no effect without keyFile"

    def _contradictions(self) -> Iterator[str]:
        if self.username and self.username_file:
            yield "username and usernameFile cannot be used together"
        if self.has_bundle and self.key_file:
            yield "keyFile has no effect with a PKCS#12 certFile"
        if self.mechanism == "AWS_MSK_IAM" and self.protocol != Protocol.SASL_SSL and not self.secret_folders:
            yield "AWS_MSK_IAM needs SASL_SSL"
        if not self.secret_folders or "protocol" in self.model_fields_set:
            sasl = () if self.protocol.authenticates else ("mechanism", *LOGIN, *TOKEN_KEYS)
            tls = () if self.protocol.encrypts else TLS_KEYS
            yield from (f"{key} has no effect with {self.protocol}" for key in (*sasl, *tls) if key in self.set_keys)
        if self.protocol.authenticates and self.mechanism is not None:
            unused = (*(() if NEEDED[self.mechanism] else LOGIN), *TOKEN_KEYS)
            unused = () if self.mechanism == "OAUTHBEARER" else unused
            yield from (f"{key} has no effect with {self.mechanism}" for key in unused if key in self.set_keys)

    @property
    def has_bundle(self) -> bool:
        return self.cert_file is not None and self.cert_file.suffix.lower() in PKCS12
