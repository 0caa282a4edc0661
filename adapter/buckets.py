"""S3 and Google Cloud Storage as pyarrow's file systems: for whoever writes the history and whoever reads it.

Credentials, region and endpoint are found as the provider's own tools find them (environment, profile, instance).
"""

from __future__ import annotations

import os
from datetime import timedelta

from pyarrow import fs

SCHEMES = ("s3", "gs")
CONNECT_SECONDS, REQUEST_SECONDS = 3.0, 10.0


def opened(scheme: str, attempts: int = 1) -> fs.FileSystem:
    """One of SCHEMES. May ask the network who we are; raises what the system and pyarrow raise."""
    return _s3(attempts) if scheme == "s3" else _gcs()


def _s3(attempts: int) -> fs.FileSystem:
    return fs.S3FileSystem(
        # Stores of one's own; credentials and region come from the environment by themselves, this does not.
        endpoint_override=os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"),
        connect_timeout=CONNECT_SECONDS,
        request_timeout=REQUEST_SECONDS,
        background_writes=False,
        allow_delayed_open=True,  # a small file is one PUT, not an upload in parts
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=attempts),
    )


def _gcs() -> fs.FileSystem:
    return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=REQUEST_SECONDS))
