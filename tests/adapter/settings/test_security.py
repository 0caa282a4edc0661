"""Settings of a cluster's security: what belongs together, and the files that secrets are in."""

from pathlib import Path

import pytest

from adapter.errors import SettingsInvalid
from adapter.kafka.answers import BrokersUnreachable
from adapter.kafka.client import Brokers
from adapter.metrics.definitions import SERVED
from adapter.settings.credentials import credentials_of
from adapter.settings.file import parse, settings_in
from adapter.settings.secret_files import read
from tests.support import samples
from tests.support.kubernetes.authorities import Authority
from tests.support.samples import settings_problems


def security_problems(**security: object) -> str:
    (problem,) = settings_problems(clusters=[{**samples.cluster("main"), "security": security}])
    return problem


@pytest.mark.parametrize(
    ("security", "problem"),
    [
        ({"protocol": "SASL_SSL"}, "mechanism is needed with SASL_SSL; username is needed with SASL_SSL"),
        ({"username": "lag"}, "username has no effect with PLAINTEXT"),
        ({"protocol": "SSL", "mechanism": "PLAIN"}, "mechanism has no effect with SSL"),
    ],
)
def test_parts_of_security_that_do_not_belong_together_are_refused(security: dict[str, object], problem: str) -> None:
    assert security_problems(**security).startswith(f"clusters[0].security: {problem}")


@pytest.mark.parametrize("key", ["caFile", "certFile", "keyFile", "keyPasswordFile"])
def test_tls_files_have_no_meaning_without_tls(tmp_path: Path, key: str) -> None:
    path = tmp_path / "file"
    path.write_text("x")

    assert security_problems(**{key: str(path)}) == f"clusters[0].security: {key} has no effect with PLAINTEXT"


@pytest.mark.parametrize(
    ("security", "problem"),
    [
        ({"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER"}, "username is needed with OAUTHBEARER; passwordFile"),
        ({"protocol": "SASL_PLAINTEXT", "mechanism": "AWS_MSK_IAM"}, "AWS_MSK_IAM needs SASL_SSL"),
        ({"protocol": "SASL_SSL", "mechanism": "GSSAPI", "username": "lag"}, "username has no effect with GSSAPI"),
        ({"protocol": "SSL", "scope": "kafka"}, "scope has no effect with SSL"),
        (
            {"protocol": "SSL", "certFile": "/a.p12", "keyFile": "/k"},
            "keyFile has no effect with a PKCS#12 certFile",
        ),
    ],
)
def test_what_a_mechanism_does_not_need_is_refused(security: dict[str, object], problem: str) -> None:
    assert security_problems(**security).startswith(f"clusters[0].security: {problem}")


def test_a_name_and_a_file_with_the_name_are_refused_together() -> None:
    login = {"username": "lag", "usernameFile": "/name", "passwordFile": "/password"}

    assert security_problems(protocol="SASL_SSL", mechanism="PLAIN", **login) == (
        "clusters[0].security: username and usernameFile cannot be used together"
    )


def test_an_address_of_a_token_endpoint_is_checked_and_may_not_contain_credentials() -> None:
    for address in ("ftp://host/token", "https://lag:secret@host/token", "host"):
        assert "must be an https:// or http:// address" in security_problems(tokenEndpoint=address)


