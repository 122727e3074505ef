"""The network between the servers is cut, while each of them still reaches the store."""

import time
from collections.abc import Iterable, Mapping
from typing import Final

import grpc
import pytest

from tests.kubernetes.replicas.joining import Joining
from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.rows import LONG
from tests.kubernetes.replicas.servers import Replica, until_led
from tests.tools.deadline import until

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(600)]

VIEWS: Final = ("/replicas", "/proxies")


async def test_network_between_servers_is_cut(mesh: Mesh) -> None:
    """Views name the servers without an answer. Nothing else depends on the network between servers."""
    joining = await Joining.prepared(mesh)
    await until_led(mesh.replicas)
    names = {replica.name: str((await replica.view("/replicas"))["own"]) for replica in mesh.replicas}
    revoked, known, *_ = mesh.observers
    async with mesh.row("the network between servers is cut") as row:
        await _until_silent(mesh, names, {})
        terms, moves = {replica.name: replica.terms() for replica in mesh.replicas}, mesh.moves()
        one, two, three = mesh.replicas
        mesh.peer_networks[two.name].cut()
        await _until_silent(mesh, names, {one.name: [two], three.name: [two]})
        for network in mesh.peer_networks.values():
            network.cut()
        await _until_silent(mesh, names, {item.name: mesh.others(item) for item in mesh.replicas})
        assert mesh.moves() == moves, "a stream has ended"
        # All that servers owe to proxies goes by the store.
        await mesh.moves_on(known)
        code, text = await joining.ask(two)
        assert code is grpc.StatusCode.OK, (code, text)
        assert await joining.is_let_in(three)
        there = mesh.replica(revoked.address)
        status, said = await mesh.others(there)[0].revoke(mesh.serials[revoked.name])
        assert status == 200, said
        await until(lambda: revoked.is_refused_by({there.ads}))
        mesh.forget(revoked)
        assert {replica.name: replica.terms() for replica in mesh.replicas} == terms, "another server leads"
        for network in mesh.peer_networks.values():
            network.heal()
        began = time.monotonic()
        await _until_silent(mesh, names, {})
        row.healed = time.monotonic() - began
        row.note = "views were partial; a join and a revocation were in force at all servers"


async def _until_silent(
    mesh: Mesh, names: Mapping[str, str], silent: Mapping[str, Iterable[Replica]]
) -> None:
    """Wait until the views of each server name exactly these servers as silent."""
    expected = {
        replica.name: sorted(names[item.name] for item in silent.get(replica.name, ()))
        for replica in mesh.replicas
    }

    async def is_shown() -> bool:
        return all(
            [
                await _silent(replica, view) == expected[replica.name]
                for replica in mesh.replicas
                for view in VIEWS
            ]
        )

    await until(is_shown)


async def _silent(replica: Replica, view: str) -> list[str]:
    """Return the servers that a view of a server names as silent."""
    partial = (await replica.view(view))["partial"]
    return sorted(str(item["replica"]) for item in partial)
