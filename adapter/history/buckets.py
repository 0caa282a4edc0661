"""S3, Google Cloud Storage and Azure as pyarrow's file systems, for everything that writes or reads a history.

Credentials, region and endpoint are found as the provider's own tools find them (environment, profile, instance)."""

import errno
import os
from datetime import timedelta
from pathlib import Path

from pyarrow import fs

from adapter.location import Bucket, home

CONNECT_SECONDS, REQUEST_SECONDS = 3.0, 10.0


def opened(bucket: Bucket, attempts: int = 1, request_seconds: float | None = None) -> fs.FileSystem:
    """May use the network to determine this process's identity; raises OSError and pyarrow's errors."""
    seconds = REQUEST_SECONDS if request_seconds is None else request_seconds
    if bucket.scheme == "gs":
        return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=seconds))
    if bucket.scheme == "abfss":
        account, _, domain = bucket.host.partition(".dfs.")
        return fs.AzureFileSystem(
            account, **azure_keys(), blob_storage_authority=f".blob.{domain}", dfs_storage_authority=f".dfs.{domain}"
        )
    if not _has_region():  # the library would assume us-east-1
        raise OSError(errno.EINVAL, "no region is given; set AWS_REGION")
    return fs.S3FileSystem(
        endpoint_override=s3_endpoint(),
        connect_timeout=CONNECT_SECONDS,
        request_timeout=seconds,
        background_writes=False,
        allow_delayed_open=True,  # a small file is one PUT, not an upload in parts
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=attempts),
    )


def s3_endpoint() -> str | None:
    """pyarrow reads credentials and region from the environment by itself, but not the endpoint."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def azure_keys() -> dict[str, str]:
    """Reads the variables of Azure's command line; without them, Azure's default credential is used."""
    names = {"account_key": "AZURE_STORAGE_KEY", "sas_token": "AZURE_STORAGE_SAS_TOKEN"}
    return {name: os.environ[variable] for name, variable in names.items() if os.environ.get(variable)}


def _has_region() -> bool:
    profiles = Path(os.environ.get("AWS_CONFIG_FILE") or home() / ".aws" / "config")
    is_set = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or s3_endpoint()
    return bool(is_set) or (profiles.is_file() and "region" in profiles.read_text(encoding="utf-8"))
