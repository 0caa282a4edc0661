from collections.abc import Iterator
from pathlib import Path

import pytest

from apiservice.upstream import client, live
from tests.support.kubernetes.authorities import Authority
from tests.support.kubernetes.beside import Beside, resolve_here
from tests.support.kubernetes.other_server import OtherServer


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Beside]:
    """Its list is renewed only when a test does it, and it has the time for an answer that a busy machine needs."""
    resolve_here(monkeypatch)
    for module, name in ((client, "CONNECT_SECONDS"), (client, "ANSWER_SECONDS"), (live, "ANSWER_SECONDS")):
        monkeypatch.setattr(module, name, 60.0)
    authority = Authority("others-ca")
    with OtherServer(tmp_path, authority) as other:
        made = Beside(other, authority, tmp_path)
        yield made
        if other.answer.gate is not None:
            other.answer.gate.set()
        made.upstreams.stop(60)
