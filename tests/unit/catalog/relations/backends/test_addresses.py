"""Tests of virtual addresses: derived from names; only services that collide move."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from catalog.relations.backends.addresses import home, virtual_address
from catalog.store.edits import Edits
from catalog.store.view import MeshSettings, View
from meshwright.engine.derived import ObservedValues
from meshwright.engine.graph import Graph
from meshwright.mesh.names import IpAddress
from meshwright.mesh.service import Service, ServiceKey
from tests.meshes import values as a
from tests.tools.hypothesis_profiles import examples
from tests.unit.delivery.unrecorded_reads import forgetful

NETWORK = IPv4Network("240.0.0.0/8")


def _view(services: Iterable[Service], network: IPv4Network = NETWORK) -> View:
    return a.view(*services, settings=MeshSettings(virtual_addresses=network))


def _addresses(view: View) -> dict[ServiceKey, IpAddress | None]:
    return {key: virtual_address(view, key) for key in view.services}


def _in_order(services: Iterable[Service], network: IPv4Network) -> Mapping[ServiceKey, IpAddress | None]:
    """Return the expected addresses: each service by key takes its home or the next free address."""
    addresses: dict[ServiceKey, IpAddress | None] = {}
    used = {service.cluster_ip for service in services if service.cluster_ip is not None}
    for service in sorted(services, key=lambda service: service.key):
        number = None
        if service.cluster_ip is None and not service.headless:
            number = home(service.key, network)
            while number in used:
                after = IPv4Address(number) + 1
                number = IpAddress(str(network[1] if after == network[-1] else after))
            used.add(number)
        addresses[service.key] = number
    return addresses


def test_virtual_address_is_independent_of_order_and_other_services() -> None:
    """A service keeps its address when others are added, unless two names have the same hash."""
    services = [a.service(f"s{number}") for number in range(200)]
    addresses = _addresses(_view(services))
    assert _addresses(_view(reversed(services))) == addresses
    assert len(set(addresses.values())) == len(services)
    assert {service.key: virtual_address(_view([service]), service.key) for service in services} == addresses


def test_virtual_addresses_fill_a_small_network_and_then_fail() -> None:
    """Each free address is used, addresses in use are skipped, and one service too many is an error."""
    network = IPv4Network("240.0.0.0/29")
    services = [a.service("given", address="240.0.0.3"), *(a.service(f"s{number}") for number in range(5))]
    addresses = set(_addresses(_view(services, network)).values())
    assert addresses == {None, *(f"240.0.0.{number}" for number in (1, 2, 4, 5, 6))}
    full = _view([*services, a.service("one-more")], network)
    with pytest.raises(ValueError, match="5 free addresses for 6 services"):
        virtual_address(full, a.service_key("s0"))
    with pytest.raises(ValueError, match="choose a larger range"):
        virtual_address(_view(services, IPv4Network("240.0.0.0/32")), a.service_key("s0"))


def _drawn(chance: random.Random, number: int) -> Service:
    service = a.service(f"s{number}")
    match chance.randrange(6):
        case 0:
            return replace(service, cluster_ip=IpAddress(f"240.0.0.{chance.randint(1, 40)}"))
        case 1:
            return replace(service, headless=True)
        case _:
            return service


def _history(seed: int) -> bool:
    """Add, delete and change services in a small network; return whether all addresses are right."""
    chance = random.Random(seed)  # noqa: S311 - dice
    network = IPv4Network("240.0.0.0/27")
    there: dict[int, Service] = {}
    view = _view((), network)
    for _ in range(40):
        for _ in range(chance.choice((1, 1, 3))):
            number = chance.randrange(24)
            if number in there and chance.random() < 0.3:
                del there[number]
            else:
                there[number] = _drawn(chance, number)
        known = Edits(a.objects(*there.values()))
        view.apply(view.edits_to(known))
        if _addresses(view) != _in_order(there.values(), network):
            return False
    return True


@pytest.mark.fuzzed
@pytest.mark.parametrize("seed", range(examples(6, fresh=20)))
def test_changes_of_services_give_the_same_addresses_as_a_new_view(seed: int) -> None:
    """After each step the addresses equal those computed from nothing."""
    assert _history(seed)


@pytest.mark.parametrize("what", ["", ", the entries of several"])
def test_virtual_addresses_depend_on_the_recorded_reads_of_homes(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the recorded reads, some service keeps the address of another one."""
    monkeypatch.setattr(Graph, "_link", forgetful(f"services by own address{what}"))
    assert not all(map(_history, range(20)))


def test_new_service_computes_only_services_of_its_home() -> None:
    """In a network with enough room, the cost is equal for 50 and 400 services."""
    costs = []
    for services in (50, 400):
        view = _view(a.service(f"s{number}") for number in range(services))
        assert len(set(_addresses(view).values())) == services
        before = view.graph.computed
        view.apply(Edits(a.objects(a.service("new"))))
        costs.append(view.graph.computed - before)
    assert costs[0] == costs[1]


def test_service_that_must_move_changes_no_other_address() -> None:
    """Of all observed addresses, only that of the new service changes. The same holds when it is deleted."""
    network = IPv4Network("240.0.0.0/22")
    services = [a.service(f"s{number}") for number in range(60)]
    homes = {home(service.key, network): service.key for service in services}
    late = next(
        service
        for service in (a.service(f"z{number}") for number in range(1000))
        if home(service.key, network) in homes and a.service("z").key < service.key
    )
    view = _view(services, network)
    wanted: ObservedValues[ServiceKey, IpAddress | None] = ObservedValues(virtual_address, view)
    for service in (*services, late):
        wanted.add(service.key)
        wanted.value(service.key)
    wanted.take_changed()
    view.apply(Edits(a.objects(late)))
    assert wanted.take_changed() == (late.key,)
    moved_to = wanted.value(late.key)
    assert moved_to not in (None, home(late.key, network))
    view.apply(Edits(dict.fromkeys(a.objects(late))))
    assert wanted.take_changed() == (late.key,)
    assert wanted.value(late.key) is None
