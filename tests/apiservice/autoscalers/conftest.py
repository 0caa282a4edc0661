import pytest

from tests.support.kubernetes.activating import World


@pytest.fixture
def world() -> World:
    return World()
