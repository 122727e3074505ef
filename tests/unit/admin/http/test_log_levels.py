"""Log levels on request: who asks for what makes no sense is told what would."""

from collections.abc import Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from meshwright.admin.http.log_levels import PATH, add_log_levels


class _Levels:
    """Levels that nobody can change."""

    def levels(self) -> Mapping[str, str]:
        """Answer that of everything."""
        return {"": "info"}

    def set_level(self, logger: str, level: str | None) -> None:
        """Take none."""
        raise AssertionError((logger, level))


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[]", b'{"logger": "delivery"}', b'{"logger": 1}'])
async def test_a_body_that_is_no_request_is_answered_with_one(body: bytes) -> None:
    """Also what is no JSON at all, of which the parser's own words say nothing to whoever wrote it."""
    app = web.Application()
    add_log_levels(_Levels(), app)
    async with TestClient(TestServer(app)) as client:
        response = await client.post(PATH, data=body)
        said = await response.json()
    assert response.status == 400
    assert said == {
        "error": 'the body must be a JSON object such as {"logger": "delivery", "level": "debug"}'
    }
