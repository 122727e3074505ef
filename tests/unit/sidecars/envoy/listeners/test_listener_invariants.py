"""Tests of invariants of listeners in random meshes.

Envoy rejects a listener with two equal filter-chain matches, and then the workload could call no service.
"""

import random
from collections.abc import Iterator
from ipaddress import ip_address

import pytest
from google.protobuf.any_pb2 import Any
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.policy import reachable
from catalog.policy.group_policy import proxy_policy
from catalog.policy.outbound import called_at, visible
from catalog.policy.route_table import table
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ReachableServices
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.groups import ProxyGroup, groups
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import Port
from meshwright.mesh.service import Service
from meshwright.mesh.workload import Capture, Transparent, Workload, WorkloadPort
from protos.envoy.config.listener.v3 import listener_pb2
from tests.meshes import values as a
from tests.meshes.resources import resources
from tests.tools.hypothesis_profiles import examples
from xds.protocol.resources.resource import LISTENER, SECRET, Resource
from xds.protocol.resources.snapshot import Snapshot

MESHES = 60
TARGETS: tuple[int | str, ...] = (8080, 8081, "web")
INTERCEPTIONS = (
    a.TRANSPARENT,
    a.TRANSPARENT,
    Transparent(ipv6=True),
    Transparent(Capture.TPROXY, ipv6=True),
    a.explicit(None, ("a", 80, "127.0.0.1", 8080)),
    a.explicit("127.0.0.9"),
)


def view(seed: int) -> View:
    """Make a permissive mesh in which many services claim the same addresses."""
    dice = random.Random(seed)  # noqa: S311 - dice
    return a.view(
        *(_service(dice, name) for name in "abcdef"[: dice.randint(2, 6)]),
        *(_workload(dice, number) for number in range(dice.randint(1, 6))),
        *(a.split(f"s-{apex}", apex, (dice.choice("abc"), 1)) for apex in "ab" if dice.random() < 0.3),
        MeshConfig(permissive=True, egress=dice.random() < 0.5),
    )


def _service(dice: random.Random, name: str) -> Service:
    numbers = dice.sample((80, 81, 8080, 8081), dice.randint(1, 3))
    ports = [a.port(each, dice.choice(TARGETS), dice.choice((a.HTTP, a.TCP)), f"p{each}") for each in numbers]
    address = dice.choice((None, None, "10.96.0.1", "10.0.0.1", "fd00::1"))
    headless = address is None and dice.random() < 0.7
    return a.service(name, *ports, app=dice.choice("xy"), address=address, headless=headless)


def _workload(dice: random.Random, number: int) -> Workload:
    web = WorkloadPort(Port(dice.choice((8080, 8081, 9090))), "web")
    interception = dice.choice(INTERCEPTIONS)
    address = f"{dice.choice(('10.0.0.', 'fd00::'))}{dice.randint(1, 4)}"
    return a.workload(f"w{number}", address, web, app=dice.choice("xy"), interception=interception)


def faults(mesh: View) -> Iterator[str]:
    """Yield the faults of the listeners of all proxies."""
    for key in groups(mesh):
        made = resources(proxy_policy(mesh, key))
        names = [(resource.type_url, resource.name) for resource in made]
        if len(set(names)) != len(names):
            yield f"{key}: two resources of one type and name"
        unknown = [name for _, kind, name in Snapshot.of(made).missing() if kind != SECRET]
        if unknown:
            yield f"{key}: it refers to {unknown}"
        for fault in (*_equal_matches(made), *_shared_sockets(made)):
            yield f"{key}: {fault}"


def _listeners(made: tuple[Resource, ...]) -> list[listener_pb2.Listener]:
    bodies = [Any.FromString(resource.body).value for resource in made if resource.type_url == LISTENER]
    return [listener_pb2.Listener.FromString(body) for body in bodies]


def _equal_matches(made: tuple[Resource, ...]) -> Iterator[str]:
    """Yield the matches that two chains of a listener share, by address, as Envoy compares them."""
    for listener in _listeners(made):
        seen: set[tuple[object, ...]] = set()
        names = [filter_chain.name for filter_chain in listener.filter_chains]
        if len(set(names)) != len(names):
            yield f"two filter chains of {listener.name} have one name"
        for chain in listener.filter_chains:
            match = chain.filter_chain_match
            ranges = [f"{ip_address(it.address_prefix)}/{it.prefix_len.value}" for it in match.prefix_ranges]
            for item in ranges or ["any"]:
                protocol, callers = match.transport_protocol, tuple(match.server_names)
                result = (match.destination_port.value, item, protocol, callers)
                if result in seen:
                    yield f"two filter chains of {listener.name} match {result}"
                seen.add(result)


def _shared_sockets(made: tuple[Resource, ...]) -> Iterator[str]:
    """Yield the sockets that two listeners of one proxy would bind."""
    sockets = [listener.address.socket_address for listener in _listeners(made)]
    for number, one in enumerate(sockets):
        for other in sockets[:number]:
            wildcard = not {"0.0.0.0", "::"}.isdisjoint((one.address, other.address))
            alike = ip_address(one.address).version == ip_address(other.address).version
            if one.port_value == other.port_value and alike and (wildcard or one.address == other.address):
                yield f"two listeners at {one.address}:{one.port_value}"


@settings(max_examples=examples(12, fresh=4 * MESHES), deadline=None)
@given(st.integers(0, 2**32))
def test_random_mesh_has_no_equal_filter_chain_matches(seed: int) -> None:
    """Moreover, no two listeners share a socket, and every reference has its resource."""
    assert list(faults(view(seed))) == []


def _careless(mesh: View, group: ProxyGroup, ipv6: bool) -> tuple[ReachableServices, ...]:
    """Offer services without removing those whose address is already in use."""
    del ipv6
    client = group.identity
    result = (
        OutboundService(key, port.port, protocol_of(mesh, key, port), ways, addresses)
        for key in visible(mesh, client)
        for port in mesh.services[key].ports
        if (ways := table(mesh, client, key, port))
        and (addresses := tuple(address.address for address in called_at(mesh, client, key, port)))
    )
    return (ReachableServices.from_sorted(result),)


def test_missing_check_for_shared_addresses_makes_equal_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: if services may share an address and port, some mesh has two equal matches."""
    monkeypatch.setattr(reachable, "_transparent", _careless)
    assert any("match (" in fault for seed in range(MESHES) for fault in faults(view(seed)))


def test_random_meshes_have_several_filter_chains_for_each_proxy() -> None:
    """With fewer chains, the tests above would prove little."""
    meshes = [view(seed) for seed in range(20)]
    made = [resources(proxy_policy(mesh, key)) for mesh in meshes for key in groups(mesh)]
    chains = sum(len(listener.filter_chains) for item in made for listener in _listeners(item))
    assert chains > 3 * len(made) > 90
