"""Which credentials a cluster's client uses: the newest ones that work."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapter.kafka.tokens import Tokens
from adapter.settings.credentials import Credentials, credentials_of
from adapter.settings.secret_files import CredentialsInvalid, SecretFiles, read
from adapter.settings.security import Security


@dataclass(frozen=True, eq=False)
class BrokerAccess:
    """Credentials, and the tokens that are fetched with them."""

    credentials: Credentials
    tokens: Tokens | None

    def is_ready(self, seconds: float) -> bool:
        """Whether they can be shown, after waiting at most this long for the first token."""
        if self.tokens is None:
            return True
        self.tokens.start()
        return self.tokens.wait(seconds)

    def close(self) -> None:
        if self.tokens is not None:
            self.tokens.close()


class Rotation:
    """For one thread. Files are compared by their content, so that every way of replacing them is noticed."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._files: SecretFiles | None = None
        self._newest: BrokerAccess | None = None
        self.in_use: BrokerAccess | None = None
        """Those that worked last."""
        self._problem = ""
        """Why the files' content is not in use; empty: it is, or has not been tried yet."""

    def refresh(self) -> None:
        """Reads the files again; what is in use stays until others have been accepted."""
        try:
            files = read(self._security)
            if files != self._files:
                credentials = credentials_of(self._security, files)
                login = credentials.login
                tokens = Tokens(login, login.token_request) if login.token_request else None
                self._replace(BrokerAccess(credentials, tokens))
                self._files = files
        except CredentialsInvalid as error:
            self._replace(None)
            self._files, self._problem = None, str(error)

    @property
    def problem(self) -> str:
        """Returns why the newest credentials are not used, or the token not renewed; empty: neither is known."""
        tokens = None if self.in_use is None else self.in_use.tokens
        return self._problem or ("" if tokens is None else tokens.problem)

    @property
    def candidates(self) -> Sequence[BrokerAccess]:
        """Returns what to connect with, the newest first."""
        known = (self._newest, None if self.in_use is self._newest else self.in_use)
        return [access for access in known if access is not None]

    @property
    def untried(self) -> BrokerAccess | None:
        return None if self._newest is self.in_use else self._newest

    def accept(self, access: BrokerAccess) -> None:
        if self.in_use is not None and self.in_use is not access:
            self.in_use.close()
        self.in_use = access
        if access is self._newest:
            self._problem = ""

    def reject(self, access: BrokerAccess, why: str) -> None:
        if access is self._newest:
            self._problem = why

    def close(self) -> None:
        """Ends what runs for the credentials; connecting with them starts it again."""
        for access in self.candidates:
            access.close()

    def _replace(self, newest: BrokerAccess | None) -> None:
        if (dropped := self.untried) is not None:
            dropped.close()
        self._newest = newest
