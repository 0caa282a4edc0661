"""`python -m local.demo.dashboard_pictures`: the pictures of the dashboards in docs/series.md. Needs npm.

A real Prometheus scrapes a real adapter while five groups work for some minutes. Each panel's query is asked of it, and
a page draws the answers by the panel's JSON, with Grafana's components from npm: it is not Grafana that draws."""

import json
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from local.browser import Browser, Screen, browser
from local.demo import pictures
from local.demo.shop import NAMES, shop
from local.downloads import cached, digest
from local.manifests.dashboards import dashboards
from local.processes import RigError, wait_until
from local.prometheus import Prometheus, prometheus
from local.steps import run_step

SECONDS = 600
FIRST_SECONDS = 300
"""Not drawn: the longest window of a query is as long."""
STEP_SECONDS = 5
SERIES = {"series": {"by": "topic"}}
PATHS = ("/metrics", "/metrics/groups")
SOURCE = Path(__file__).with_name("dashboards")
NPM_NEEDS_BYTES = 1024**3
NPM = ("npm", "install", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund")
BUNDLED = (
    "--bundle",
    "--minify",
    '--define:process.env.NODE_ENV="production"',
    "--loader:.css=text",
    "--loader:.ttf=empty",
)
FONTS = {"400": "Inter-Regular", "500": "Inter-Medium"}
"""Weight -> the name under which Grafana's styles ask for it."""
PAGE = """<!doctype html><meta charset="utf-8"><body style="margin: 0"><div id="page"></div>
<script>window.dashboard = {dashboard}</script><script src="page.js"></script>"""
SCREEN = Screen(width=1256, height=600)
DRAWN_SECONDS = 60.0

Json = dict[str, Any]


def main() -> int:
    return pictures.run("dashboard_pictures", _draw, SECONDS, "how much of the work is drawn")


def _draw(home: Path, seconds: int, folder: Path) -> None:
    site = shutil.copytree(_bundle(), home / "site")
    with shop(home, SERIES) as opened:
        targets = [{"targets": [f"127.0.0.1:{opened.adapter.metrics_port}"]}]
        jobs = [{"job_name": path, "metrics_path": path, "static_configs": targets} for path in PATHS]
        with prometheus(home / "prometheus", jobs) as scraping, browser(home / "chromium") as shown:
            opened.work(FIRST_SECONDS + seconds)
            now = time.time()
            for name, shipped in dashboards(NAMES.group).items():
                dashboard = filled(shipped, scraping, now - seconds, now)
                (page := site / f"{name}.html").write_text(PAGE.format(dashboard=json.dumps(dashboard)))
                (picture := folder / f"dashboard-{name}.png").write_bytes(_picture(shown, page, dashboard))
                print(picture)


def filled(dashboard: Json, scraping: Prometheus, begin: float, end: float) -> Json:
    """Returns the dashboard with the series of each panel. Raises RigError if a query is refused."""
    panels = [{**panel, "series": list(_series(panel, scraping, begin, end))} for panel in dashboard["panels"]]
    return {**dashboard, "panels": panels, "from": begin * 1000, "to": end * 1000}


def _series(panel: Json, scraping: Prometheus, begin: float, end: float) -> Iterator[Json]:
    for target in panel["targets"]:
        for labels, samples in scraping.query_range(
            target["expr"], end if target.get("instant") else begin, end, STEP_SECONDS
        ):
            name = _legend(target["legendFormat"], labels)
            yield {"name": name, "times": [at * 1000 for at, _ in samples], "values": [value for _, value in samples]}


def _legend(text: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda label: labels.get(label[1], ""), text)


def _picture(shown: Browser, page: Path, dashboard: Json) -> bytes:
    opened = shown.open(page.as_uri(), SCREEN)
    charts = sum(panel["type"] == "timeseries" for panel in dashboard["panels"])
    drawn = f"document.querySelectorAll('canvas').length === {charts}"
    wait_until(lambda: bool(opened.evaluate(drawn)), "the page to be drawn", DRAWN_SECONDS)
    return opened.picture()


def _bundle() -> Path:
    """Returns the folder of the page's program. Raises RigError."""
    if shutil.which("npm") is None:
        raise RigError("npm is not on PATH; Node.js brings it")
    sources = [file.read_bytes() for file in sorted(SOURCE.iterdir())]
    return cached(f"dashboards-{digest(*sources)}", NPM_NEEDS_BYTES, _build)


def _build(target: Path) -> None:
    work = shutil.copytree(SOURCE, target.with_name("work"))
    run_step("getting Grafana's components from npm (some minutes)", NPM, work / "npm.log", cwd=work)
    esbuild = [str(work / "node_modules/.bin/esbuild"), "page.jsx", f"--outfile={target}/page.js", *BUNDLED]
    run_step("bundling the page", esbuild, work / "esbuild.log", cwd=work)
    (fonts := target / "public/fonts/inter").mkdir(parents=True)
    for weight, name in FONTS.items():
        font = work / f"node_modules/@fontsource/inter/files/inter-latin-{weight}-normal.woff2"
        shutil.copy(font, fonts / f"{name}.woff2")


if __name__ == "__main__":
    sys.exit(main())
