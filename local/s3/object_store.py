"""A real S3 server on 127.0.0.1, versitygw: one process, which keeps each bucket as a folder.

An `ObjectStore` in an empty folder can be killed, frozen and started again."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from local.downloads import object_store_binary
from local.processes import Process, free_port, is_listening, start, wait_until

START_TIMEOUT_SECONDS = 180.0
REGION = "eu-central-1"


@dataclass(frozen=True, slots=True)
class Account:
    access_key: str
    secret_key: str

    def environment(self, url: str) -> dict[str, str]:
        """Returns the variables that every S3 client reads; no client asks whether it runs on a provider's instance."""
        return {
            "AWS_ENDPOINT_URL": url,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_EC2_METADATA_DISABLED": "true",
        }


OWNER = Account("owner", "owners-secret")
STRANGER = Account("stranger", "strangers-secret")
"""May log in, but may not read or write."""


@dataclass(slots=True)
class ObjectStore:
    home: Path
    port: int = field(default_factory=free_port)
    process: Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def bucket(self, name: str) -> Path:
        """Creates the bucket if it is missing. Returns its folder, in which each object is a file."""
        folder = self.home / "buckets" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def start(self) -> None:
        """Starts the process and waits until it answers. It finds what it kept before.

        Without --keep-alive, which misreads the request that follows a PUT with a trailing checksum, and without
        --sidecar, which replaces an object and its metadata one after the other."""
        arguments = ["--port", f"127.0.0.1:{self.port}", "--region", REGION, "--quiet"]
        arguments += ["--iam-dir", str(self.home / "accounts")]
        keys = {"ROOT_ACCESS_KEY": OWNER.access_key, "ROOT_SECRET_KEY": OWNER.secret_key}
        command = [str(object_store_binary()), *arguments, "posix", str(self.home / "buckets")]
        self.process = start("object store", command, log=self.home / "log", env=keys)
        wait_until(
            lambda: is_listening(self.port), "the object store to listen", START_TIMEOUT_SECONDS, alive=[self.process]
        )

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()


@contextlib.contextmanager
def object_store(home: Path) -> Iterator[ObjectStore]:
    """Runs a server and ends it with the block. Raises RigError if it does not start; its log is in `home`."""
    for name in ("buckets", "accounts"):
        (home / name).mkdir(parents=True)
    users = {STRANGER.access_key: {"access": STRANGER.access_key, "secret": STRANGER.secret_key, "role": "user"}}
    (home / "accounts" / "users.json").write_text(json.dumps({"accessAccounts": users}))
    store = ObjectStore(home)
    store.start()
    try:
        yield store
    finally:
        store.stop()
