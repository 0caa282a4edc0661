"""What pyarrow does not have of a bucket: conditional writes, and ETags in listings. The only `import obstore`.

obstore finds credentials in the same variables, files and instances as pyarrow, but for S3's profiles: their keys are
read here. Endpoint, region and the way to address a bucket are those with which pyarrow opened it.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store
from pyarrow import fs

from adapter.history.buckets import CONNECT_SECONDS, REQUEST_SECONDS, azure_keys, s3_endpoint
from adapter.location import Bucket, home
from spark.errors import Unavailable

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, S3Config

RETRIES = 1


def conditional_store(bucket: Bucket, opened: fs.FileSystem) -> S3Store | GCSStore | AzureStore:
    """`opened`: the same bucket by pyarrow. Paths are those of the location. Raises what obstore raises."""
    name, _, prefix = bucket.root.partition("/")
    common: Any = {"prefix": prefix or None, "retry_config": {"max_retries": RETRIES}}
    timeouts: ClientConfig = {
        "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
        "timeout": timedelta(seconds=REQUEST_SECONDS),
    }
    if bucket.scheme == "gs":
        return GCSStore(name, client_options=timeouts, **common)
    if bucket.scheme == "abfss":
        account = bucket.host.partition(".")[0]
        return AzureStore(name, account_name=account, config=_azure_config(), client_options=timeouts, **common)
    endpoint = s3_endpoint()
    return S3Store(
        name,
        region=opened.region,
        virtual_hosted_style_request=endpoint is None,
        client_options={**timeouts, "allow_http": bool(endpoint and endpoint.startswith("http://"))},
        config=_s3_config(endpoint),
        **common,
    )


def versions_below(store: S3Store | GCSStore | AzureStore, folder: str, shown: str) -> dict[str, str]:
    """Path -> ETag of each object, or what the store has instead. A listing by pyarrow has none. Raises Unavailable,
    which names the location, `shown`."""
    try:
        return {
            each["path"]: each["e_tag"] or each["version"] or each["last_modified"].isoformat()
            for page in store.list(folder)
            for each in page
        }
    except (BaseError, OSError) as error:
        raise Unavailable(f"{shown}: {str(error).partition(chr(10))[0]}") from error


def _azure_config() -> AzureConfig:
    config: AzureConfig = {}
    if key := azure_keys().get("account_key"):
        config["account_key"] = key
    if token := azure_keys().get("sas_token"):
        config["sas_key"] = token
    return config


def _profile() -> Mapping[str, str]:
    """Of the profile that the environment names, or of the default one; nothing where variables have the keys."""
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        return {}
    file = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or home() / ".aws" / "credentials"
    profiles = configparser.ConfigParser(interpolation=None)
    profiles.read(file, encoding="utf-8")
    name = os.environ.get("AWS_PROFILE", "default")
    return profiles[name] if profiles.has_section(name) else {}


def _s3_config(endpoint: str | None) -> S3Config:
    config: S3Config = {"endpoint": endpoint} if endpoint else {}
    profile = _profile()
    if "aws_access_key_id" in profile and "aws_secret_access_key" in profile:
        config["access_key_id"], config["secret_access_key"] = (
            profile["aws_access_key_id"],
            profile["aws_secret_access_key"],
        )
    if "aws_session_token" in profile:
        config["session_token"] = profile["aws_session_token"]
    return config
