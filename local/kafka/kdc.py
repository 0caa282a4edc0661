"""A Kerberos realm on 127.0.0.1: MIT's KDC, as Debian's packages krb5-kdc and krb5-admin-server install it."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from local.processes import Process, RigError, free_port, start, wait_until

REALM = "LAG.TEST"
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local")
CLIENTS_FILE = "krb5.conf"
CONFIGURATION = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""
OWN_CONFIGURATION = """\
[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    key_stash_file = {home}/stash
  }}
[logging]
  kdc = FILE:{home}/kdc.log
[dbmodules]
  {realm} = {{
    db_library = db2
    database_name = {home}/principals
  }}
"""


@dataclass(frozen=True, slots=True)
class Kdc:
    process: Process
    home: Path
    environment: Mapping[str, str]
    """Leads Kerberos clients to this realm."""

    @property
    def configuration(self) -> Path:
        return self.home / CLIENTS_FILE

    def keytab(self, principal: str, *, ticket_seconds: int = 3600) -> Path:
        """Creates a principal of the realm; its tickets are valid for that long."""
        file = self.home / f"{principal.replace('/', '-')}.keytab"
        self.administer(f"addprinc -randkey -maxlife {ticket_seconds}s {principal}")
        self.administer(f"ktadd -k {file} {principal}")
        return file

    def administer(self, command: str) -> None:
        _run(self.environment, "kadmin.local", "-q", command)

    def issued(self, request: str) -> int:
        """Returns the number of tickets: AS_REQ for logins, TGS_REQ for services."""
        return sum(f"{request} " in line and "ISSUE" in line for line in _lines(self.home / "kdc.log"))


def is_installed() -> bool:
    return all(shutil.which(program, path=PATH) for program in PROGRAMS)


@contextlib.contextmanager
def kdc(home: Path) -> Iterator[Kdc]:
    """Runs a realm without principals; raises RigError if it does not start."""
    home.mkdir(parents=True)
    port, environment = free_port(), {"PATH": PATH}
    for variable, name, content in (
        ("KRB5_CONFIG", CLIENTS_FILE, CONFIGURATION),
        ("KRB5_KDC_PROFILE", "kdc.conf", OWN_CONFIGURATION),
    ):
        (home / name).write_text(content.format(realm=REALM, port=port, home=home))
        environment[variable] = str(home / name)
    _run(environment, "kdb5_util", "create", "-s", "-P", "master", "-r", REALM)
    with start("KDC", ["krb5kdc", "-n", "-r", REALM], log=home / "output.log", env=environment) as process:
        wait_until(lambda: "commencing operation" in _text(home), "the KDC", 60, alive=[process])
        yield Kdc(process, home, environment)


def _run(environment: Mapping[str, str], *command: str) -> None:
    program = shutil.which(command[0], path=PATH) or command[0]
    ended = subprocess.run(
        [program, *command[1:]], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        raise RigError(f"{' '.join(command)} ended with status {ended.returncode}:\n{ended.stderr}")


def _text(home: Path) -> str:
    return "\n".join(_lines(home / "kdc.log"))


def _lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []
