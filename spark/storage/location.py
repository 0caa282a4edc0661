"""What `--history` and `--output` name: a path, or a prefix in a bucket."""

from __future__ import annotations

from pathlib import Path

from adapter.location import Bucket, bucket_at
from spark.errors import Unusable
from spark.storage.local import LocalFiles
from spark.storage.protocol import Files, pattern_sign


def files_at(location: str) -> Files:
    """Touches nothing yet. Raises Unusable for what is neither a path nor a bucket, and where Spark would read another
    path, or several."""
    bucket = bucket_in(location)
    if bucket is not None:
        from spark.storage.bucket import BucketFiles  # noqa: PLC0415 -- the providers' libraries are slow to load

        return BucketFiles(bucket)
    whole = str(Path(location).absolute())
    if sign := pattern_sign(whole):
        raise Unusable(f"--history {whole}: Spark takes '{sign}' for a pattern; use a path without it, perhaps a link")
    return LocalFiles(Path(whole))


def bucket_in(location: str) -> Bucket | None:
    """None: a path. Raises Unusable."""
    try:
        return bucket_at(location)
    except ValueError as error:
        raise Unusable(str(error)) from error
