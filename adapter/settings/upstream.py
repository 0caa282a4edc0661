"""The other server of external metrics, which serves what this adapter does not."""

from typing import Annotated

from pydantic import Field

from adapter.settings import types


class UpstreamSettings(types.SettingsPart):
    """It gets this adapter's token, so its certificate is always verified."""

    service: types.DnsLabel
    namespace: types.DnsLabel
    port: Annotated[int, Field(ge=1, le=65535)] = 443
    ca_file: types.File
    """PEM: the authority that issued its certificate."""

    @property
    def host(self) -> str:
        """The name that kube-apiserver verifies as well."""
        return f"{self.service}.{self.namespace}.svc"
