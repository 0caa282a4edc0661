"""`python -m local.demo.report_picture`: the picture of docs/report.md, of what `make report-demo` made.

A real Chromium opens the page from its file."""

import sys
from pathlib import Path

from local.browser import Screen, browser
from local.demo.pictures import DOCS
from local.demo.report import FOLDER
from local.processes import RigError, exit_on_sigterm, scratch

REPORT = FOLDER / "report" / "report.html"
PICTURE = DOCS / "report.png"
SCREEN = Screen(width=1280)
BELOW_FIRST_CHARTS = "Math.ceil(document.querySelector('figure').getBoundingClientRect().bottom) + 16"


def main() -> int:
    try:
        with exit_on_sigterm(), scratch("picture") as home:
            PICTURE.write_bytes(picture_of(REPORT, home))
    except RigError as error:
        print(f"No picture: {error}", file=sys.stderr)
        return 1
    print(PICTURE)
    return 0


def picture_of(report: Path, home: Path, screen: Screen = SCREEN) -> bytes:
    """Raises RigError if there is no report, or if the page complains."""
    if not report.exists():
        raise RigError(f"there is no {report}; `make report-demo` makes it")
    with browser(home / "chromium") as opened:
        page = opened.open(report.as_uri(), screen)
        return page.picture(height=int(page.evaluate(BELOW_FIRST_CHARTS)))


if __name__ == "__main__":
    sys.exit(main())
