"""`python -m local.demo.status_picture`: the pictures of docs/status.md, light, dark and on a phone.

A real Chromium opens the page of a real adapter through a real kube-apiserver, after some minutes of work."""

import sys
from pathlib import Path

from local.browser import PHONE, OpenPage, Screen, browser
from local.demo import pictures, scenario
from local.demo.shop import NAMES, shop
from local.kubernetes.control_plane import ControlPlane
from local.manifests.shipped import NAME

SECONDS = 200
PICTURES = {
    "status.png": Screen(height=600),
    "status-dark.png": Screen(height=600, is_dark=True),
    "status-phone.png": PHONE,
}
"""Each has the whole page, but on a phone it is very long, so that one ends below a group."""
GROUPS_ON_PHONE = 3
BELOW = "Math.ceil(document.querySelectorAll('tbody tr')[{}].getBoundingClientRect().bottom)"
"""Where a group's row ends, counted from 0."""


def main() -> int:
    return pictures.run("status_picture", _make, SECONDS, "how long the groups work")


def _make(home: Path, seconds: int, folder: Path) -> None:
    with shop(home) as opened:
        opened.work(seconds)
        _photograph(opened.plane, home, folder)


def _photograph(plane: ControlPlane, home: Path, folder: Path) -> None:
    headers = {"Authorization": f"Bearer {_token(plane)}"}
    with browser(home / "chromium") as opened:
        for file, screen in PICTURES.items():
            page = opened.open(f"{plane.url}{scenario.page_path(NAMES)}", screen, headers)
            page.evaluate(f"document.querySelector('#replica').textContent = '{NAME}-6f9d8'")  # not this machine's name
            (folder / file).write_bytes(page.picture(height=_beginning(page) if screen is PHONE else None))
            print(folder / file)


def _beginning(page: OpenPage) -> int:
    return int(page.evaluate(BELOW.format(GROUPS_ON_PHONE - 1)))


def _token(plane: ControlPlane) -> str:
    """Of a ServiceAccount that may read metrics."""
    named = {"name": "visitor", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{NAME}-metrics-reader"}
    binding = {"roleRef": role, "subjects": [{"kind": "ServiceAccount", **named}], "metadata": {"name": "visitor"}}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    plane.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named}, {**kind, **binding}])
    return plane.token_of("default", "visitor")


if __name__ == "__main__":
    sys.exit(main())
