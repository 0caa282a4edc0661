"""A small OIDC token endpoint: signed JWTs for client credentials. `python -m local.kafka.token_server --help`

Brokers verify the tokens with the public key, which is beside the private one as a JSON Web Key Set."""

import argparse
import base64
import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote_plus

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from local.processes import free_port, start, wait_until

KEY_ID = "local"


@dataclass(frozen=True, slots=True)
class TokenServer:
    endpoint: str
    log: Path
    """One line for each token that was issued or refused."""

    @property
    def issued(self) -> int:
        return self.log.read_text().count("issued")


@contextlib.contextmanager
def token_server(
    home: Path, key: Path, client: str, secret_file: Path, lifetime_seconds: float = 300.0
) -> Iterator[TokenServer]:
    """Runs the endpoint; the client's secret is read from its file at each request."""
    port, log = free_port(), home / "token-server.log"
    command = [sys.executable, "-m", "local.kafka.token_server", f"--port={port}", f"--key={key}", f"--client={client}"]
    options = [f"--secret-file={secret_file}", f"--lifetime={lifetime_seconds}"]
    with start("token server", [*command, *options], log=log) as process:
        wait_until(lambda: "listening" in log.read_text(), "the token server", 180, alive=[process])
        yield TokenServer(f"http://127.0.0.1:{port}/token", log)


def new_signing_key(file: Path) -> Path:
    """Creates a private key, and its public half with the suffix .jwks."""
    key = rsa.generate_private_key(65537, 2048)
    file.touch(mode=0o600)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file.write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    numbers = key.public_key().public_numbers()
    public = {
        "kty": "RSA",
        "use": "sig",
        "alg": "RS256",
        "kid": KEY_ID,
        "n": _number(numbers.n),
        "e": _number(numbers.e),
    }
    file.with_suffix(".jwks").write_text(json.dumps({"keys": [public]}))
    return file


def signed(key: rsa.RSAPrivateKey, claims: Mapping[str, object]) -> str:
    header = {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}
    content = ".".join(_text(json.dumps(part).encode()) for part in (header, claims))
    return f"{content}.{_text(key.sign(content.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _number(number: int) -> str:
    return _text(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class _Handler(BaseHTTPRequestHandler):
    key: rsa.RSAPrivateKey
    client: str
    secret_file: Path
    lifetime: float

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        login = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        client, _, secret = login.partition(":")
        if form.get("grant_type") != ["client_credentials"]:
            self._reply(400, {"error": "unsupported_grant_type"})
        elif (unquote_plus(client), unquote_plus(secret)) != (self.client, self.secret_file.read_text()):
            self._reply(401, {"error": "invalid_client", "error_description": "unknown client or wrong secret"})
        else:
            now = int(time.time())
            claims = {"iss": "local", "aud": "kafka", "sub": self.client, "iat": now, "exp": now + self.lifetime}
            claims["scope"] = form.get("scope", ["default"])[0]
            reply = {"access_token": signed(self.key, claims), "token_type": "Bearer", "expires_in": self.lifetime}
            self._reply(200, reply)

    def _reply(self, status: int, content: Mapping[str, object]) -> None:
        body = json.dumps(content).encode()
        sys.stdout.write("issued\n" if status == 200 else f"refused {content['error']}\n")
        sys.stdout.flush()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--client", required=True)
    parser.add_argument("--secret-file", type=Path, required=True)
    parser.add_argument("--lifetime", type=float, default=300.0)
    arguments = parser.parse_args()
    key = serialization.load_pem_private_key(arguments.key.read_bytes(), password=None)
    settings = {"client": arguments.client, "secret_file": arguments.secret_file, "lifetime": arguments.lifetime}
    handler = type("Handler", (_Handler,), {"key": key, **settings})
    with ThreadingHTTPServer(("127.0.0.1", arguments.port), handler) as server:
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


if __name__ == "__main__":
    main()
