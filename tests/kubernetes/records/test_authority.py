"""Tests of servers that share the authority and service certificates on a real API server."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest

from certs.authority_records.data_key import SEAL
from certs.authority_records.fields import AUTHORITY
from certs.roots.authority_store import Overtaken
from certs.roots.rotation import advanced
from meshwright.kube.api import Api
from meshwright.kube.builtin import SECRETS
from meshwright.kube.resource import Raw
from meshwright.records.content import Content
from meshwright.records.contract import Epoch
from meshwright.records.kubernetes.definition import RECORDS
from meshwright.records.kubernetes.objects import record_of
from meshwright.records.kubernetes.secret_data import records_in as secret_records_in
from meshwright.records.kubernetes.store import CUSTODY
from tests.kubernetes.tools.record_stores import KubernetesStores
from tests.tools import leak_forms
from tests.unit.certs.authority_records.mesh_servers import MeshServer, start
from tests.unit.records.test_contract import running


@pytest.mark.parametrize("passphrase", [b"correct horse", None])
async def test_two_servers_have_one_ca_and_one_certificate_for_a_service(
    api: Api, home: str, stores: KubernetesStores, passphrase: bytes | None
) -> None:
    """They start at the same moment. One takes a step of a root rotation, and the other follows it.

    No private key can be read in any Record, and no data key. With a passphrase, none can be read in the
    Secret either; without one it has the data key, and nothing else as it is.
    """
    now, loop = datetime.now(UTC), asyncio.get_running_loop()

    async def started(name: str) -> MeshServer:
        return await asyncio.to_thread(start, stores.client(name), name, loop, now, passphrase)

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
    secret = await api.get(SECRETS, home, CUSTODY)
    keys = [renewed[0][1], *(ca.key.reveal() for ca in (state.state.ca, state.state.other))]  # type: ignore[union-attr]
    secrets = {str(number): leak_forms.of_key(key) for number, key in enumerate(keys)}
    objects: list[Raw] = (await api.list(RECORDS, home))["items"]
    records = {record.key: record.content for record in map(record_of, objects)}
    assert list(records) == ["services/shop/cart"]
    in_secret = {key: record.content for key, record in secret_records_in(secret).items()}
    assert sorted(in_secret) == [AUTHORITY, SEAL]
    text = Content.decode(in_secret[SEAL]).fields.get("data_key")
    assert (text is None) == (passphrase is not None)
    if isinstance(text, str):
        secrets["data key"] = bytes.fromhex(text)
    found = {key: leak_forms.seen(content, secrets) for key, content in (records | in_secret).items()}
    assert found == {
        "services/shop/cart": [],
        AUTHORITY: [],
        SEAL: [] if text is None else ["data key: hex"],
    }


def _is_overtaken(server: MeshServer, now: datetime) -> bool:
    """Return whether a server that begins a rotation is told of another server's."""
    try:
        server.authority.begin(now)
    except Overtaken:
        return True
    return False
