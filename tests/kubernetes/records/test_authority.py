"""Tests of servers that share the authority and service certificates on a real API server."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime

from certs.authority_records.data_key import SEAL
from certs.authority_records.fields import AUTHORITY
from certs.roots.authority_store import Overtaken
from certs.roots.rotation import advanced
from meshwright.kube.api import Api
from meshwright.kube.resource import Raw
from meshwright.records.contract import Epoch
from meshwright.records.kubernetes.definition import RECORDS
from meshwright.records.kubernetes.objects import record_of
from tests.kubernetes.tools.record_stores import KubernetesStores
from tests.tools import leak_forms
from tests.unit.certs.authority_records.mesh_servers import MeshServer, start
from tests.unit.records.test_contract import running


async def test_two_servers_have_one_ca_and_one_certificate_for_a_service(
    api: Api, home: str, stores: KubernetesStores
) -> None:
    """They start at the same moment. One takes a step of a root rotation, and the other follows it."""
    now, loop = datetime.now(UTC), asyncio.get_running_loop()

    async def started(name: str) -> MeshServer:
        return await asyncio.to_thread(start, stores.client(name), name, loop, now, b"correct horse")

    one, two = await asyncio.gather(started("one"), started("two"))
    async with AsyncExitStack() as stack:
        for server in (one, two):
            await stack.enter_async_context(running(server.pairs.follow()))
            await server.pairs.listed()
        seen = await asyncio.gather(*(asyncio.to_thread(item.certificate, now) for item in (one, two)))
        assert (one.authority.fingerprint, seen[0]) == (two.authority.fingerprint, seen[1])
        await asyncio.to_thread(one.store.lead, Epoch(1))
        rotation = await asyncio.to_thread(one.authority.begin, now)
        assert await asyncio.to_thread(_is_overtaken, two, now)
        await asyncio.to_thread(one.authority.step, advanced(rotation, now), now)
        assert await asyncio.to_thread(two.authority.look, now)
        assert two.authority.fingerprint == one.authority.fingerprint == rotation.other
        renewed = await asyncio.gather(*(asyncio.to_thread(item.certificate, now) for item in (two, one)))
        assert renewed[0] == renewed[1] != seen[0]
    state = await asyncio.to_thread(one.store.read)
    keys = [renewed[0][1], *(ca.key.reveal() for ca in (state.state.ca, state.state.other))]  # type: ignore[union-attr]
    secrets = {str(number): leak_forms.of_key(key) for number, key in enumerate(keys)}
    objects: list[Raw] = (await api.list(RECORDS, home))["items"]
    records = {record.key: record.content for record in map(record_of, objects)}
    assert sorted(records) == [AUTHORITY, SEAL, "services/shop/cart"]
    assert {key: leak_forms.seen(content, secrets) for key, content in records.items()} == {
        key: [] for key in records
    }


def _is_overtaken(server: MeshServer, now: datetime) -> bool:
    """Return whether a server that begins a rotation is told of another server's."""
    try:
        server.authority.begin(now)
    except Overtaken:
        return True
    return False
