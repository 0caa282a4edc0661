"""The way of docs/install.md, with the adapter in its image."""

import pytest

from local.images.built import Images
from local.images.container import of_manifests
from tests.end_to_end.cluster.test_walk import hpa, test_with_helm_beside_another_server_and_then_in_its_place, walked
from tests.support.real.applied import Runner
from tests.support.real.in_image import in_image

__all__ = ["hpa", "test_with_helm_beside_another_server_and_then_in_its_place", "walked"]


@pytest.fixture
def runner(images: Images) -> Runner:
    return in_image(images.adapter, of_manifests())
