import base64
import datetime
import logging
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from adapter.conditions import Conditions
from apiservice.tls import issuing
from apiservice.tls.certificates import CertificateUnusable, PairFiles, ServingTls, self_signed_files
from tests.support.kubernetes.authorities import SERVER, Authority, Issued, authentication, client_context, version_4

SERVERS, PROXIES, CLIENTS = Authority("serving-ca"), Authority("front-proxy-ca"), Authority("kubernetes")
NAME = "kafka-lag-adapter.lag.svc"
NOW = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)


def serving_pair(folder: Path, authority: Authority = SERVERS) -> PairFiles:
    return PairFiles(*authority.issue(NAME, usages=(SERVER,), dns_names=(NAME,)).write(folder, "tls"))


@contextmanager
def accepting(context: Callable[[], ssl.SSLContext]) -> Iterator[int]:
    """A port where each connection gets a handshake and, if that succeeds, one byte."""

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            try:
                with context().wrap_socket(connection, server_side=True) as tls:
                    tls.sendall(b"!")
            except OSError:
                connection.close()

    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def handshake(port: int, context: ssl.SSLContext, name: str | None = NAME) -> bytes:
    """The server's certificate (DER), if the whole handshake succeeds; ssl.SSLError or ConnectionError."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname=name) as tls,
    ):
        # In TLS 1.3 a refusal of the client's certificate arrives only with the first read.
        assert tls.recv(1) == b"!"
        return tls.getpeercert(binary_form=True) or b""


def is_accepted(port: int, folder: Path, shown: Issued | None) -> bool:
    try:
        handshake(port, client_context(folder, shown))
    except (ssl.SSLError, ConnectionError):
        return False
    return True


def test_a_rotated_client_ca_is_taken_at_once_and_the_removed_one_no_longer(tmp_path: Path) -> None:
    tls, renewed = ServingTls(serving_pair(tmp_path)), Authority("front-proxy-ca")
    old, new = PROXIES.issue("front-proxy-client"), renewed.issue("front-proxy-client")
    client = CLIENTS.issue("bob")
    with accepting(tls.context) as port:
        tls.trust(authentication(PROXIES, CLIENTS))
        assert [is_accepted(port, tmp_path, shown) for shown in (old, new, client, None)] == [True, False, True, True]

        tls.trust(authentication(renewed, CLIENTS))

        assert [is_accepted(port, tmp_path, shown) for shown in (old, new, client, None)] == [False, True, True, True]


def test_client_cas_count_also_for_clients_that_name_no_server(tmp_path: Path) -> None:
    """kube-apiserver sends the Service's name, but a probe by address sends none."""
    tls = ServingTls(serving_pair(tmp_path))
    tls.trust(authentication(PROXIES, CLIENTS))
    with accepting(tls.context) as port:
        assert handshake(port, client_context(tmp_path, PROXIES.issue("front-proxy-client")), name=None)


def test_an_intermediate_ca_may_be_all_that_the_cluster_names(tmp_path: Path) -> None:
    between = Authority("between", issuer=PROXIES)
    tls = ServingTls(serving_pair(tmp_path))
    tls.trust(authentication(between, CLIENTS))
    with accepting(tls.context) as port:
        assert is_accepted(port, tmp_path, between.issue("front-proxy-client"))


def test_no_client_certificate_is_taken_before_the_clusters_cas_are_known(tmp_path: Path) -> None:
    """Or the connection would be kept, and its user stay unknown."""
    with accepting(ServingTls(serving_pair(tmp_path)).context) as port:
        assert not is_accepted(port, tmp_path, PROXIES.issue("front-proxy-client"))
        assert is_accepted(port, tmp_path, None)


def test_a_session_is_never_resumed(tmp_path: Path) -> None:
    """It would bring back a client certificate that is not verified again."""
    context = client_context(tmp_path)
    with accepting(ServingTls(serving_pair(tmp_path)).context) as port:
        session = None
        for _ in range(2):
            with (
                socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
                context.wrap_socket(plain, session=session) as tls,
            ):
                assert tls.recv(1) == b"!"
                session = tls.session
                assert not tls.session_reused


