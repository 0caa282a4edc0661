"""Settings of a cluster's security: what belongs together, and the files that secrets are in."""

from pathlib import Path

import pytest

from adapter.kafka.answers import ClusterUnreachable
from adapter.kafka.client import Brokers
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


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "absent.pem"

    assert security_problems(protocol="SSL", caFile=str(path)) == (
        f"clusters[0].security.caFile: {path} cannot be read: No such file or directory"
    )


def test_a_file_without_certificates_is_refused_at_start(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("no certificate")

    assert f"caFile {path} contains no PEM certificates" in security_problems(protocol="SSL", caFile=str(path))


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    path, _ = Authority("clients").issue("lag").write(tmp_path, "tls")

    assert security_problems(protocol="SSL", certFile=str(path)).endswith("certFile and keyFile must be set together")


def test_a_password_is_read_from_its_file_without_the_line_end(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text(" se cret \r\n")
    security = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "lag", "passwordFile": str(path)}
    settings = samples.settings(clusters=[{**samples.cluster("main"), "security": security}])

    assert settings.clusters[0].security.password == " se cret "
    assert "cret" not in repr(settings)


@pytest.mark.parametrize(
    ("content", "problem"), [(b"\xff", "is not UTF-8 text"), (b"", "is empty"), (b"\n", "is empty")]
)
def test_a_password_that_is_none_is_refused_at_start(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "password"
    path.write_bytes(content)
    security = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "lag", "passwordFile": str(path)}

    assert settings_problems(clusters=[{**samples.cluster("main"), "security": security}]) == (
        f"clusters[0].security.passwordFile: {path} {problem}",
    )


def test_a_secret_that_has_gone_since_the_start_is_a_failure_of_the_cycle(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("secret")
    security = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "lag", "passwordFile": str(path)}
    (cluster,) = samples.settings(clusters=[{**samples.cluster("main"), "security": security}]).clusters
    brokers = Brokers(cluster, lambda _: None)

    path.unlink()
    with pytest.raises(ClusterUnreachable, match=r"a secret cannot be read: .*password: No such file or directory"):
        brokers.connect()
    path.write_bytes(b"secret\xff")
    with pytest.raises(ClusterUnreachable, match=r"a secret cannot be read: it is not UTF-8 text$"):
        brokers.connect()
