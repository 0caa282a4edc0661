"""docs/versions.md names the versions of requests that the code has."""

import re
from pathlib import Path

import pytest

from adapter.protocol import apis
from adapter.protocol.apis import Api

PAGE = (Path(__file__).parents[2] / "docs" / "versions.md").read_text()
NEEDED = (apis.METADATA, apis.LIST_OFFSETS, apis.OFFSET_FETCH, apis.FIND_COORDINATOR)


@pytest.mark.parametrize("api", NEEDED, ids=lambda api: api.name)
def test_the_page_has_the_oldest_and_the_newest_version_of_a_request(api: Api) -> None:
    (row,) = re.findall(rf"^\| {api.name} \| [^|]* \| (\d+) \| (\d+)", PAGE, re.MULTILINE)

    assert (int(row[0]), int(row[1])) == (api.oldest, api.newest)