SECRET = "hunter2"
PEM = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("clusters", "place"),
    [
        (f"[{{security: {SECRET}}}]", "clusters[0].security: "),
        (f"[{{security: [{SECRET}]}}]", "clusters[0].security: "),
        (f"[{{security: {{mechanism: {SECRET}}}}}]", "clusters[0].security.mechanism: "),
        (f"[{{security: {{password: {SECRET}}}}}]", "clusters[0].security.password: "),
        (f"[{{security: {{passwordFile: [{SECRET}]}}}}]", "clusters[0].security.passwordFile: "),
        (f"[{{security: {{passwordFile: '{SECRET}\\0'}}}}]", "clusters[0].security"),
        (f"[{{security: {{secretFolders: {SECRET}}}}}]", "clusters[0].security.secretFolders: "),
        (f"[{{security: {{username: [{SECRET}]}}}}]", "clusters[0].security.username: "),
        (f"[{{security: {{tokenEndpoint: 'https://lag:{SECRET}@host/'}}}}]", "clusters[0].security.tokenEndpoint: "),
        (f"[{{security: {{saslExtensions: {{a: {{b: {SECRET}}}}}}}}}]", "clusters[0].security.saslExtensions.a: "),
        (f"[{{security: {{password: *{SECRET}}}}}]", "line 1, column 34: found undefined alias"),
        (f"[{{security: {{password: !{SECRET} }}}}]", "line 1, column 34: could not determine"),
        (f"{{security: {{password: {SECRET}}}}}", "clusters: "),
        (f"[{SECRET}]", "clusters[0]: "),
        (f"[{{bootstrapServers: ['SASL_SSL://lag:{SECRET}@kafka:9092']}}]", "clusters[0].bootstrapServers[0]: "),
    ],
)
def test_a_refused_value_that_may_be_a_secret_is_not_repeated(tmp_path: Path, clusters: str, place: str) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        settings_in(f"clusters: {clusters}".encode(), tmp_path, SERVED)

    assert place in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("key", ["passwordFile", "certFile", "keyFile", "keyPasswordFile"])
@pytest.mark.parametrize("secret", [SECRET, PEM], ids=["password", "key"])
def test_a_secret_in_the_place_of_its_file_is_not_repeated(key: str, secret: str) -> None:
    files = dict.fromkeys(("passwordFile", "certFile", "keyFile", "keyPasswordFile"), "/absent") | {key: secret}
    problem = security_problems(protocol="SASL_SSL", mechanism="PLAIN", username="lag", **files)

    assert f"{key} cannot be read: " in problem
    assert SECRET not in problem


def test_a_validation_without_files_opens_none() -> None:
    login = {"mechanism": "PLAIN", "username": "lag", "passwordFile": "/absent/password", "caFile": "/absent/ca"}
    content = {"clusters": [{**samples.cluster("main"), "security": {"protocol": "SASL_SSL", **login}}]}

    assert parse(content, SERVED, opens_files=False).clusters[0].security.username == "lag"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "absent.pem"

    assert security_problems(protocol="SSL", caFile=str(path)) == (
        f"clusters[0].security: caFile {path} cannot be read: No such file or directory"
    )


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    path, _ = Authority("clients").issue("lag").write(tmp_path, "tls")

    assert security_problems(protocol="SSL", certFile=str(path)).endswith("certFile and keyFile must be set together")


def login_of(path: Path) -> dict[str, object]:
    security = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "lag", "passwordFile": str(path)}
    return {**samples.cluster("main"), "security": security}


def test_a_password_is_read_from_its_file_without_the_line_end(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text(" se cret \r\n")
    settings = samples.settings(clusters=[login_of(path)])
    security = settings.clusters[0].security
    found = credentials_of(security, read(security))

    assert found.login.password == " se cret "
    assert "se cret" not in repr(settings) + repr(found) + repr(read(security))


@pytest.mark.parametrize(
    ("content", "problem"), [(b"\xff", "is not UTF-8 text"), (b"", "is empty"), (b"\n", "is empty")]
)
def test_a_password_that_is_none_is_refused_at_start(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "password"
    path.write_bytes(content)

    assert settings_problems(clusters=[login_of(path)]) == (f"clusters[0].security: passwordFile {path} {problem}",)


def test_a_secret_that_has_gone_since_the_start_is_a_failure_of_the_cycle(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("secret")
    (cluster,) = samples.settings(clusters=[login_of(path)]).clusters
    brokers = Brokers(cluster, lambda _: None)

    path.unlink()
    with pytest.raises(BrokersUnreachable, match=r"no broker was asked: .*password cannot be read: No such file"):
        brokers.connect()
    path.write_bytes(b"secret\xff")
    with pytest.raises(BrokersUnreachable, match=r"no broker was asked: passwordFile .* is not UTF-8 text$"):
        brokers.connect()
