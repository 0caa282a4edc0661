"""The other server of external metrics, which serves what this adapter does not."""

from typing import Annotated, Self

from pydantic import Field, ValidationInfo, model_validator

from adapter.settings import types
from adapter.settings.security import File


class UpstreamSettings(types.SettingsPart):
    """It gets this adapter's token, so its certificate is always verified."""

    service: types.DnsLabel
    namespace: types.DnsLabel
    port: Annotated[int, Field(ge=1, le=65535)] = 443
    ca_file: File
    """PEM: the authority that issued its certificate."""

    @property
    def host(self) -> str:
        """The name that kube-apiserver verifies as well."""
        return f"{self.service}.{self.namespace}.svc"

    @model_validator(mode="after")
    def _authority_can_be_read(self, info: ValidationInfo) -> Self:
        if types.opens_files(info):
            # Loads cryptography.
            from adapter.settings.client_certificate import trusting  # noqa: PLC0415 - see above
            from adapter.settings.secret_files import CredentialsInvalid, read_file  # noqa: PLC0415 - see above

            try:
                trusting([read_file("caFile", self.ca_file)])
            except CredentialsInvalid as error:
                raise ValueError(str(error)) from error
        return self
