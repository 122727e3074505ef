"""Tests of acts at all servers: a revocation that the store does not take, and retries of a proxy."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from certs.ledger.contract import UnwrittenError
from certs.ledger.entry import LedgerEntry
from meshwright.admin.http import commands
from meshwright.controller.sharing.peers.acts import PeerActs
from meshwright.records.contract import ReplicaId
from meshwright.replicas.state import ReplicaState
from tests.unit.admin.conftest import NAME, NOW, FakeReading
from tests.unit.admin.http.test_commands import _Proxies, retried
from tests.unit.controller.sharing.peers.some_servers import OneServer, some_servers


class StoreAway(_Proxies):
    """Fake registry of proxies whose shared ledger cannot be written."""

    def revoke(self, serial: str, why: str) -> LedgerEntry:
        """Revoke in memory only."""
        entry = super().revoke(serial, why)
        raise UnwrittenError("the shared ledger cannot be written (no answer)", entry)


@asynccontextmanager
async def commands_of(
    server: OneServer, revoked: list[LedgerEntry], now: datetime = NOW
) -> AsyncIterator[TestClient[Any, Any]]:
    """Serve the commands of one of several servers."""
    app = web.Application(middlewares=[commands.explained])
    acts = PeerActs(server.client, server.views)
    commands.add_commands(
        app, commands.Commands(server.reading, StoreAway(now), revoked.append, retried, acts)
    )
    async with TestClient(TestServer(app)) as client:
        yield client


async def test_revocation_without_the_store_is_in_force_at_all_servers(tmp_path: Path) -> None:
    """The answer says at how many servers it is in force, that it is not kept, and who did not answer."""
    async with some_servers(tmp_path, {name: FakeReading() for name in "abc"}) as servers:
        revoked: list[LedgerEntry] = []
        async with commands_of(servers["a"], revoked) as client:
            body = {"serial": "ab", "reason": "stolen"}
            response = await client.post("/certs/revoke", json=body)
            error = (await response.json())["error"]
            assert response.status == 500
            assert error.startswith(
                "the shared ledger cannot be written (no answer); the revocation is in force"
            )
            assert error.endswith(
                "in force at 3 of 3 servers, not kept: they try again to write it, and it is lost if all of "
                "them stop before that"
            )
            assert [entry.serial for entry in revoked] == ["ab"]
            assert servers["b"].revoked == servers["c"].revoked == [("ab", "stolen")]
            servers["b"].is_refusing = True
            servers["a"].membership.hear(
                {ReplicaId("b"): servers["b"].membership.encoded(), ReplicaId("d"): ReplicaState().encode()}
            )
            error = (await (await client.post("/certs/revoke", json=body)).json())["error"]
            assert "in force at 1 of 3 servers" in error
            assert error.endswith("; server d does not answer: it does not listen for other servers yet")


async def test_retry_reaches_the_proxy_s_server(tmp_path: Path, reading: FakeReading) -> None:
    """The server that has the proxy offers the resources, under any name of the proxy."""
    async with some_servers(tmp_path, {"a": FakeReading(reading.view()), "b": reading}) as servers:
        for name, done in (("a", [str(NAME)]), ("b", [str(NAME)])):
            async with commands_of(servers[name], []) as client:
                response = await client.post("/proxies/retry", json={"proxy": "uuid-1"})
                offered = ["route a"] if name == "a" else ["route r"]
                assert (response.status, await response.json()) == (
                    200,
                    {"proxy": str(NAME), "offered": offered},
                )
            assert servers["b"].retried == done
        async with commands_of(servers["a"], []) as client:
            response = await client.post("/proxies/retry", json={"proxy": "nobody"})
            assert response.status == 400
