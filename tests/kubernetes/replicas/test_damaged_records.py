"""Records that are damaged, of a newer form, or deleted by hand, while the servers run."""

import json
import time
from collections.abc import Callable
from typing import Final

import grpc
import pytest

from certs.authority_records.data_key import SEAL
from certs.authority_records.fields import AUTHORITY
from certs.ledger.records.fields import key_of_proxy
from certs.pair_records.fields import SERVICES
from meshwright.kube.builtin import SECRETS
from meshwright.mesh.identity import ProxyName
from meshwright.records.contract import Record, RecordStore
from meshwright.records.key import Key, key_of, words_of
from meshwright.records.kubernetes.store import CUSTODY
from tests.kubernetes.replicas.engines import KubernetesEngine
from tests.kubernetes.replicas.joining import Joining
from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.rows import LONG
from tests.kubernetes.replicas.servers import Replica
from tests.tools.deadline import until

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(600)]

NEWER: Final = 99
SAID_SECONDS: Final = 15.0
HEALED_SECONDS: Final = 15.0


async def test_damaged_records(mesh: Mesh) -> None:
    """Damaged records of a proxy and of a service are logged, and never overwritten."""

    def damage(content: bytes) -> bytes:
        return content[: len(content) // 2]

    await _damaged(mesh, "records are damaged", damage)


async def test_records_of_a_newer_version(mesh: Mesh) -> None:
    """Records of a newer form are logged, and never overwritten."""

    def as_newer(content: bytes) -> bytes:
        return json.dumps({**json.loads(content), "form": NEWER}).encode()

    await _damaged(mesh, "records are of a newer form", as_newer)


async def test_records_are_deleted_by_hand(mesh: Mesh) -> None:
    """Records of proxies and services are there again, with equal contents, and nothing is sent."""
    store = mesh.engine.records("hand")
    async with mesh.row("records are deleted by hand") as row:
        records = [await _present(store, key) for key in _keys(mesh)]
        for record in records:
            await store.remove(record.key, record.revision)
        began = time.monotonic()

        async def are_back() -> bool:
            return all([await store.read(record.key) is not None for record in records])

        await until(are_back, HEALED_SECONDS)
        row.healed = time.monotonic() - began
        for replica in mesh.replicas:
            await replica.stop()
            await replica.start()
        await mesh.settled()


async def test_records_of_the_ca_are_deleted_by_hand(mesh: Mesh) -> None:
    """Running servers write the same CA again, proxies join, and servers start with it."""
    store, joining = mesh.engine.records("hand"), await Joining.prepared(mesh)
    keys = [key_of(SEAL), key_of(AUTHORITY)]
    async with mesh.row("records of the CA are deleted by hand") as row:
        if isinstance(mesh.engine, KubernetesEngine):  # there they are the content of one Secret
            await mesh.engine.api.delete(SECRETS, mesh.engine.home, CUSTODY)
        else:
            for record in [await _present(store, key) for key in keys]:
                await store.remove(record.key, record.revision)
        began = time.monotonic()

        async def are_back() -> bool:
            are_lost = any(map(_has_said_lost, mesh.replicas))
            return are_lost and all([await store.read(key) is not None for key in keys])

        await until(are_back, HEALED_SECONDS)
        row.healed = time.monotonic() - began
        for observer in mesh.observers:
            await mesh.moves_on(observer)
        code, text = await joining.ask(mesh.replicas[1])
        assert code is grpc.StatusCode.OK, (code, text)
        for replica in mesh.replicas:
            await replica.stop()
            await replica.start()
        await mesh.settled()


async def _damaged(mesh: Mesh, name: str, damage: Callable[[bytes], bytes]) -> None:
    """Damage records of a connected proxy and of a service that it uses; nothing else may stop working."""
    store, joining = mesh.engine.records("hand"), await Joining.prepared(mesh)
    async with mesh.row(name) as row:
        intact = [await _present(store, key) for key in _keys(mesh)]
        written = [
            await store.write(record.key, damage(record.content), record.revision) for record in intact
        ]
        began = time.monotonic()
        proxy, service = (record.key for record in written)
        await until(lambda: all(_has_said(replica, proxy) for replica in mesh.replicas), SAID_SECONDS)
        # Only servers that need the certificate decode its record.
        await until(lambda: any(_has_said(replica, service) for replica in mesh.replicas), SAID_SECONDS)
        row.healed = time.monotonic() - began
        # The proxy is known from before, another one can join, and the damage stays for the operator.
        for observer in mesh.observers:
            await mesh.moves_on(observer)
        code, text = await joining.ask(mesh.replicas[1])
        assert code is grpc.StatusCode.OK, (code, text)
        assert [await store.read(record.key) for record in written] == written
        for replica in mesh.replicas:
            status, remarks = await replica.ready()
            assert (status, proxy in remarks) == (200, True), remarks
        # The remarks stay until the operator has repaired the records; the row ends when they are gone.
        for record, before in zip(written, intact, strict=True):
            await store.write(record.key, before.content, record.revision)


def _keys(mesh: Mesh) -> list[Key]:
    """Return the keys of the records of a proxy that is connected, and of the service of an Envoy."""
    name = mesh.proxies[0].name
    return [
        key_of_proxy(ProxyName.parse(mesh.observers[0].name)),
        key_of(*words_of(SERVICES), "shop", name),
    ]


async def _present(store: RecordStore, key: Key) -> Record:
    record = await store.read(key)
    assert record is not None, key
    return record


def _has_said(replica: Replica, key: Key) -> bool:
    """Return whether the log has an error for a record."""
    return any(
        line.get("key") == key for line in replica.running.log() if "cannot be read" in str(line["event"])
    )


def _has_said_lost(replica: Replica) -> bool:
    """Return whether the log says that this server has written lost records again."""
    return any("had lost records" in str(line["event"]) for line in replica.running.log())
