"""The floor: a FastAPI route that returns a constant, on uvicorn as the adapter configures it.

`python -m benchmarks.rig.bare_route --port P --certificate F --key F --body F`. It can have its own APIService, so
that kube-apiserver forwards to it as it does to the adapter."""

import argparse
import ssl
from collections.abc import Sequence
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Response

from apiservice.http.protocol import KEEP_ALIVE_SECONDS

GROUP = "bare.benchmarks.local"
VERSION = "v1"
RESOURCE = "constants"
PATH = f"/apis/{GROUP}/{VERSION}/namespaces/default/{RESOURCE}"


def bare_app(body: bytes) -> FastAPI:
    """Returns an app with one route for these bytes, and what kube-apiserver needs to find its API group available."""
    app = FastAPI(openapi_url=None)
    constant = Response(body, media_type="application/json")
    resource = {"name": RESOURCE, "singularName": "", "namespaced": True, "kind": "Constant", "verbs": ["get", "list"]}
    version = {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}
    resources = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version["groupVersion"]}

    @app.get(PATH)
    async def read() -> Response:
        return constant

    @app.get(f"/apis/{GROUP}/{VERSION}")
    async def discover() -> dict[str, object]:
        return {**resources, "resources": [resource]}

    return app


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    for name in ("certificate", "key", "body"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    flags = parser.parse_args(arguments)
    # No client certificate is requested here, whatever front proxy kube-apiserver uses.
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(flags.certificate, flags.key)
    uvicorn.run(
        bare_app(flags.body.read_bytes()),
        host="127.0.0.1",
        port=flags.port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        ssl_context_factory=lambda _config, _default: tls,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )


if __name__ == "__main__":
    main()