def test_a_costly_key_exchange_is_refused(tmp_path: Path) -> None:
    """A hello of 1.2 KB with it would take 99 ms of CPU."""
    hello = ["openssl", "s_client", "-groups", "ffdhe8192", "-connect"]
    with accepting(ServingTls(serving_pair(tmp_path)).context) as port:
        ended = subprocess.run([*hello, f"127.0.0.1:{port}"], input=b"", capture_output=True, check=False)

    assert b"handshake failure" in ended.stderr


def test_a_name_of_any_bytes_costs_no_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    hello = [b"openssl", b"s_client", b"-servername", b"\xff\xfe", b"-connect"]
    with accepting(ServingTls(serving_pair(tmp_path)).context) as port:
        ended = subprocess.run([*hello, b"127.0.0.1:%d" % port], input=b"", capture_output=True, check=False)

    assert NAME.encode() in ended.stderr
    assert capfd.readouterr() == ("", "")


def test_tls_before_1_3_is_not_offered(tmp_path: Path) -> None:
    """OpenSSL would keep what a client of TLS 1.2 sent, its certificates included, after its connection has ended."""
    context = client_context(tmp_path)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with accepting(ServingTls(serving_pair(tmp_path)).context) as port:
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            handshake(port, context)
        assert handshake(port, client_context(tmp_path))


def test_a_renewed_serving_certificate_is_served_without_restart(tmp_path: Path) -> None:
    tls = ServingTls(serving_pair(tmp_path))
    with accepting(tls.context) as port:
        before = handshake(port, client_context(tmp_path))
        serving_pair(tmp_path)
        assert handshake(port, client_context(tmp_path)) == before

        tls.reload(Conditions())

        assert handshake(port, client_context(tmp_path)) != before


def test_client_cas_survive_a_renewed_serving_certificate(tmp_path: Path) -> None:
    tls = ServingTls(serving_pair(tmp_path))
    tls.trust(authentication(PROXIES, CLIENTS))
    serving_pair(tmp_path)
    tls.reload(Conditions())
    with accepting(tls.context) as port:
        assert is_accepted(port, tmp_path, PROXIES.issue("front-proxy-client"))


def test_a_broken_new_pair_is_logged_once_and_the_old_one_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = serving_pair(tmp_path)
    tls, conditions = ServingTls(files), Conditions()
    with accepting(tls.context) as port:
        before = handshake(port, client_context(tmp_path))
        serving_pair(tmp_path)
        files.key.write_bytes(SERVERS.issue("other").key_pem())
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                tls.reload(conditions)

        assert handshake(port, client_context(tmp_path)) == before
    (reported,) = [record.message for record in caplog.records]
    assert f"{files.key} is not the key of the certificate in {files.certificate}" in reported


def test_a_pair_that_vanished_keeps_the_old_one(tmp_path: Path) -> None:
    files = serving_pair(tmp_path)
    tls = ServingTls(files)
    files.certificate.unlink()
    tls.reload(Conditions())
    with accepting(tls.context) as port:
        assert handshake(port, client_context(tmp_path))


def test_a_certificate_that_one_library_refuses_stops_no_later_renewal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files, odd = serving_pair(tmp_path), SERVERS.issue(NAME, usages=(SERVER,), dns_names=(NAME,))
    tls = ServingTls(files)
    with accepting(tls.context) as port:
        before = handshake(port, client_context(tmp_path))
        files.certificate.write_bytes(version_4(odd.pem))
        files.key.write_bytes(odd.key_pem())
        tls.reload(Conditions())
        assert handshake(port, client_context(tmp_path)) == before
        assert f"{files.certificate} contains no readable certificate" in caplog.text

        serving_pair(tmp_path)
        tls.reload(Conditions())

        assert handshake(port, client_context(tmp_path)) != before


@pytest.mark.parametrize("looks", [1, 2])
def test_a_certificate_that_vanishes_between_two_steps_stops_no_later_renewal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    files, seen, read = serving_pair(tmp_path), [], Path.read_bytes
    tls = ServingTls(files)

    def read_and_delete(path: Path) -> bytes:
        content = read(path)
        seen.append(path)
        if len(seen) == looks:
            files.certificate.unlink()
        return content

    with accepting(tls.context) as port:
        before = handshake(port, client_context(tmp_path))
        serving_pair(tmp_path)
        with monkeypatch.context() as patched:
            patched.setattr(Path, "read_bytes", read_and_delete)
            tls.reload(Conditions())
        serving_pair(tmp_path)
        tls.reload(Conditions())

        assert handshake(port, client_context(tmp_path)) != before


def test_client_cas_are_rotated_while_the_serving_certificate_is_missing(tmp_path: Path) -> None:
    files = serving_pair(tmp_path)
    tls = ServingTls(files)
    files.key.unlink()
    with accepting(tls.context) as port:
        tls.trust(authentication(PROXIES, CLIENTS))

        assert is_accepted(port, tmp_path, PROXIES.issue("front-proxy-client"))


def test_comments_between_the_clusters_cas_may_have_any_letters(tmp_path: Path) -> None:
    tls = ServingTls(serving_pair(tmp_path))
    with accepting(tls.context) as port:
        tls.trust(authentication(f"# Zertifizierungsstelle für Proxys\n{PROXIES.pem}", CLIENTS))

        assert is_accepted(port, tmp_path, PROXIES.issue("front-proxy-client"))


def test_an_unusable_pair_is_refused_with_the_file(tmp_path: Path) -> None:
    files, issued = serving_pair(tmp_path), SERVERS.issue(NAME)
    files.key.write_bytes(issued.key_pem(password=b"secret"))
    with pytest.raises(CertificateUnusable, match=r"tls\.key is encrypted"):
        ServingTls(files)
    for content in (b"", b"nothing", version_4(issued.pem)):
        files.certificate.write_bytes(content)
        with pytest.raises(CertificateUnusable, match=r"tls\.crt contains no readable certificate"):
            ServingTls(files)
    files.key.unlink()
    with pytest.raises(CertificateUnusable, match=r"tls\.key cannot be read"):
        ServingTls(files)


def test_a_self_signed_pair_is_made_once_and_served(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "folder"
    files = self_signed_files(directory, (NAME, "127.0.0.1"), datetime.datetime.now(datetime.UTC))
    first = files.certificate.read_bytes()

    with accepting(ServingTls(files).context) as port:
        context = ssl.create_default_context(cafile=files.certificate)
        assert handshake(port, context)
        assert handshake(port, context, "127.0.0.1")
    assert self_signed_files(directory, ("other",), NOW).certificate.read_bytes() == first
    assert files.key.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("folder", ["file/folder", "x" * 300])
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(CertificateUnusable, match=folder):
        self_signed_files(tmp_path / folder, (NAME,), NOW)


def test_the_printed_objects_fit_each_other(tmp_path: Path) -> None:
    """The APIService's bundle verifies the Secret's certificate under the name that kube-apiserver asks for."""
    now = datetime.datetime.now(datetime.UTC)
    secret, api_service = yaml.safe_load_all(issuing.serving_manifests("lag", "kafka-lag-adapter", 30, now))
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_bytes(base64.b64decode(secret["data"][name]))
    bundle = base64.b64decode(api_service["spec"]["caBundle"]).decode()

    tls = ServingTls(PairFiles(tmp_path / "tls.crt", tmp_path / "tls.key"))
    with accepting(tls.context) as port:
        assert handshake(port, ssl.create_default_context(cadata=bundle))
    service = api_service["spec"]["service"]
    assert f"{service['name']}.{service['namespace']}.svc" == NAME
    assert (secret["type"], secret["metadata"]["namespace"]) == ("kubernetes.io/tls", "lag")


def test_the_printed_certificate_is_valid_as_long_as_asked() -> None:
    secret, api_service = yaml.safe_load_all(issuing.serving_manifests("lag", "adapter", 30, NOW))

    for text in (secret["data"]["tls.crt"], api_service["spec"]["caBundle"]):
        certificate = x509.load_pem_x509_certificate(base64.b64decode(text))
        assert certificate.not_valid_after_utc == NOW + datetime.timedelta(days=30)
