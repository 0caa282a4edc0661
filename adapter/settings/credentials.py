"""What a client shows to one cluster's brokers, and whom it trusts, as the settings and their files say."""

import importlib.util
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from adapter.settings.client_certificate import ClientCertificate, certificate_of, trusting
from adapter.settings.models import UpstreamSettings
from adapter.settings.secret_files import CredentialsInvalid, SecretFiles, read, read_file
from adapter.settings.security import NEEDED, Protocol, Security

KEDA_MECHANISMS = {
    "none": None,
    "plaintext": "PLAIN",
    "scram_sha256": "SCRAM-SHA-256",
    "scram_sha512": "SCRAM-SHA-512",
    "oauthbearer": "OAUTHBEARER",
    "gssapi": "GSSAPI",
}
JAAS_MODULES = {"ScramLoginModule": "SCRAM-SHA-512", "PlainLoginModule": "PLAIN"}
"""Strimzi's users have SCRAM-SHA-512 and no other."""
JAAS_OPTION = re.compile(r'(username|password)="((?:[^"\\]|\\.)*)"')
PACKAGES = {"AWS_MSK_IAM": ("botocore", "msk"), "GSSAPI": ("gssapi", "kerberos")}
"""Mechanism -> the package that it needs, and our extra that installs it."""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """How to get a token for OAUTHBEARER; the login's username and password are the client's id and secret."""

    endpoint: str
    scope: str | None
    extensions: Mapping[str, str]
    tls: ssl.SSLContext = field(repr=False)


@dataclass(frozen=True, slots=True)
class Login:
    mechanism: str | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    token_request: TokenRequest | None = None


@dataclass(frozen=True, slots=True)
class Credentials:
    protocol: Protocol
    login: Login = Login()
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    certificate: ClientCertificate | None = None


def problems_of(part: Security | UpstreamSettings) -> list[str]:
    """Opens all files that the part names."""
    try:
        if isinstance(part, Security):
            credentials_of(part, read(part))
        else:
            trusting([read_file("caFile", part.ca_file)])
    except CredentialsInvalid as error:
        return [str(error)]
    return []


def credentials_of(security: Security, files: SecretFiles) -> Credentials:
    """Raises CredentialsInvalid with the key and the file that is wrong."""
    mechanism = security.mechanism or _mechanism_in(files)
    protocol = _protocol_of(security, files, mechanism)
    login = _login_of(security, files, mechanism) if protocol.authenticates else Login()
    if not protocol.encrypts:
        return Credentials(protocol, login)
    tls, shown = trusting(files.authorities), certificate_of(files)
    if shown is not None:
        shown.load_into(tls)
    return Credentials(protocol, login, tls, shown)


def _mechanism_in(files: SecretFiles) -> str | None:
    if (sasl := files.text("sasl")) is not None:
        if sasl not in KEDA_MECHANISMS:
            raise CredentialsInvalid(f"{files.by_role['sasl'].name} is none of {', '.join(KEDA_MECHANISMS)}")
        return KEDA_MECHANISMS[sasl]
    if (jaas := files.text("jaas")) is not None:
        return next((mechanism for module, mechanism in JAAS_MODULES.items() if module in jaas), None)
    return "PLAIN" if files.get("api_key") else None


def _protocol_of(security: Security, files: SecretFiles, mechanism: str | None) -> Protocol:
    if not security.secret_folders or "protocol" in security.model_fields_set:
        return security.protocol
    is_secret = any(files.get(role) for role in ("certificate", "bundle", "api_key")) or bool(files.authorities)
    encrypts = files.text("tls") != "disable" if files.get("tls") else is_secret
    if mechanism is None and (password := files.get("password")):
        raise CredentialsInvalid(f"mechanism is needed: nothing says which one {password.name} is for")
    return Protocol(("SASL_" if mechanism else "") + ("SSL" if encrypts else "PLAINTEXT"))


def _check_package(mechanism: str | None) -> None:
    package, extra = PACKAGES.get(mechanism or "", ("", ""))
    if package and importlib.util.find_spec(package) is None:
        raise CredentialsInvalid(
            f"mechanism {mechanism} needs the package {package}, which is not installed (extra {extra} of this project)"
        )


def _check_region(mechanism: str | None) -> None:
    """Nothing is asked for it: botocore knows it from the environment or from AWS's configuration file."""
    if mechanism != "AWS_MSK_IAM":
        return
    # An extra, which few installations have.
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - see above
    from botocore.session import Session  # noqa: PLC0415 - see above

    try:
        region = Session().get_config_variable("region")
    except BotoCoreError as error:
        raise CredentialsInvalid(f"mechanism AWS_MSK_IAM: {error}") from error
    if not region:
        raise CredentialsInvalid(
            "mechanism AWS_MSK_IAM needs the cluster's region: AWS_DEFAULT_REGION is not set, "
            "and AWS's configuration file contains none"
        )


def _login_of(security: Security, files: SecretFiles, mechanism: str | None) -> Login:
    _check_package(mechanism)
    _check_region(mechanism)
    options = JAAS_OPTION.findall(files.text("jaas") or "")
    jaas = {name: re.sub(r"\\(.)", r"\1", value) for name, value in options}
    username = security.username or files.text("username") or files.text("api_key") or jaas.get("username")
    password = files.text("password") or jaas.get("password")
    endpoint = security.token_endpoint or files.text("token_endpoint")
    values = {"mechanism": mechanism, "username": username, "passwordFile": password, "tokenEndpoint": endpoint}
    missing = [key for key in NEEDED.get(mechanism, ()) if values[key] is None]
    if missing:
        places = ", ".join(str(folder) for folder in security.secret_folders)
        raise CredentialsInvalid(f"neither the settings nor the files in {places} contain {' and '.join(missing)}")
    login = Login(mechanism, username or "", password or "")
    if mechanism != "OAUTHBEARER":
        return login
    authorities = [files.by_role["token_ca"]] if files.get("token_ca") else []
    extensions = security.sasl_extensions or _extensions_in(files)
    scope = security.scope or files.text("scope")
    return replace(login, token_request=TokenRequest(endpoint or "", scope, extensions, trusting(authorities)))


def _extensions_in(files: SecretFiles) -> Mapping[str, str]:
    """KEDA has them as `key=value,key=value`."""
    pairs = [pair.partition("=") for pair in (files.text("extensions") or "").split(",")]
    return {key.strip(): value.strip() for key, _, value in pairs if key.strip()}
