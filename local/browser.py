"""A headless Chromium on this machine, which opens pages: what they ask for, what their console says, how they look.

The command on PATH is used if it is there, and otherwise apt-get installs Debian's package. No name but those of this
machine has an address in it, so that a page that asks for something elsewhere gets nothing."""

import base64
import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from websocket import WebSocket, WebSocketTimeoutException, create_connection

from local.downloads import cache_folder, locked
from local.processes import Process, RigError, start, wait_until
from local.steps import run_step

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core")
START_TIMEOUT_SECONDS = 120.0
ANSWER_TIMEOUT_SECONDS = 120.0
FLAGS = (
    "--headless",
    "--no-sandbox",  # of no use to root, as whom tests may run
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--ignore-certificate-errors",
    "--remote-debugging-port=0",
    "about:blank",
)

Json = dict[str, Any]


class NoBrowser(RigError):
    """No Chromium is on this machine, and none can be installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """In CSS pixels."""

    width: int = 1240
    height: int = 900
    is_dark: bool = False
    scale: float = 1.0
    """Pixels of a picture for each."""


DESKTOP, PHONE = Screen(), Screen(width=360, height=740)


@dataclass(slots=True)
class OpenPage:
    """A page that has been loaded."""

    _browser: "Browser"
    _session: str
    requests: list[str] = field(default_factory=list)
    """Their URLs, that of the page first."""
    complaints: list[str] = field(default_factory=list)
    """Errors and warnings on the console, and exceptions; among them what a Content-Security-Policy forbids."""

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401 - whatever the expression has
        """Returns the value of an expression of JavaScript, which the page's policy does not affect."""
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self._browser.call("Runtime.evaluate", asked, self._session)
        if "exceptionDetails" in answer:
            raise RigError(f"the page cannot evaluate {expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def picture(self, *, height: int | None = None) -> bytes:
        """Returns the page as PNG: however long it is, or so many pixels of it from the top. Raises RigError if it
        complains."""
        if self.complaints:
            raise RigError(f"the page complains: {self.complaints}")
        asked: Json = {"format": "png", "captureBeyondViewport": True}
        if height is not None:
            width = self.evaluate("document.documentElement.clientWidth")
            asked["clip"] = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        return base64.b64decode(self._browser.call("Page.captureScreenshot", asked, self._session)["data"])


class Browser:
    """Made by `browser`. One page is open at a time, and pages share nothing with each other."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket, self._numbers = socket, count(1)
        self._pages: dict[str, OpenPage] = {}
        self._loaded: set[str] = set()
        self._context = ""

    def open(self, url: str, screen: Screen = DESKTOP, headers: Mapping[str, str] | None = None) -> OpenPage:
        """Returns the page once it has been loaded, and closes the one before; raises RigError if it cannot be."""
        if self._context:
            self.call("Target.disposeBrowserContext", {"browserContextId": self._context})
        self._context = self.call("Target.createBrowserContext", {})["browserContextId"]
        blank = {"url": "about:blank", "browserContextId": self._context}
        target = self.call("Target.createTarget", blank)["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self._pages = {session: (page := OpenPage(self, session))}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", {}, session)
        size = {"width": screen.width, "height": screen.height, "deviceScaleFactor": screen.scale, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", size, session)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if screen.is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", {"features": [scheme]}, session)
        self.call("Network.setExtraHTTPHeaders", {"headers": dict(headers or {})}, session)
        self._loaded.discard(session)
        answer = self.call("Page.navigate", {"url": url}, session)
        if "errorText" in answer:
            raise RigError(f"{url} cannot be opened: {answer['errorText']}")
        self._receive(lambda: session in self._loaded, f"{url} to be loaded")
        return page

    def call(self, method: str, asked: Json, session: str = "") -> Json:
        number, answers = next(self._numbers), dict[int, Json]()
        message = {"id": number, "method": method, "params": asked} | ({"sessionId": session} if session else {})
        self._socket.send(json.dumps(message))
        self._receive(lambda: number in answers, f"the answer to {method}", answers)
        answer = answers[number]
        if "error" in answer:
            raise RigError(f"Chromium refuses {method}: {answer['error']['message']}")
        result: Json = answer["result"]
        return result

    def _receive(self, is_over: Callable[[], bool], what: str, answers: dict[int, Json] | None = None) -> None:
        deadline = time.monotonic() + ANSWER_TIMEOUT_SECONDS
        while not is_over():
            self._socket.settimeout(max(deadline - time.monotonic(), 0.01))
            try:
                message = json.loads(self._socket.recv())
            except WebSocketTimeoutException as error:
                raise RigError(f"waited {ANSWER_TIMEOUT_SECONDS:g} s in vain for {what}") from error
            if "id" not in message:
                self._note(message)
            elif answers is not None:
                answers[message["id"]] = message

    def _note(self, event: Json) -> None:
        session, said = event.get("sessionId", ""), event.get("params", {})
        page = self._pages.get(session)
        if page is None:
            return
        match event["method"]:
            case "Page.loadEventFired":
                self._loaded.add(session)
            case "Network.requestWillBeSent":
                page.requests.append(said["request"]["url"])
            case "Log.entryAdded" if said["entry"]["level"] in {"error", "warning"}:
                page.complaints.append(f"{said['entry']['text']} {said['entry'].get('url', '')}")
            case "Runtime.consoleAPICalled":
                page.complaints.append(f"console.{said['type']}: {said['args']}")
            case "Runtime.exceptionThrown":
                page.complaints.append(said["exceptionDetails"]["text"])


@contextlib.contextmanager
def browser(home: Path) -> Iterator[Browser]:
    """Runs one that keeps its files below `home`. Raises RigError, and NoBrowser if there is none to run."""
    home.mkdir(parents=True)
    ports = home / "DevToolsActivePort"
    command = [_program(), f"--user-data-dir={home}", *FLAGS]
    with start("Chromium", command, log=home / "chromium.log") as process:
        wait_until(lambda: _listens(ports), "Chromium to listen", START_TIMEOUT_SECONDS, alive=[process])
        with contextlib.closing(_connected(ports, process)) as socket:
            yield Browser(socket)


def _listens(ports: Path) -> bool:
    return ports.exists() and len(ports.read_text().split()) == 2


def _connected(ports: Path, process: Process) -> WebSocket:
    port, path = ports.read_text().split()
    try:
        return create_connection(
            f"ws://127.0.0.1:{port}{path}", timeout=ANSWER_TIMEOUT_SECONDS, suppress_origin=True, http_no_proxy=["*"]
        )
    except OSError as error:
        raise RigError(f"Chromium does not answer: {error}; the end of its log:\n{process.log_tail()}") from error


def _program() -> str:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with locked(cache_folder() / "browser.lock"):
        if (found := _found()) is None:
            try:
                _install(cache_folder() / "browser.log")
            except RigError as error:
                raise NoBrowser(str(error)) from error
            found = _found()
    if found is None:
        raise NoBrowser(f"Debian's package {PACKAGES[0]} brought no program.")
    return found


def _found() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def _install(log: Path) -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise RigError("No Chromium is on PATH, and Debian's package can only be installed by root with apt-get.")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    waiting = ("-o", "DPkg::Lock::Timeout=600")
    run_step("updating apt's lists", ["apt-get", *waiting, "update"], log, quiet)
    install = ["apt-get", *waiting, "install", "--yes", "--no-install-recommends", *PACKAGES]
    run_step("installing Chromium, Debian's package (about 80 MB; once)", install, log, quiet)
