"""Which version of each request is sent to a broker, negotiated from what it offers on its own connection.

Every connection negotiates anew: a rolling upgrade mixes versions for minutes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from adapter.protocol import apis
from adapter.protocol.apis import Api

Offered = Mapping[int, tuple[int, int]]
"""Key of a request -> the oldest and the newest version that the broker offers."""


class NotOffered(Exception):
    """The broker offers no version of the request that the adapter knows; says what is missing."""


class VersionsChanged(Exception):
    """The request was planned for versions that the broker no longer offers; the next cycle plans it anew."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The negotiated version of each request; None: not offered in a version that the adapter knows.

    The defaults are what is assumed of a broker that was never connected."""

    list_offsets: int | None = apis.LIST_OFFSETS.newest
    metadata: int | None = apis.METADATA.newest
    offset_fetch: int | None = apis.OFFSET_FETCH.newest
    find_coordinator: int | None = apis.FIND_COORDINATOR.newest
    list_groups: int | None = apis.LIST_GROUPS.newest
    describe_groups: int | None = apis.DESCRIBE_GROUPS.newest
    consumer_group_describe: int | None = apis.CONSUMER_GROUP_DESCRIBE.newest
    share_group_describe: int | None = apis.SHARE_GROUP_DESCRIBE.newest
    streams_group_describe: int | None = apis.STREAMS_GROUP_DESCRIBE.newest
    describe_share_group_offsets: int | None = apis.DESCRIBE_SHARE_GROUP_OFFSETS.newest
    offered: Offered = field(default_factory=dict, repr=False)

    def of(self, api: Api) -> int | None:
        version: int | None = getattr(self, _FIELDS[api])
        return version

    def required(self, api: Api) -> int:
        """Raises NotOffered."""
        version = self.of(api)
        if version is None:
            raise NotOffered(self.lack(api))
        return version

    def lack(self, api: Api) -> str:
        """Returns what the broker offers instead of a version that the adapter knows."""
        if api.key not in self.offered:
            return f"does not offer {api.name}"
        oldest, newest = self.offered[api.key]
        if newest < api.oldest:
            return f"offers {api.name} up to {newest}; {api.oldest} or newer is needed"
        return f"offers {api.name} from {oldest} on; {api.newest} or older is needed"


NEWEST = Versions()
_FIELDS = {api: name.lower() for name, api in vars(apis).items() if isinstance(api, Api)}


def negotiated(offered: Offered) -> Versions:
    """Returns the newest version of each request that both sides know."""
    return Versions(offered=offered, **{name: _newest(api, offered) for api, name in _FIELDS.items()})


def _newest(api: Api, offered: Offered) -> int | None:
    oldest, newest = offered.get(api.key, (0, -1))
    version = min(newest, api.newest)
    return version if version >= max(oldest, api.oldest) else None
