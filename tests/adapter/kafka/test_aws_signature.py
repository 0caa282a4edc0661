"""AWS_MSK_IAM is signed by the client library: here against the worked example of AWS's Signature Version 4 guide."""

import json

import pytest
from kafka.net.sasl.msk import AwsMskIamClient

from tests.adapter.settings.test_security import security_problems

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


@pytest.mark.parametrize(
    ("mechanism", "package", "extra"), [("AWS_MSK_IAM", "botocore", "msk"), ("GSSAPI", "gssapi", "kerberos")]
)
def test_a_mechanism_whose_package_is_absent_is_refused_at_start(mechanism: str, package: str, extra: str) -> None:
    assert security_problems(protocol="SASL_SSL", mechanism=mechanism) == (
        f"clusters[0].security: mechanism {mechanism} needs the package {package}, "
        f"which is not installed (extra {extra} of this project)"
    )
