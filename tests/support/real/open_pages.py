"""Pages that a real browser opens, and what it sees of them."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTRAST = """
(() => {
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = element => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parts(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const ratio = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const lines = [...document.querySelectorAll("svg .line")].map(each => [getComputedStyle(each).stroke, each]);
  const texts = [...document.body.querySelectorAll("*")]
    .filter(each => [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
    .map(each => [getComputedStyle(each).color, each]);
  const least = found => Math.min(...found.map(([colour, each]) => ratio(parts(colour), behind(each))));
  return {texts: least(texts), lines: least(lines), paper: light(behind(document.body))};
})()
"""
"""The least ratio of contrast, as WCAG 2 has it, of all texts and of all small lines with what is behind them."""
MADE_OF_NAMES = """
[...document.querySelectorAll("*")].filter(each =>
  /^(script|img|iframe|object|embed|form|input|base|video|audio)$/i.test(each.tagName)
  || [...each.attributes].some(one => /^on|^autofocus$|^style$/i.test(one.name) || /^\\s*javascript:/i.test(one.value))
).map(each => each.outerHTML)
"""
"""Elements and attributes that no template of ours makes."""
ELSEWHERE = "[...document.links].map(each => each.href).filter(each => !each.startsWith(location.origin))"
SCROLLS_SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@contextlib.contextmanager
def served(pages: Mapping[str, bytes], headers: Mapping[str, str]) -> Iterator[str]:
    """Serves each page at its path on 127.0.0.1 and yields the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path)
            self.send_response(404 if body is None else 200)
            for name, value in {"content-type": "text/html; charset=utf-8", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="pages")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
