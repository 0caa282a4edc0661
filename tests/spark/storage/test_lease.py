"""One run at a time works on a location in a bucket: real processes, a real S3 server."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pytest

from local.processes import wait_until
from local.s3.object_store import OWNER, STRANGER
from spark.errors import Unavailable, Unusable
from spark.storage import lease
from spark.storage.location import files_at
from tests.support.history.fake_store import FakeStore
from tests.support.history.real_bucket import RealBucket

EXPIRY_SECONDS = 10.0
HOLDER = f"""
import sys
from spark.errors import ReportError
from spark.storage import lease
from spark.storage.location import files_at
lease.EXPIRY_SECONDS = {EXPIRY_SECONDS}
with files_at(sys.argv[1]).reserved() as check:
    print("held", flush=True)
    for _ in sys.stdin:
        try:
            check()
            print("still held", flush=True)
        except ReportError as error:
            print(error, flush=True)
"""


class Holder:
    """A process that has reserved a location."""

    def __init__(self, process: "subprocess.Popen[str]", stdin: IO[str], stdout: IO[str]) -> None:
        self.process, self._stdin, self._stdout = process, stdin, stdout

    def says(self) -> str:
        return self._stdout.readline().rstrip("\n")

    def checks(self) -> str:
        self._stdin.write("\n")
        self._stdin.flush()
        return self.says()


@contextmanager
def started(location: str) -> Iterator[Holder]:
    command = [sys.executable, "-c", HOLDER, location]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Holder(process, process.stdin, process.stdout)
        finally:
            process.kill()


@contextmanager
def holder(location: str) -> Iterator[Holder]:
    with started(location) as running:
        assert running.says() == "held"
        yield running


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "EXPIRY_SECONDS", EXPIRY_SECONDS)


def can_be_reserved(location: str) -> bool:
    try:
        with files_at(location).reserved():
            return True
    except Unavailable:
        return False


@pytest.mark.usefixtures("quick")
def test_a_second_run_is_refused_for_as_long_as_the_first_one_renews(real_bucket: RealBucket) -> None:
    with holder(real_bucket.location) as first:
        assert not can_be_reserved(real_bucket.location)
        seen: set[bytes] = set()

        def has_been_renewed() -> bool:
            seen.add((real_bucket.folder / lease.NAME).read_bytes())
            return len(seen) > lease.RENEWALS + 2

        wait_until(has_been_renewed, "more than the time after which it would have expired", 60)
        sentence = rf"^another run compacts {real_bucket.location}: it was alive \d s ago; "
        with pytest.raises(Unavailable, match=sentence), files_at(real_bucket.location).reserved():
            pass
        assert first.checks() == "still held"


@pytest.mark.usefixtures("quick")
def test_a_run_that_was_killed_is_forgotten(real_bucket: RealBucket) -> None:
    with holder(real_bucket.location) as first:
        first.process.kill()
        first.process.wait()
        killed_at = time.monotonic()

        # A busy machine may take longer to ask than the reservation lasts.
        assert not can_be_reserved(real_bucket.location) or time.monotonic() - killed_at > EXPIRY_SECONDS / 2
        wait_until(lambda: can_be_reserved(real_bucket.location), "the reservation to expire", 60)


@pytest.mark.usefixtures("quick")
def test_a_run_that_was_frozen_does_not_publish_when_another_one_has_taken_over(real_bucket: RealBucket) -> None:
    with holder(real_bucket.location) as first:
        first.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: can_be_reserved(real_bucket.location), "the reservation to expire", 60)
        first.process.send_signal(signal.SIGCONT)

        assert first.checks() == (
            f"{real_bucket.location}: the reservation could not be renewed; another run may have taken over"
        )


def test_of_many_that_take_over_at_once_one_succeeds(real_bucket: RealBucket) -> None:
    with holder(real_bucket.location) as first:
        first.process.kill()
    left = real_bucket.folder / lease.NAME
    wait_until(lambda: time.time() - left.stat().st_mtime > EXPIRY_SECONDS + 1, "the reservation to expire", 60)

    with ExitStack() as stack:
        runs = [stack.enter_context(started(real_bucket.location)) for _ in range(4)]
        said = [run.says() for run in runs]

    assert sorted(said) == ["", "", "", "held"]


def test_nothing_is_left_of_a_reservation(real_bucket: RealBucket) -> None:
    with files_at(real_bucket.location).reserved() as check:
        check()

    assert real_bucket.content() == {}


def test_conditional_writes_find_the_keys_of_a_profile_as_pyarrow_does(
    real_bucket: RealBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    keys = f"aws_access_key_id = {OWNER.access_key}\naws_secret_access_key = {OWNER.secret_key}\n"
    (tmp_path / "credentials").write_text(f"[default]\naws_access_key_id = nobody\n[lag]\n{keys}")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "lag")
    files = files_at(real_bucket.location)
    files.write("file", "text")

    with files.reserved():
        assert files.read("file") == "text"


@pytest.mark.usefixtures("real_bucket")
def test_a_bucket_that_is_not_there_cannot_be_reserved() -> None:
    with pytest.raises(Unusable, match=r"^s3://nothing/history: "), files_at("s3://nothing/history").reserved():
        pass


def test_without_permission_nothing_is_reserved(real_bucket: RealBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in STRANGER.environment(real_bucket.server.url).items():
        monkeypatch.setenv(name, value)

    with pytest.raises(Unusable, match=f"^{real_bucket.location}: "), files_at(real_bucket.location).reserved():
        pass


def test_a_store_that_ignores_conditions_is_refused(store: FakeStore) -> None:
    store.ignores_conditions = True

    with pytest.raises(Unusable, match="no conditional writes"), files_at("s3://lag/history").reserved():
        pass


@pytest.mark.usefixtures("real_bucket")
def test_an_endpoint_that_is_away_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")

    with pytest.raises(Unavailable, match=r"^s3://lag/history: "), files_at("s3://lag/history").reserved():
        pass
