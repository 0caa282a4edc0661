"""One login, the certificates of a private CA and a key that signs tokens: what a broker needs for secure listeners.

Separate from `broker`, because most users of the local Kafka need none of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from local.certificates import Authority, Pair, new_authority
from local.downloads import KAFKA_RELEASE
from local.kafka import zookeeper
from local.kafka.token_server import new_signing_key

PASSWORD_LISTENER = "SECURE"  # noqa: S105 - a listener's name
CERTIFICATE_LISTENER = "MUTUAL"
PLAIN_LISTENER = "LOGIN"
TOKEN_LISTENER = "TOKEN"  # noqa: S105 - as above
HAS_TOKENS = KAFKA_RELEASE >= (3, 1)
"""Before, brokers verify tokens only with code of their owner."""
# Kafka 3.3 has it in another package than 4.0; those between have it in both.
VALIDATOR = f"{'' if KAFKA_RELEASE >= (4,) else 'secured.'}OAuthBearerValidatorCallbackHandler"
SIGNING_KEY = "token.key"
SECURE_LISTENERS = {
    PASSWORD_LISTENER: "SASL_SSL",
    CERTIFICATE_LISTENER: "SSL",
    PLAIN_LISTENER: "SASL_PLAINTEXT",
    **({TOKEN_LISTENER: "SASL_SSL"} if HAS_TOKENS else {}),
}
"""Listener -> its security protocol."""
HAS_PEM_STORES = KAFKA_RELEASE >= (3, 3)
"""2.7 is the first to read keys as PEM, but 2.8 still refuses those without a password."""
STORE_PASSWORD = "looking-glass"  # noqa: S105 - Java opens no PKCS #12 store without one
# Kafka without ZooKeeper has no SCRAM users before 3.5.
SCRAM_MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256") if KAFKA_RELEASE >= (3, 5) or zookeeper.IS_NEEDED else ()
MECHANISM = "SCRAM-SHA-512" if SCRAM_MECHANISMS else "PLAIN"
"""What clients use where it does not matter."""


@dataclass(frozen=True, slots=True)
class Login:
    """The only user of the listeners with passwords, the same for PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512."""

    username: str
    password: str


@dataclass(frozen=True, slots=True)
class Security:
    """How a client reaches the secure listeners; every field is an argument of a Kafka client in some form."""

    login: Login
    bootstrap_servers: str
    """The SASL_SSL listener, comma-separated."""
    certificate_bootstrap_servers: str
    """The SSL listener that requires a client certificate, comma-separated."""
    plain_bootstrap_servers: str
    """The SASL_PLAINTEXT listener for the same login, comma-separated."""
    token_bootstrap_servers: str
    """The SASL_SSL listener for OAUTHBEARER, comma-separated; empty where brokers have none."""
    token_key: Path
    """Signs the tokens that the listener accepts; see `token_server`."""
    ca_file: Path
    client: Pair
    """The client certificate that the SSL listener accepts."""
    authority: Authority
    """Issues further ones."""
    stores: Mapping[str, str]
    """The properties that lead a listener with TLS to the brokers' key and certificate."""
    trust: Mapping[str, str]
    """The properties that lead it to the CA of its clients."""


def make_security(folder: Path, login: Login, servers: Mapping[str, str]) -> Security:
    """Creates a CA in a new folder, and certificates for the brokers on 127.0.0.1 and for one client.

    `servers` are the bootstrap servers by listener."""
    authority = new_authority(folder, "local Kafka authority")
    broker = authority.issue("broker", dns_names=["localhost"], addresses=["127.0.0.1"])
    stores = _pem_stores if HAS_PEM_STORES else _pkcs12_stores
    keys, trust = stores(folder, broker, authority.pair.certificate)
    return Security(
        login=login,
        bootstrap_servers=servers[PASSWORD_LISTENER],
        certificate_bootstrap_servers=servers[CERTIFICATE_LISTENER],
        plain_bootstrap_servers=servers[PLAIN_LISTENER],
        token_bootstrap_servers=servers.get(TOKEN_LISTENER, ""),
        token_key=new_signing_key(folder / SIGNING_KEY),
        ca_file=authority.pair.certificate,
        client=authority.issue("client"),
        authority=authority,
        stores=keys,
        trust=trust,
    )


