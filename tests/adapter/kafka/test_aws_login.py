"""AWS_MSK_IAM: what is said without region or credentials, and the client library's signature.

The signature is compared with the worked example of AWS's Signature Version 4 guide."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kafka.net.sasl.msk import AwsMskIamClient

from adapter.kafka.failures import failure_of
from adapter.kafka.logins import AwsLogin, LoginUnavailable
from adapter.metrics.definitions import SERVED
from adapter.settings.file import parse
from adapter.settings.security import Security
from tests.adapter.settings.test_security import security_problems
from tests.support import samples

DATE = "20150830T123600Z"


class ListUsers(AwsMskIamClient):  # type: ignore[misc]  # the library has no types
    """The request of the example instead of Kafka's."""

    def __init__(self) -> None:
        super().__init__("iam.amazonaws.com", "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1")
        self.service, self.datestamp, self.timestamp = "iam", DATE[:8], DATE
        self.headers = [
            ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
            ("host", self.host),
            ("x-amz-date", DATE),
        ]

    @property
    def _canonical_querystring(self) -> str:
        return "Action=ListUsers&Version=2010-05-08"


def test_key_request_and_signature_are_those_that_aws_publishes() -> None:
    client = ListUsers()

    assert client._signing_key.hex() == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"
    assert client._signing_str.splitlines()[-1] == "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59"
    signature = json.loads(client.first_message())["x-amz-signature"]
    assert signature == "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment without anything of AWS's, and without its network."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


def security_of(mechanism: str) -> Security:
    security = {"protocol": "SASL_SSL", "mechanism": mechanism}
    return parse({"clusters": [{**samples.cluster("main"), "security": security}]}, SERVED).clusters[0].security


def test_a_region_that_nobody_gave_is_refused_at_start(aws: pytest.MonkeyPatch) -> None:
    assert security_problems(protocol="SASL_SSL", mechanism="AWS_MSK_IAM") == (
        "clusters[0].security: mechanism AWS_MSK_IAM needs the cluster's region: AWS_DEFAULT_REGION is not set, "
        "and AWS's configuration file contains none"
    )
    aws.setenv("AWS_PROFILE", "absent")
    assert security_problems(protocol="SASL_SSL", mechanism="AWS_MSK_IAM") == (
        "clusters[0].security: mechanism AWS_MSK_IAM: The config profile (absent) could not be found"
    )
    aws.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert security_of("AWS_MSK_IAM").mechanism == "AWS_MSK_IAM"


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({}, "the environment, AWS's files and its services have none"),
        ({"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE"}, "Partial credentials found in env, missing: AWS_SECRET_ACCESS_KEY"),
        ({"AWS_PROFILE": "absent"}, "The config profile (absent) could not be found"),
        (
            {"AWS_ROLE_ARN": "arn:aws:iam::0:role/lag", "AWS_WEB_IDENTITY_TOKEN_FILE": "/absent/token"},
            "[Errno 2] No such file or directory: '/absent/token'",
        ),
    ],
)
def test_why_there_are_no_credentials_is_said_of_the_broker(
    aws: pytest.MonkeyPatch, environment: dict[str, str], reason: str
) -> None:
    aws.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    for name, value in environment.items():
        aws.setenv(name, value)
    with pytest.raises(LoginUnavailable) as raised:
        AwsLogin(host="broker", security_protocol="SASL_SSL")
    failure = failure_of(raised.value, "broker 1 at broker:9098")

    assert failure.cause == "authentication"
    assert failure.text == f"broker 1 at broker:9098 was not given AWS credentials: {reason}"


def test_a_login_is_signed_once_it_is_made_with_the_region_of_the_environment(aws: pytest.MonkeyPatch) -> None:
    for name, value in {"DEFAULT_REGION": "eu-central-1", "ACCESS_KEY_ID": "AKID", "SECRET_ACCESS_KEY": "x"}.items():
        aws.setenv(f"AWS_{name}", value)
    login = AwsLogin(host="broker", security_protocol="SASL_SSL")
    aws.delenv("AWS_ACCESS_KEY_ID")

    credential = json.loads(login.auth_bytes())["x-amz-credential"]
    assert credential.startswith("AKID/")
    assert credential.endswith("/eu-central-1/kafka-cluster/aws4_request")


LOGS_A_SIGNATURE = """
import logging
from adapter.kafka.logins import AwsLogin
from apiservice.logs import log_to_stderr
log_to_stderr("debug", "text")
AwsLogin(host="broker", security_protocol="SASL_SSL").auth_bytes()
for library in ("kafka.protocol.parser", "urllib3.connectionpool", "kubernetes.client.rest", "asyncio", "gssapi"):
    logging.getLogger(library).error("its line")
logging.getLogger("adapter.kafka.client").debug("our line")
"""


def test_at_debug_only_our_own_lines_are_logged(aws: pytest.MonkeyPatch) -> None:
    """botocore's contain the request that it signs and the signature."""
    for name, value in {"DEFAULT_REGION": "eu-central-1", "ACCESS_KEY_ID": "AKID", "SECRET_ACCESS_KEY": "x"}.items():
        aws.setenv(f"AWS_{name}", value)
    command = (sys.executable, "-W", "ignore", "-c", LOGS_A_SIGNATURE)
    log = subprocess.run(command, check=True, capture_output=True, text=True).stderr

    (line,) = log.splitlines()
    assert line.endswith("DEBUG adapter.kafka.client: our line")


@pytest.mark.parametrize(
    ("mechanism", "package", "extra"), [("AWS_MSK_IAM", "botocore", "msk"), ("GSSAPI", "gssapi", "kerberos")]
)
def test_a_mechanism_whose_package_is_absent_is_refused_at_start(
    monkeypatch: pytest.MonkeyPatch, mechanism: str, package: str, extra: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert security_problems(protocol="SASL_SSL", mechanism=mechanism) == (
        f"clusters[0].security: mechanism {mechanism} needs the package {package}, "
        f"which is not installed (extra {extra} of this project)"
    )
