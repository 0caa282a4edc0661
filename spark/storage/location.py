"""What a location is: a path, a bucket, or whatever Hadoop knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from spark.errors import Unusable
from spark.storage.hadoop_files import HadoopFiles
from spark.storage.local import LocalFiles
from spark.storage.protocol import Files, pattern_sign

IN_BUCKETS = ("s3", "gs")
"""As the adapter writes them."""


def is_local(location: str) -> bool:
    return "://" not in location and not location.startswith("file:")


def is_in_bucket(location: str) -> bool:
    return location.partition("://")[0] in IN_BUCKETS and "://" in location


def files_at(location: str, session: Callable[[], SparkSession], *, by_spark: bool = False) -> Files:
    """`by_spark`: a bucket is Hadoop's, too, and s3:// what others call s3a://. A session is asked for only where
    Hadoop is needed. Raises Unusable where Spark would read another location, or several, and where a store refuses."""
    whole = str(Path(location).absolute()) if is_local(location) else location
    if sign := pattern_sign(whole):
        raise Unusable(f"--history {whole}: Spark takes '{sign}' for a pattern; use a path without it, perhaps a link")
    if is_local(location):
        return LocalFiles(Path(whole))
    if is_in_bucket(location) and not by_spark:
        return in_bucket(location)
    scheme, _, rest = location.partition("://")
    return HadoopFiles(f"s3a://{rest}" if scheme == "s3" else location, session())


def in_bucket(location: str) -> Files:
    """As the adapter opens it. Raises Unusable."""
    from spark.storage.bucket import BucketFiles  # noqa: PLC0415 -- the stores' libraries, where they are needed alone

    scheme, _, root = location.partition("://")
    if not root.strip("/") or "//" in root.rstrip("/") or root.startswith("/"):
        raise Unusable(f"{location} is no {scheme}://BUCKET/PREFIX")
    return BucketFiles(scheme, root.rstrip("/"))
