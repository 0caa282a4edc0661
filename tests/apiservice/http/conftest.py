from collections.abc import Iterator
from pathlib import Path

import pytest

from apiservice.http.protocol import Limits
from tests.support.kubernetes.listeners import Running, serving


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path, Limits()) as started:
        yield started
