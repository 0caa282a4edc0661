"""Reads the files that a cluster's security names, one by one or by their folder, without looking into them.

A folder is a mounted Secret with the keys of Strimzi (KafkaUser, cluster CA), of KEDA's TriggerAuthentication, of a
Confluent API key or of the type `kubernetes.io/tls`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adapter.errors import AdapterError, some_of
from adapter.settings.security import Security

ROLES = {
    "username": "username",
    "api-key": "api_key",
    "apiKey": "api_key",
    "api_key": "api_key",
    "password": "password",
    "api-secret": "password",
    "apiSecret": "password",
    "api_secret": "password",
    "sasl.jaas.config": "jaas",
    "user.crt": "certificate",
    "tls.crt": "certificate",
    "cert": "certificate",
    "user.key": "key",
    "tls.key": "key",
    "key": "key",
    "user.p12": "bundle",
    "user.password": "key_password",
    "keyPassword": "key_password",
    "sasl": "sasl",
    "tls": "tls",
    "oauthTokenEndpointUri": "token_endpoint",
    "scopes": "scope",
    "oauthExtensions": "extensions",
}
"""What a file of this name in a folder is."""
OF_A_USER = {"user.crt", "user.p12", "sasl.jaas.config"}
"""Strimzi's KafkaUser has one of these. Its ca.crt issues clients; the brokers' is in another Secret."""


class CredentialsInvalid(AdapterError):
    """Names the key and the file; never shows what is in it."""


@dataclass(frozen=True, slots=True)
class SecretFile:
    name: str
    """The key of the settings and the path."""
    content: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """Returns the content without the newline that editors add."""
        try:
            text = self.content.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise CredentialsInvalid(f"{self.name} is not UTF-8 text") from error
        if not text:
            raise CredentialsInvalid(f"{self.name} is empty")
        return text


@dataclass(frozen=True, slots=True)
class SecretFiles:
    by_role: Mapping[str, SecretFile]
    authorities: tuple[SecretFile, ...]

    def get(self, role: str) -> SecretFile | None:
        return self.by_role.get(role)

    def text(self, role: str) -> str | None:
        return self.by_role[role].text if role in self.by_role else None


def read_file(key: str, path: Path) -> SecretFile:
    """Returns the file of a key of the settings; raises CredentialsInvalid."""
    try:
        return SecretFile(f"{key} {path}", path.read_bytes())
    except OSError as error:
        raise CredentialsInvalid(f"{key} {path} cannot be read: {error.strerror}") from error


def read(security: Security) -> SecretFiles:
    """Raises CredentialsInvalid with every file that cannot be read."""
    found: dict[str, list[SecretFile]] = {}
    problems: list[str] = []
    for role, name, path in (*_single_files(security), *_folder_files(security, problems)):
        try:
            found.setdefault(role, []).append(SecretFile(name, path.read_bytes()))
        except OSError as error:
            problems.append(f"{name} cannot be read: {error.strerror}")
    authorities = tuple(found.pop("ca", ()))
    problems += [
        f"{files[0].name} and {files[1].name} are for the same purpose" for files in found.values() if len(files) > 1
    ]
    if problems:
        raise CredentialsInvalid("; ".join(problems))
    if "certificate" in found:
        found.pop("bundle", None)
    return SecretFiles({role: files[0] for role, files in found.items()}, authorities)


def _single_files(security: Security) -> Iterator[tuple[str, str, Path]]:
    keys = {
        "usernameFile": ("username", security.username_file),
        "passwordFile": ("password", security.password_file),
        "caFile": ("ca", security.ca_file),
        "certFile": ("bundle" if security.has_bundle else "certificate", security.cert_file),
        "keyFile": ("key", security.key_file),
        "keyPasswordFile": ("key_password", security.key_password_file),
        "tokenEndpointCaFile": ("token_ca", security.token_endpoint_ca_file),
    }
    named = {key: (role, path) for key, (role, path) in keys.items() if path is not None}
    # People write the secret itself there, which is rarely an absolute path.
    return ((role, f"{key} {path}" if path.is_absolute() else key, path) for key, (role, path) in named.items())


def _folder_files(security: Security, problems: list[str]) -> Iterator[tuple[str, str, Path]]:
    """Yields what the other keys do not set."""
    given = {role for role, _, _ in _single_files(security)} | ({"bundle"} if security.cert_file else set())
    if security.username:
        given |= {"username", "api_key"}
    for folder in security.secret_folders:
        try:
            names = sorted(path.name for path in folder.iterdir() if path.is_file())
        except OSError as error:
            problems.append(f"secretFolders: {folder} cannot be read: {error.strerror}")
            continue
        roles = {name: role for name in names if (role := _role(name, has_user=not OF_A_USER.isdisjoint(names)))}
        if not roles:
            held = some_of(names, separator=", ") or "nothing"
            problems.append(f"secretFolders: {folder} holds {held}, and no file whose name is known")
        for name, role in roles.items():
            if role not in given:
                yield role, f"secretFolders: {folder / name}", folder / name


def _role(name: str, *, has_user: bool) -> str | None:
    # While Strimzi replaces its authority, the previous one is beside it as ca-<date>.crt.
    if name == "ca" or (name.startswith("ca") and name.endswith(".crt")):
        return None if has_user else "ca"
    return ROLES.get(name)
