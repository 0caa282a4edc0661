"""Logins that also need a third party: GSSAPI a Kerberos KDC, AWS_MSK_IAM whatever provides AWS credentials.

kafka-python would ask them in the thread of all connections, where a silent KDC would cost every broker half a minute.
Here a thread of its own asks them before the login begins."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any

from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.future import Future
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI
from kafka.net.sasl.msk import AwsMskIamClient, SaslMechanismAwsMskIam

PREPARE_SECONDS = 2.0
"""Less than a call may take, so that the error names who did not answer."""


class LoginUnavailable(KafkaError):  # type: ignore[misc]  # the library has no types
    """What a login needs is unavailable, and why; never shows a secret."""


class KerberosLogin(SaslMechanismGSSAPI):  # type: ignore[misc]  # as above
    """Gets its ticket for the broker in the constructor."""

    def __init__(self, **config: Any) -> None:  # noqa: ANN401 - as above
        self._saying(lambda: super(KerberosLogin, self).__init__(**config))

    def receive(self, auth_bytes: bytes) -> None:
        self._saying(lambda: super(KerberosLogin, self).receive(auth_bytes))

    def _saying(self, step: Callable[[], None]) -> None:
        from gssapi.raw.misc import GSSError  # noqa: PLC0415 - an extra, which few installations have

        try:
            step()
        except GSSError as error:
            # The minor status is a sentence for people. Where there is none, the major one has to do.
            said = error.get_all_statuses(error.min_code, False) or error.get_all_statuses(error.maj_code, True)
            raise LoginUnavailable(f"a Kerberos ticket: {said[0]}") from error


class AwsLogin(SaslMechanismAwsMskIam):  # type: ignore[misc]  # as above
    """Signs its message in the constructor."""

    def __init__(self, **config: Any) -> None:  # noqa: ANN401 - as above
        super().__init__(**config)
        self._message = self._client().first_message()

    def auth_bytes(self) -> bytes:
        return bytes(self._message)

    def _client(self) -> AwsMskIamClient:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - an extra, as above

        session = self._boto_session_cls()
        try:
            found = session.get_credentials()
            credentials = found and found.get_frozen_credentials()
        except (BotoCoreError, ClientError, OSError) as error:
            raise LoginUnavailable(f"AWS credentials: {error}") from error
        if credentials is None:
            raise LoginUnavailable("AWS credentials: the environment, AWS's files and its services have none")
        region = session.get_config_variable("region")
        return AwsMskIamClient(self.host, credentials.access_key, credentials.secret_key, region, credentials.token)


PREPARED: Mapping[str, tuple[type, str]] = {
    "GSSAPI": (KerberosLogin, "a Kerberos ticket: no KDC answers"),
    "AWS_MSK_IAM": (AwsLogin, "AWS credentials: no credential service answers"),
}
"""Mechanism -> its login, and what is said if it is not ready in time."""
for _mechanism in PREPARED:
    # The library makes a login in the midst of a connection; it gets the one that is ready by then.
    register_sasl_mechanism(_mechanism, lambda prepared_login, **_: prepared_login, overwrite=True)


class Logins:
    """Those of one client, for its thread. A host has one thread at most, however long nobody answers."""

    def __init__(self, manager: Any) -> None:  # noqa: ANN401 - the library has no types
        self._manager = manager
        self._pending: dict[str, Future] = {}

    async def prepared(self, mechanism: str, host: str, config: Mapping[str, Any]) -> object:
        """Returns a login for one connection; raises LoginUnavailable."""
        make, silence = PREPARED[mechanism]
        try:
            # Another connection to the host is first: what it gets is kept for this one, or its error is the same.
            while (earlier := self._pending.get(host)) is not None:
                await self._manager.wait_for(earlier, PREPARE_SECONDS * 1000)
            own = self._pending[host] = Future()
            Thread(
                target=self._run, args=(partial(make, host=host, **config), own, host), name="kafka-login", daemon=True
            ).start()
            return await self._manager.wait_for(own, PREPARE_SECONDS * 1000)
        except KafkaTimeoutError as error:
            raise LoginUnavailable(silence) from error

    def _run(self, make: Callable[[], object], pending: Future, host: str) -> None:
        try:
            settle = partial(pending.success, make())
        except Exception as error:  # noqa: BLE001 - raised where the login is awaited
            settle = partial(pending.failure, error)

        def finish() -> None:
            del self._pending[host]
            settle()

        # A client that has ended raises RuntimeError or the error that ended it; then nobody waits for this login.
        with suppress(Exception):
            self._manager._net.call_soon_threadsafe(finish)
