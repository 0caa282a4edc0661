"""Which certificates of a real kube-apiserver the adapter accepts. Other servers': tests/apiservice/tls."""

from pathlib import Path

import pytest
import yaml

from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import connect, send
from local.adapter import process
from local.kubernetes.control_plane import ControlPlane
from local.processes import wait_until
from tests.end_to_end.cluster.conftest import EXPIRED, VALID
from tests.support.kubernetes.authorities import Authority


def kubeconfig(plane: ControlPlane, folder: Path, authority: str, server_name: str) -> Path:
    """The administrator's, which trusts this CA and asks for this name."""
    document = yaml.safe_load(plane.admin_kubeconfig.read_text())
    ca, file = folder / "ca.crt", folder / "kubeconfig"
    ca.write_text(authority)
    document["clusters"][0]["cluster"] |= {"certificate-authority": str(ca), "tls-server-name": server_name}
    file.write_text(yaml.safe_dump(document))
    return file


def test_an_adapter_reads_from_a_kube_apiserver_whose_ca_has_no_key_identifiers(
    plane: ControlPlane, old_authority: Authority, tmp_path: Path
) -> None:
    settings = {"clusters": [{"name": "absent", "bootstrapServers": ["127.0.0.1:1"]}]}
    with process(tmp_path, settings, kubeconfig(plane, tmp_path, old_authority.pem, VALID)) as running:
        wait_until(
            lambda: b"[+]authentication-settings ok" in running.get_plain("/readyz?verbose")[1],
            "the ConfigMap from kube-apiserver",
            180,
        )


def test_a_kube_apiserver_with_another_certificate_is_refused_in_a_sentence(
    plane: ControlPlane, old_authority: Authority, tmp_path: Path
) -> None:
    def refusal(authority: str, server_name: str) -> str:
        with pytest.raises(ClusterUnreachable) as caught:
            send(connect(kubeconfig(plane, tmp_path, authority, server_name)), "GET", "/version")
        return str(caught.value).removeprefix("the Kubernetes API server cannot be reached: it has a certificate ")

    created_again = Authority("kubernetes", has_key_identifiers=False)
    untrusted = "of an authority that is not trusted here (the CA in its kubeconfig or service account)"
    assert refusal(old_authority.pem, EXPIRED) == "that has expired"
    assert refusal(plane.cluster_ca.read_text(), "wrong.example") == "that does not cover the host name wrong.example"
    assert refusal(old_authority.pem, "kubernetes") == untrusted
    assert refusal(created_again.pem, VALID) == untrusted
