"""How buckets are opened; what is read and written is tested on a real S3 server."""

import pwd
from pathlib import Path

import pytest
from pyarrow import fs

from adapter.history.buckets import opened
from adapter.location import Bucket, home


def test_a_bucket_is_opened_by_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a pod: there is neither HOME nor an entry in passwd."""

    def is_unknown(_uid: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("AWS_CONFIG_FILE", raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setattr(pwd, "getpwuid", is_unknown)

    assert home() == Path("/")
    assert isinstance(opened(Bucket("s3", "lag/history")), fs.S3FileSystem)
