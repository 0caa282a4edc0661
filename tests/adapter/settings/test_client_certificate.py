"""Client certificates and keys in every form that people have, and what is said of those that cannot be used."""

import datetime
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from adapter.settings.client_certificate import certificate_of, trusting
from adapter.settings.secret_files import CredentialsInvalid, SecretFile, SecretFiles
from local.certificates import Authority, Key, new_authority

PASSPHRASE = b"correct horse"
KEYS: Mapping[str, Key] = {
    "RSA": rsa.generate_private_key(65537, 2048),
    "EC": ec.generate_private_key(ec.SECP256R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
}
TRADITIONAL, PKCS8 = serialization.PrivateFormat.TraditionalOpenSSL, serialization.PrivateFormat.PKCS8
FORMS = [
    *(("RSA", TRADITIONAL), ("EC", TRADITIONAL)),
    *((kind, PKCS8) for kind in KEYS),
]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return new_authority(tmp_path_factory.mktemp("certificates") / "authority", "clients")


@pytest.fixture(scope="module")
def issued(authority: Authority) -> Mapping[str, bytes]:
    return {kind: authority.issue(f"lag-{kind}", key=key).certificate.read_bytes() for kind, key in KEYS.items()}


def file(name: str, content: bytes) -> SecretFile:
    return SecretFile(f"{name} /secret/{name}", content)


def files(**contents: bytes) -> SecretFiles:
    return SecretFiles({role: file(role, content) for role, content in contents.items()}, ())


def pem(key: Key, form: serialization.PrivateFormat = PKCS8, passphrase: bytes = b"") -> bytes:
    encryption = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, encryption)


def bundle(key: Key, certificate: bytes) -> bytes:
    encryption = serialization.BestAvailableEncryption(PASSPHRASE)
    loaded = x509.load_pem_x509_certificate(certificate)
    return pkcs12.serialize_key_and_certificates(b"user", key, loaded, None, encryption)


def problem_of(**contents: bytes) -> str:
    with pytest.raises(CredentialsInvalid) as caught:
        certificate_of(files(**contents))
    return str(caught.value)


@pytest.mark.parametrize("passphrase", [b"", PASSPHRASE], ids=["open", "encrypted"])
@pytest.mark.parametrize(
    ("kind", "form"), FORMS, ids=[f"{form}-{kind}".removeprefix("PrivateFormat.") for kind, form in FORMS]
)
def test_a_pem_key_is_loaded(
    issued: Mapping[str, bytes], kind: str, form: serialization.PrivateFormat, passphrase: bytes
) -> None:
    """A passphrase without need, as beside a PKCS#12 of Strimzi, is not minded."""
    found = certificate_of(
        files(certificate=issued[kind], key=pem(KEYS[kind], form, passphrase), key_password=PASSPHRASE + b"\n")
    )

    assert found is not None
    found.load_into(trusting([]))


@pytest.mark.parametrize("kind", KEYS)
def test_a_pkcs12_bundle_is_loaded(issued: Mapping[str, bytes], kind: str) -> None:
    found = certificate_of(files(bundle=bundle(KEYS[kind], issued[kind]), key_password=PASSPHRASE))

    assert found is not None
    found.load_into(trusting([]))


def test_what_openssl_writes_by_itself_is_loaded(issued: Mapping[str, bytes], tmp_path: Path) -> None:
    """With parameters before an EC key, attributes before a certificate, and a PKCS#12 of former years."""

    def run(*command: str) -> bytes:
        return subprocess.run(["openssl", *command], check=True, capture_output=True, cwd=tmp_path).stdout

    (tmp_path / "c.pem").write_bytes(issued["EC"])
    (tmp_path / "k.pem").write_bytes(pem(KEYS["EC"], TRADITIONAL))
    parameters = run("ecparam", "-name", "prime256v1")
    run(
        *("pkcs12", "-export", "-legacy", "-in", "c.pem", "-inkey", "k.pem", "-out", "user.p12"),
        *("-passout", "pass:old", "-name", "user"),
    )
    attributes = run("pkcs12", "-legacy", "-in", "user.p12", "-passin", "pass:old", "-nodes", "-nokeys")

    for given in (
        files(certificate=attributes, key=parameters + pem(KEYS["EC"], TRADITIONAL)),
        files(bundle=(tmp_path / "user.p12").read_bytes(), key_password=b"old"),
    ):
        found = certificate_of(given)
        assert found is not None
        found.load_into(trusting([]))


def test_the_certificate_of_the_key_comes_first_whatever_the_order(
    authority: Authority, issued: Mapping[str, bytes]
) -> None:
    found = certificate_of(
        files(certificate=authority.pair.certificate.read_bytes() + issued["EC"], key=pem(KEYS["EC"]))
    )

    assert found is not None
    assert [one.public_key() == KEYS["EC"].public_key() for one in found.chain] == [True, False]


def test_a_key_of_another_certificate_is_said(issued: Mapping[str, bytes]) -> None:
    assert problem_of(certificate=issued["EC"], key=pem(KEYS["RSA"])) == (
        "key /secret/key is not the key of certificate /secret/certificate"
    )


def test_a_wrong_or_missing_passphrase_is_said(issued: Mapping[str, bytes]) -> None:
    encrypted = pem(KEYS["RSA"], PKCS8, PASSPHRASE)
    held = bundle(KEYS["RSA"], issued["RSA"])

    assert problem_of(certificate=issued["RSA"], key=encrypted, key_password=b"wrong") == (
        "key /secret/key cannot be decrypted: wrong passphrase in key_password /secret/key_password"
    )
    assert problem_of(certificate=issued["RSA"], key=encrypted) == (
        "key /secret/key is encrypted, and keyPasswordFile is missing"
    )
    assert problem_of(bundle=held, key_password=b"wrong") == (
        "bundle /secret/bundle cannot be opened with key_password /secret/key_password: wrong passphrase"
    )
    assert problem_of(bundle=held) == "bundle /secret/bundle cannot be opened, and keyPasswordFile is missing"


def test_what_is_no_key_no_certificate_and_no_authority_is_said(issued: Mapping[str, bytes]) -> None:
    assert problem_of(certificate=b"nothing", key=pem(KEYS["EC"])).endswith("contains no PEM certificate")
    assert problem_of(certificate=issued["EC"], key=b"nothing").endswith("contains no PEM private key of a known kind")
    assert problem_of(bundle=b"nothing", key_password=b"x").endswith("it is not PKCS#12")
    with pytest.raises(CredentialsInvalid, match="ca /secret/ca contains no PEM certificates"):
        trusting([file("ca", b"nothing")])


def test_a_bundle_of_authorities_is_trusted_whole_and_no_other(issued: Mapping[str, bytes]) -> None:
    comments = "# Autorité\n".encode("latin-1")
    context = trusting([file("ca", comments + issued["EC"] + b"# next\r\n" + issued["RSA"])])

    assert len(context.get_ca_certs()) == 0
    assert context.cert_store_stats()["x509"] == 2
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_an_expired_certificate_is_said_and_a_valid_one_is_not(issued: Mapping[str, bytes]) -> None:
    found = certificate_of(files(certificate=issued["EC"], key=pem(KEYS["EC"])))
    assert found is not None
    now = datetime.datetime.now(datetime.UTC)

    assert found.expiry(now) == ""
    assert "certificate /secret/certificate expired on" in found.expiry(now + datetime.timedelta(days=31))
    assert "is valid only from" in found.expiry(now - datetime.timedelta(days=1))
