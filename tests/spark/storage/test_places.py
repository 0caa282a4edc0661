"""A location that cannot be used: status 2, in at most three lines."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from local.s3.object_store import OWNER, STRANGER, Account
from spark.errors import Unusable
from spark.storage import location
from spark.storage.local import LocalFiles
from spark.storage.location import files_at
from spark.storage.report_output import output_at
from tests.support.history.fake_store import fake_store
from tests.support.history.real_bucket import RealBucket

pytestmark = pytest.mark.spark
NOWHERE = "http://127.0.0.1:1"
UNKNOWN = "http://no-such-host.invalid"


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def refused(place: str, environment: Mapping[str, str]) -> str:
    """What both commands say, without the process."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment.items():
            patched.setenv(name, value)
        with pytest.raises(Unusable) as raised:
            location.reached(place)
    return str(raised.value)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("/nowhere/history", "/nowhere/history does not exist"),
        ("/etc/hostname", "/etc/hostname is not a folder"),
    ],
)
def test_what_is_no_location_is_said(place: str, said: str) -> None:
    assert refused(place, {}).startswith(said)


@pytest.mark.parametrize(
    ("account", "url", "said"),
    [
        (Account("owner", "wrong"), None, "access is denied: HeadObject"),
        (Account("nobody", "nothing"), None, "access is denied: HeadObject"),
        (STRANGER, None, "access is denied: HeadObject"),
        (OWNER, NOWHERE, "Could not connect to server"),
        (OWNER, UNKNOWN, "Could not resolve host"),
    ],
    ids=["wrong secret", "unknown key", "no permission", "nobody listens", "no such host"],
)
def test_a_bucket_that_refuses_or_cannot_be_reached_is_said(
    account: Account, url: str | None, said: str, real_bucket: RealBucket
) -> None:
    sentence = refused(real_bucket.location, account.environment(url or real_bucket.server.url))

    assert sentence.startswith(f"{real_bucket.location}: ")
    assert said in sentence


def test_a_bucket_or_prefix_that_is_missing_is_said(real_bucket: RealBucket) -> None:
    for place in ("s3://no-such-bucket/history", real_bucket.location):
        assert refused(place, {}) == f"{place} does not exist"


def test_an_object_is_no_place_for_a_history(real_bucket: RealBucket) -> None:
    real_bucket.folder.write_text("an object")

    assert refused(real_bucket.location, {}) == f"{real_bucket.location} is an object, not a prefix"


def test_a_store_that_never_answers_is_given_up(silent: str) -> None:
    assert refused("s3://lag/history", OWNER.environment(silent)).startswith("s3://lag/history: ")


def test_an_output_that_cannot_be_reached_is_said_before_anything_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)

    with pytest.raises(Unusable, match=r"^s3://lag/reports: "):
        output_at("s3://lag/reports").prepare()


def test_a_bucket_that_refuses_the_report_is_named_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_store("lag") as store:
        for name, value in OWNER.environment(store.url).items():
            monkeypatch.setenv(name, value)
        output_at("s3://lag/reports").prepare()
        assert store.below("reports/") == {}

        store.is_read_only = True
        with pytest.raises(Unusable, match=r"^s3://lag/reports: access is denied: PutObject$"):
            output_at("s3://lag/reports").prepare()
        said = r"^s3://lag/history: access is denied: \.compacting\.lease cannot be written$"
        with pytest.raises(Unusable, match=said), files_at("s3://lag/history").reserved():
            pass


def test_a_folder_in_which_nothing_can_be_created_is_named_by_both_commands_at_their_start() -> None:
    folder = Path("/proc/self")  # where nobody may create a file, not even root

    with pytest.raises(Unusable, match=r"^/proc/self cannot be written: "):
        output_at(str(folder)).prepare()
    with pytest.raises(Unusable, match=r"^/proc/self cannot be written: "), LocalFiles(folder).reserved():
        pass
    with pytest.raises(Unusable, match=f"^{__file__} is not a folder$"):
        output_at(__file__).prepare()


@pytest.mark.parametrize(
    ("place", "environment", "said"),
    [
        (
            "gs://lag/history",
            {"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere/key.json"},
            "Cannot open credentials file /nowhere/key.json",
        ),
        (
            "abfss://lag@nosuchaccount.dfs.invalid/history",
            {"AZURE_STORAGE_KEY": "a2V5"},
            "cannot be reached: Could not ",
        ),
    ],
    ids=["gs", "abfss"],
)
def test_other_providers_trouble_is_one_sentence(place: str, environment: Mapping[str, str], said: str) -> None:
    command = [sys.executable, "-m", "spark", "compact", "--history", place]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, env={**os.environ, **environment})
    *lines, sentence = ended.stderr.splitlines()

    assert (ended.returncode, len(lines) <= 2) == (2, True)
    assert all(len(line) < 500 for line in lines)
    assert sentence.startswith(f"kafka-lag-report: {place}: {said}")
    assert len(sentence) < len(place) + 80


def test_a_library_that_does_not_return_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ending = threading.Event()
    monkeypatch.setattr(location, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(LocalFiles, "probe", lambda _self: ending.wait())

    assert refused(str(tmp_path), {}) == f"{tmp_path} does not answer within 0 s"
    ending.set()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    try:
        assert refused(str(tmp_path), {}) == f"{tmp_path} cannot be read: Permission denied"
    finally:
        tmp_path.chmod(0o700)
