"""Tests of a CA in files that another program replaces while proxies are connected."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from certs.keys.bundle import TrustBundle
from certs.keys.leaf import is_signed_by_bundle
from certs.keys.material import PrivateKey
from certs.keys.pair import matched_pair
from tests.feature.identity.root_follower import Follower
from tests.feature.identity.test_enrolment import PORTS
from tests.feature.identity.test_root_change import ABSENT, BARE, ENROLLED, MESH, ROTATE, follower
from tests.unit.certs.issuers.example_cas import Ca, ca

Serve = Callable[..., Awaitable[Any]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the files more often."""
    monkeypatch.setattr("meshwright.controller.issuing.foreign_ca.LOOKING", 0.1)
    monkeypatch.setattr("certs.issuer_selection._LOOKING", 0.1)


class Volume:
    """A mounted Secret that is replaced by one symbolic link."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._times = 0

    def exchange(self, name: str) -> Ca:
        """Replace the content by another root."""
        made, self._times = ca(name, datetime.now(UTC)), self._times + 1
        made.put(self.folder / f"..{self._times}", made)
        link = self.folder / "..tmp"
        link.symlink_to(f"..{self._times}")
        link.rename(self.folder / "..data")
        for item in ("tls.crt", "tls.key", "ca.crt"):
            if not (self.folder / item).is_symlink():
                (self.folder / item).symlink_to(f"..data/{item}")
        return made


async def standing(server: Any, former: int) -> dict[str, Any]:
    """Return the authority's state once it has this number of former CAs."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 60
    while True:
        result: dict[str, Any] = (await server.ask("GET", "/debug/certs"))["authority"]
        if len(result["formers"]) == former:
            return result
        assert loop.time() < deadline, result
        await asyncio.sleep(0.05)


async def newcomer(server: Any, uuid: str) -> Follower:
    """Return a proxy with a certificate that the running server issues now."""
    wanted = {"uuid": uuid, "service": "store", "namespace": "shop"}
    made = await server.ask("POST", "/certs/issue-proxy", wanted)
    pair = matched_pair(made["chain_pem"].encode(), PrivateKey(made["key_pem"].encode()))
    return Follower(server, made["name"], pair, made["trust_bundle_pem"].encode())


async def test_replaced_ca_files_reach_connected_proxies_without_a_disconnect(
    serve: Serve, tmp_path: Path
) -> None:
    """Proxies stay connected, agents get the new root, and new certificates are signed by it."""
    volume = Volume(tmp_path / "volume")
    first = volume.exchange("first")
    server = await serve(*MESH, **PORTS, authority_directory=volume.folder)
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(follower(server, ENROLLED).running())
        two = await stack.enter_async_context(follower(server, BARE).running(agent=False))
        assert two.roots == first.pem
        opened = await server.metric('meshwright_xds_streams_opened_total{protocol="delta"}')
        second = volume.exchange("second")
        result = await standing(server, 1)
        assert (result["kind"], result["place"]) == ("files", str(volume.folder))
        three = await stack.enter_async_context((await newcomer(server, "three")).running())
        assert is_signed_by_bundle(three.pair.chain_pem, second.pem)
        both = TrustBundle.from_pems([first.pem, second.pem])
        while TrustBundle.from_pems([one.roots]) != both or TrustBundle.from_pems([two.mesh_roots]) != both:
            await asyncio.sleep(0.05)
        # No stream was ended: there is one more than before, the new proxy's.
        await server.until(dict.fromkeys((ENROLLED, BARE, ABSENT), "connected"))
        assert await server.metric('meshwright_xds_streams_opened_total{protocol="delta"}') == opened + 1
        # A proxy without the new root can reconnect: the server still has a certificate of the former CA.
        async with server.client(two.pair, first.pem) as client:
            await client.ask(BARE)
            await client.receive()
        connector = aiohttp.UnixConnector(str(server.state / "meshwright.sock"))
        async with (
            aiohttp.ClientSession(connector=connector) as asking,
            asking.post(f"http://localhost{ROTATE}", json={}) as answer,
        ):
            assert await answer.json() == {
                "error": "this server does not own the root; "
                f"rotate the CA in {volume.folder}, and the server follows"
            }
            assert answer.status == 400
