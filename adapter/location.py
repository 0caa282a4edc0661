"""Locations of histories in buckets, as written in settings and on the command line.

Separate from `buckets`, so that reading the settings does not import pyarrow."""

import re
from dataclasses import dataclass
from pathlib import Path

from adapter.errors import shown

SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "abfss": "abfss"}
"""As written -> as opened; s3a:// is Hadoop's name for s3://."""
FORMS = "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX"
BUCKET = re.compile(r"[a-z0-9][-a-z0-9._]{1,220}[a-z0-9]")
AZURE_HOST = re.compile(r"[a-z0-9]{3,24}\.dfs\.[a-z0-9.-]+")
OBJECT_NAME = re.compile(r"(?!\.{1,2}$)[-A-Za-z0-9_.=]+")


def home() -> Path:
    """Returns the root for a user id without HOME and without an entry in passwd, as in a pod."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


@dataclass(frozen=True, slots=True)
class Bucket:
    """A prefix in a bucket, without credentials: each process finds its own in its environment."""

    scheme: str
    """s3, gs or abfss."""
    root: str
    """BUCKET or BUCKET/PREFIX."""
    host: str = ""
    """Of the Azure account: ACCOUNT.dfs.core.windows.net."""

    def __str__(self) -> str:
        bucket, _, prefix = self.root.partition("/")
        place = f"{bucket}@{self.host}" if self.host else bucket
        return f"{self.scheme}://{place}/{prefix}".rstrip("/")


def bucket_at(text: str) -> Bucket | None:
    """Returns None for text without `://`, which is a path; raises ValueError for anything but a valid bucket."""
    written, separator, rest = text.partition("://")
    if not separator:
        return None
    if written not in SCHEMES:
        raise ValueError(f"{shown(text)} is neither a path nor {FORMS}")
    scheme = SCHEMES[written]
    bucket, slash, prefix = rest.rstrip("/").partition("/")
    bucket, at, host = bucket.partition("@")
    if not BUCKET.fullmatch(bucket):
        raise ValueError(f"{shown(text)} is not a valid bucket")
    if (scheme == "abfss") != bool(at) or (at and not AZURE_HOST.fullmatch(host)):
        raise ValueError(f"{shown(text)} is not of the form {FORMS}")
    if prefix and not all(OBJECT_NAME.fullmatch(part) for part in prefix.split("/")):
        raise ValueError(f"{shown(text)}: the prefix must be parts of letters, digits, '-', '_', '.' and '='")
    return Bucket(scheme, f"{bucket}{slash}{prefix}", host)
