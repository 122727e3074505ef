"""Tests of log levels over HTTP: the error for an invalid request shows a valid one."""

from collections.abc import Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from meshwright.admin.http.log_levels import PATH, add_log_levels


class _Levels:
    """Fake log levels that no request may change."""

    def levels(self) -> Mapping[str, str]:
        """Return the root level."""
        return {"": "info"}

    def set_level(self, logger: str, level: str | None) -> None:
        """Fail, because no request of these tests is valid."""
        raise AssertionError((logger, level))


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[]", b'{"logger": "delivery"}', b'{"logger": 1}'])
async def test_invalid_body_is_answered_with_an_example(body: bytes) -> None:
    """Every invalid body, also one that is not JSON, gets 400 with an example of a valid body."""
    app = web.Application()
    add_log_levels(_Levels(), app)
    async with TestClient(TestServer(app)) as client:
        response = await client.post(PATH, data=body)
        answer = await response.json()
    assert response.status == 400
    assert answer == {
        "error": 'the body must be a JSON object, for example {"logger": "delivery", "level": "debug"}'
    }
