"""Tests of the export of the mesh's state over the socket."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from certs.errors import StateError
from meshwright.admin.http.commands import explained
from meshwright.admin.http.state import StateCommands, add_state_commands


def _exported(passphrase: bytes) -> str:
    if passphrase == b"\xff":
        raise StateError("the ledger cannot be read")
    return f"sealed with {len(passphrase)} bytes"


@pytest.mark.parametrize(
    ("body", "status", "answer"),
    [
        ({"passphrase": b"correct horse".hex()}, 200, {"text": "sealed with 13 bytes"}),
        ({"passphrase": "ff"}, 500, {"error": "the ledger cannot be read"}),
        ({"passphrase": ""}, 400, None),
        ({"passphrase": "correct horse"}, 400, None),
        ({"passphrase": 5}, 400, None),
        ([], 400, None),
    ],
)
async def test_export_is_answered(body: object, status: int, answer: object) -> None:
    """An error about the passphrase does not repeat the passphrase."""
    app = web.Application(middlewares=[explained])
    add_state_commands(app, StateCommands(_exported))
    async with TestClient(TestServer(app)) as client, client.post("/state/export", json=body) as response:
        expected = answer or {"error": "passphrase must be a text with the hexadecimal digits of its bytes"}
        assert (response.status, await response.json()) == (status, expected)
