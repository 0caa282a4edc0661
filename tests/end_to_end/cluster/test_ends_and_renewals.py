"""How the adapter ends, and how it lives on while certificates change."""

import json
import signal
import time
from pathlib import Path

import urllib3
import yaml

from apiservice.api_group import API_GROUPS
from local.adapter import (
    Adapter,
    is_available,
    new_serving,
    own_kubeconfig,
    process,
    shipped,
)
from local.forwarder import forwarder
from local.kafka.broker import Kafka
from local.kubernetes.control_plane import ControlPlane
from local.processes import wait_until
from tests.support.real.groups_to_read import LAG, path, settings


def test_a_read_under_way_at_sigterm_is_finished_and_the_end_is_in_time(
    control_plane: ControlPlane, one_broker: Kafka, tmp_path: Path
) -> None:
    """The read waits for kube-apiserver, which is asked who the caller is and says nothing for as long as it may."""
    own = own_kubeconfig(control_plane)
    headers = {"Authorization": f"Bearer {_token(own)}"}
    with forwarder(control_plane.port) as door:
        door.release()
        kubeconfig = tmp_path / "through-the-door"
        kubeconfig.write_text(own.read_text().replace(control_plane.url, f"https://127.0.0.1:{door.port}"))
        with process(tmp_path, settings(one_broker), kubeconfig) as running:
            wait_until(running.is_ready, "the adapter to be ready", 180, alive=[running.process])
            door.hold()
            # The connection is made and the request is sent before the signal; what else the adapter may be asking
            # kube-apiserver at this moment does not matter.
            with running.sent(path("default", LAG), headers) as answer:
                wait_until(lambda: door.is_holding_something, "the question about the caller", 180)
                running.process.send(signal.SIGTERM)
                signalled_at = time.monotonic()
                code, body = answer()
            status = running.process.wait(60)

            assert status == 0, running.process.log_tail()
            # When the kubelet would kill it, and what a busy machine may add.
            assert time.monotonic() - signalled_at < 20 + 30
            assert "Traceback" not in running.process.log.read_text()
    assert (code, "did not answer within" in json.loads(body)["message"]) == (503, True)


def test_a_renewed_certificate_is_served_and_verified_without_a_restart(
    control_plane: ControlPlane, adapter: Adapter
) -> None:
    before = adapter.serving.pair.certificate.read_bytes()
    renewed = new_serving(adapter.settings.parent)
    assert renewed.pair.certificate == adapter.serving.pair.certificate
    assert renewed.pair.certificate.read_bytes() != before

    # The new authority is in the file that direct requests are verified with.
    wait_until(lambda: _is_verified(adapter), "the adapter to serve the renewed certificate", 180)
    documents = shipped(adapter.port, renewed.ca_bundle, API_GROUPS)
    control_plane.apply([each for each in documents if each["kind"] == "APIService"])

    def reads() -> bool:
        is_verified = all(is_available(control_plane, group) for group in API_GROUPS)
        return is_verified and control_plane.raw(path("default", LAG))[0] == 200

    wait_until(reads, "kube-apiserver to verify the renewed certificate", 180)


def _is_verified(adapter: Adapter) -> bool:
    try:
        return adapter.get("/livez")[0] == 200
    except urllib3.exceptions.SSLError:
        return False


def _token(kubeconfig: Path) -> str:
    return str(yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"])