def listener_properties(security: Security) -> dict[str, str]:
    """Returns broker properties of the secure listeners, without ports."""
    user = f'user_{security.login.username}="{security.login.password}"'
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    with_password = {
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM_MECHANISMS)),
        "plain.sasl.jaas.config": f"org.apache.kafka.common.security.plain.PlainLoginModule required {user};",
        **{f"{mechanism.lower()}.sasl.jaas.config": scram for mechanism in SCRAM_MECHANISMS},
    }
    with_certificate = {**security.stores, **security.trust, "ssl.client.auth": "required"}
    oauth = "org.apache.kafka.common.security.oauthbearer"
    with_token = {
        **security.stores,
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauthbearer.sasl.jaas.config": f"{oauth}.OAuthBearerLoginModule required;",
        "oauthbearer.sasl.server.callback.handler.class": f"{oauth}.{VALIDATOR}",
        # A connection ends with its token unless it shows a new one in time.
        "oauthbearer.connections.max.reauth.ms": "3600000",
        "sasl.oauthbearer.jwks.endpoint.url": jwks_url(security.token_key.parent),
        "sasl.oauthbearer.expected.audience": "kafka",
    }
    listeners = {
        PASSWORD_LISTENER: {**security.stores, **with_password},
        PLAIN_LISTENER: with_password,
        CERTIFICATE_LISTENER: with_certificate,
        TOKEN_LISTENER: with_token,
    }
    return {key: value for name in SECURE_LISTENERS for key, value in _of(name, listeners[name]).items()}


def jwks_url(folder: Path) -> str:
    """Returns where a broker reads the key that verifies tokens; it has to be allowed as a property of its JVM."""
    return (folder / SIGNING_KEY).with_suffix(".jwks").as_uri()


def scram_arguments(login: Login) -> list[str]:
    """Returns arguments of the storage tool that create the user before the first broker runs."""
    credential = f"[name={login.username},password={login.password}]"
    return [part for mechanism in SCRAM_MECHANISMS for part in ("--add-scram", f"{mechanism}={credential}")]


def scram_credentials(login: Login) -> str:
    """Returns the same for ZooKeeper."""
    return ",".join(f"{mechanism}=[password={login.password}]" for mechanism in SCRAM_MECHANISMS)


def _of(listener: str, properties: Mapping[str, str]) -> dict[str, str]:
    return {f"listener.name.{listener.lower()}.{key}": value for key, value in properties.items()}


def _pem_stores(folder: Path, broker: Pair, ca_file: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Kafka needs key and certificate in one file."""
    keys = _private(folder / "broker-key-and-certificate.pem", _pkcs8(broker.key) + broker.certificate.read_bytes())
    return (
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(keys)},
        {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca_file)},
    )


def _pkcs12_stores(folder: Path, broker: Pair, ca_file: Path) -> tuple[dict[str, str], dict[str, str]]:
    encryption = BestAvailableEncryption(STORE_PASSWORD.encode())
    key = load_pem_private_key(broker.key.read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    certificate, authority = (load_pem_x509_certificate(file.read_bytes()) for file in (broker.certificate, ca_file))
    held = pkcs12.serialize_key_and_certificates(b"broker", key, certificate, None, encryption)
    trusted = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(authority, b"authority")], encryption)
    keys, trust = _private(folder / "broker.p12", held), _private(folder / "authority.p12", trusted)
    return (
        {**_store("keystore", keys), "ssl.key.password": STORE_PASSWORD},
        _store("truststore", trust),
    )


def _store(kind: str, file: Path) -> dict[str, str]:
    return {
        f"ssl.{kind}.type": "PKCS12",
        f"ssl.{kind}.location": str(file),
        f"ssl.{kind}.password": STORE_PASSWORD,
    }


def _private(file: Path, content: bytes) -> Path:
    file.touch(mode=0o600)
    file.write_bytes(content)
    return file


def _pkcs8(key_file: Path) -> bytes:
    """Returns the key in the only form that Kafka reads."""
    key = load_pem_private_key(key_file.read_bytes(), password=None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
