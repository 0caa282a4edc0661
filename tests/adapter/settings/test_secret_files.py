"""Mounted Secrets with the keys that Strimzi, KEDA and Confluent give them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from adapter.settings.credentials import Credentials, credentials_of, problems_of
from adapter.settings.secret_files import read
from adapter.settings.security import Protocol, Security
from local.certificates import Authority, new_authority
from tests.support.real.mounted import Mounted

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="lag" password="s\\"cret";'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return new_authority(tmp_path_factory.mktemp("secrets") / "cluster", "cluster-ca")


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return new_authority(tmp_path_factory.mktemp("secrets") / "clients", "clients-ca")


def ca_of(authority: Authority) -> str:
    return authority.pair.certificate.read_text()


def folder(path: Path, contents: Mapping[str, str]) -> str:
    return str(Mounted(path, contents).folder)


def security(*folders: str, **keys: object) -> Security:
    return Security.model_validate({"secretFolders": list(folders), **keys})


def opened(*folders: str, **keys: object) -> Credentials:
    found = security(*folders, **keys)
    return credentials_of(found, read(found))


def authorities(found: Credentials) -> set[str]:
    assert found.tls is not None
    return {str(subject[0][0][1]) for one in found.tls.get_ca_certs() if isinstance(subject := one["subject"], tuple)}


def user_of(clients: Authority) -> dict[str, str]:
    pair = clients.issue("lag")
    return {"ca.crt": ca_of(clients), "user.crt": pair.certificate.read_text(), "user.key": pair.key.read_text()}


def test_a_strimzi_user_with_a_certificate_trusts_the_clusters_authority_and_not_its_own(
    tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    """The key of the bundle beside the pair is ignored, as is the bundle."""
    user = folder(tmp_path / "user", {**user_of(clients), "user.p12": "ignored", "user.password": "ignored"})
    cluster = folder(tmp_path / "ca", {"ca.crt": ca_of(authority), "ca.p12": "ignored", "ca.password": "ignored"})

    for order in ((user, cluster), (cluster, user)):
        found = opened(*order)
        assert found.protocol is Protocol.SSL
        assert found.certificate is not None
        assert authorities(found) == {"cluster-ca"}


def test_a_strimzi_user_with_a_password(tmp_path: Path, authority: Authority) -> None:
    user = folder(tmp_path / "user", {"password": 's"cret', "sasl.jaas.config": JAAS})
    found = opened(user, folder(tmp_path / "ca", {"ca.crt": ca_of(authority)}))

    assert found.protocol is Protocol.SASL_SSL
    assert (found.login.mechanism, found.login.username, found.login.password) == ("SCRAM-SHA-512", "lag", 's"cret')


def test_the_authority_that_strimzi_is_replacing_stays_trusted(
    tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    held = {"ca.crt": ca_of(authority), "ca-2026-11-22T10-00-00Z.crt": ca_of(clients)}

    assert authorities(opened(folder(tmp_path / "ca", held))) == {"cluster-ca", "clients-ca"}


@pytest.mark.parametrize(
    ("sasl", "mechanism"),
    [("plaintext", "PLAIN"), ("scram_sha256", "SCRAM-SHA-256"), ("scram_sha512", "SCRAM-SHA-512")],
)
def test_the_keys_of_a_keda_trigger_authentication(
    tmp_path: Path, authority: Authority, sasl: str, mechanism: str
) -> None:
    login = {"sasl": f"{sasl}\n", "username": "lag", "password": "secret"}
    plain = opened(folder(tmp_path / "plain", {**login, "tls": "disable"}))
    encrypted = opened(folder(tmp_path / "tls", {**login, "tls": "enable", "ca": ca_of(authority)}))

    assert plain.protocol is Protocol.SASL_PLAINTEXT
    assert encrypted.protocol is Protocol.SASL_SSL
    assert encrypted.login.mechanism == mechanism
    assert authorities(encrypted) == {"cluster-ca"}


def test_kedas_keys_for_a_certificate_and_for_a_token_endpoint(
    tmp_path: Path, authority: Authority, clients: Authority
) -> None:
    pair = clients.issue("lag")
    held = {"ca": ca_of(authority), "cert": pair.certificate.read_text(), "key": pair.key.read_text(), "sasl": "none"}
    oauth = {"oauthTokenEndpointUri": "https://idp/token", "scopes": "kafka", "oauthExtensions": "a=1, b=2"}
    login = {"sasl": "oauthbearer", "username": "lag", "password": "secret", "tls": "enable"}
    request = opened(folder(tmp_path / "oauth", {**login, **oauth})).login.token_request

    assert opened(folder(tmp_path / "pair", held)).protocol is Protocol.SSL
    assert request is not None
    assert (request.endpoint, request.scope, request.extensions) == ("https://idp/token", "kafka", {"a": "1", "b": "2"})


def test_a_confluent_api_key_is_plain_over_tls_with_the_systems_authorities(tmp_path: Path) -> None:
    found = opened(folder(tmp_path / "key", {"api-key": "ABC", "api-secret": "secret"}))

    assert found.protocol is Protocol.SASL_SSL
    assert (found.login.mechanism, found.login.username, found.login.password) == ("PLAIN", "ABC", "secret")


def test_what_the_settings_say_comes_before_what_a_folder_holds(tmp_path: Path, authority: Authority) -> None:
    user = folder(tmp_path / "user", {"password": "secret", "sasl.jaas.config": JAAS})
    ca = tmp_path / "other.crt"
    ca.write_text(ca_of(authority))
    found = opened(user, username="other", mechanism="SCRAM-SHA-256", protocol="SASL_SSL", caFile=str(ca))

    assert (found.login.username, found.login.mechanism) == ("other", "SCRAM-SHA-256")
    assert authorities(found) == {"cluster-ca"}


def test_what_is_wrong_with_a_folder_is_said(tmp_path: Path) -> None:
    absent, login = tmp_path / "absent", {"username": "lag", "password": "secret"}
    empty, first, second = (
        folder(tmp_path / name, held) for name, held in (("empty", {}), ("first", login), ("second", login))
    )
    other = folder(tmp_path / "other", {"notes.txt": "x"})
    keda = folder(tmp_path / "keda", {"sasl": "scram", **login})

    (all_three,) = problems_of(security(str(absent), empty, other))
    assert all_three.split("; ") == [
        f"secretFolders: {absent} cannot be read: No such file or directory",
        f"secretFolders: {empty} holds nothing, and no file whose name is known",
        f"secretFolders: {other} holds notes.txt, and no file whose name is known",
    ]
    (both,) = problems_of(security(first, second))
    assert f"secretFolders: {first}/password and secretFolders: {second}/password are for the same purpose" in both
    assert problems_of(security(first)) == [
        f"mechanism is needed: nothing says which one secretFolders: {first}/password is for"
    ]
    (unknown,) = problems_of(security(keda))
    assert unknown.startswith(f"secretFolders: {keda}/sasl is none of none, plaintext, scram_sha256")
    (missing,) = problems_of(security(folder(tmp_path / "half", {"sasl": "plaintext", "username": "lag"})))
    assert missing == f"neither the settings nor the files in {tmp_path / 'half'} contain passwordFile"
