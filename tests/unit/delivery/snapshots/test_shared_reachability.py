"""Tests of shared reachability: equal to each client's own, with some permissive namespaces."""

import random
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from catalog.policy.destinations import answering_at, endpoints_of
from catalog.policy.group_policy import proxy_policy
from catalog.policy.outbound import answering, called_at, escaped_slashes, visible
from catalog.policy.reachable import open_to_all
from catalog.policy.route_table import table
from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ProxyPolicy
from catalog.policy.values.route_actions import Forward
from catalog.policy.values.route_table import RouteEntry
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.groups import ProxyGroup, groups
from catalog.relations.identities import service_identities
from catalog.relations.permissive import is_permissive
from catalog.relations.scope import in_scope, scope_of
from catalog.store.view import View
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots
from meshwright.delivery.snapshots.translation import translation
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.smi import PolicyKey, TrafficTarget
from meshwright.mesh.service import Scope, Service, ServiceKey
from meshwright.mesh.workload import Transparent
from meshwright.sidecars.envoy.driver import EnvoyDriver
from tests.meshes import values as a
from tests.meshes.resources import pieces
from tests.tools.hypothesis_profiles import examples
from xds.protocol.resources.resource import SECRET
from xds.protocol.resources.snapshot import Snapshot

OF_EACH_KIND = (0, 5, 6, 26, 48)
"""Seeds of meshes that together have groups of each kind (see `_parts`)."""


@settings(max_examples=examples(4, fresh=240), deadline=None)
@given(st.integers(0, 2**32))
@example(OF_EACH_KIND[0])
@example(OF_EACH_KIND[1])
@example(OF_EACH_KIND[2])
@example(OF_EACH_KIND[3])
@example(OF_EACH_KIND[4])
def test_shared_reachability_equals_each_clients_own(seed: int) -> None:
    """The policy of every group is compared by client and service, and every served byte as well."""
    view = _crowded(random.Random(seed))  # noqa: S311 - dice
    list(_compared(view))
    _compare_bytes(view)


def test_example_meshes_have_groups_of_each_kind() -> None:
    """Groups have only the shared part, their own part too, only their own, a conflict, or nothing."""
    views = (_crowded(random.Random(seed)) for seed in OF_EACH_KIND)  # noqa: S311 - dice
    result = {kind for view in views for kind in _compared(view)}
    assert result == {"common", "both", "own", "in conflict", "nothing"}


def _crowded(dice: random.Random) -> View:
    """Return a mesh of permissive and other namespaces where many services want the same addresses."""
    names, places = "abcd", ("one", "two", "three")
    things: list[object] = [
        MeshConfig(permissive=dice.random() < 0.6, egress=dice.random() < 0.5),
        *(
            a.namespace(item, permissive=dice.choice((None, True, False)), scope=_scope(dice))
            for item in places
        ),
        *(a.service(f"old-{item}", namespace=item) for item in places),
    ]
    for place in places:
        things += (_service(dice, name, place) for name in names if dice.random() < 0.7)
        things.append(
            replace(a.route_group("all", a.match("any", "/.*")), key=PolicyKey(Namespace(place), "all"))
        )
        if dice.random() < 0.5:
            share = a.split("s", "a", (dice.choice(names), 1), ("b", 2))
            key = PolicyKey(Namespace(place), "s")
            things.append(replace(share, key=key, apex=a.service_key("a", place)))
        for number in range(dice.randint(0, 3)):
            name = dice.choice(names)
            ipv6 = dice.choice((a.TRANSPARENT, Transparent(ipv6=True)))
            things.append(
                a.workload(
                    f"{place}-{number}",
                    f"10.0.{places.index(place)}.{dice.randint(1, 3)}",
                    app=name,
                    account=name,
                    namespace=place,
                    sidecar=dice.random() < 0.9,
                    interception=ipv6,
                )
            )
    for number in range(dice.randint(0, 9)):
        place = dice.choice(places)
        key = PolicyKey(Namespace(place), f"t-{number}")
        ends = a.identity(dice.choice(names), place), a.identity(dice.choice(names), dice.choice(places))
        things.append(TrafficTarget(key, ends[0], (ends[1],), (a.http("all"),)))
    return a.view(*things)


def _service(dice: random.Random, name: str, namespace: str) -> Service:
    ports = [a.port(number, 8080, dice.choice((a.HTTP, a.TCP))) for number in dice.sample((80, 81, 8080), 2)]
    address = dice.choice((None, None, "10.96.0.1", "10.96.0.2", "10.0.0.1", "fd00::1"))
    headless = address is None and dice.random() < 0.5
    return a.service(name, *ports, namespace=namespace, address=address, headless=headless)


def _scope(dice: random.Random) -> Scope:
    return a.narrowed("*/a", "two/*") if dice.random() < 0.2 else None


def _compared(view: View) -> Iterator[str]:
    for group in groups(view):
        if isinstance(group.interception, Transparent):
            policy = proxy_policy(view, group)
            services = tuple(_plain_services(view, group, group.interception))
            assert policy.outbound == services
            destinations = tuple(
                replace(service_destination, caller=None)
                for service_destination in policy.service_destinations
            )
            assert destinations == tuple(_plain_destinations(view, group, services))
            for service_destination in policy.service_destinations:
                everybody = is_permissive(view, service_destination.service.namespace)
                assert service_destination.caller == (None if everybody else group.identity)
            yield _parts(view, group, policy)


def _parts(view: View, group: ProxyGroup, policy: ProxyPolicy) -> str:
    match [reachable_services.common for reachable_services in policy.reachable]:
        case []:
            return "nothing"
        case [True]:
            return "common"
        case [True, False]:
            return "both"
        case [False]:
            opened = open_to_all(view, scope_of(view, group), group.interception.ipv6)  # type: ignore[union-attr]
            return "in conflict" if opened.services else "own"
        case _:
            raise AssertionError(policy.reachable)


def _plain_services(view: View, group: ProxyGroup, how: Transparent) -> Iterator[OutboundService]:
    """Yield the services that a client may call, computed one after the other for it alone."""
    client, scope = group.identity, scope_of(view, group)
    taken: set[SocketAddress] = set()
    outbound_services: dict[tuple[ServiceKey, Port], OutboundService] = {}
    for key in (service_key for service_key in visible(view, client) if in_scope(scope, service_key)):
        for port in sorted(view.services[key].ports, key=lambda service_port: service_port.port):
            entries = table(view, client, key, port)
            if view.services[key].headless:
                entries = tuple(map(_as_called, entries))
            led = [
                address
                for address in called_at(view, client, key, port)
                if how.ipv6 or ":" not in address.address
            ]
            free = [address for address in led if entries and address not in taken]
            taken.update(free)
            protocol = protocol_of(view, key, port)
            slashes = escaped_slashes(view, key, protocol)
            for number in sorted({address.port for address in free}):
                at = tuple(address.address for address in free if address.port == number)
                offered = OutboundService(key, number, protocol, entries, at, escaped_slashes=slashes)
                outbound_services.setdefault((key, number), offered)
    yield from (outbound_services[item] for item in sorted(outbound_services))


def _as_called(entry: RouteEntry) -> RouteEntry:
    """Return an entry that leads to the called endpoint, unless a split chooses."""
    if entry.chosen_by or not isinstance(entry.action, Forward):
        return entry
    shares = tuple(replace(share, as_called=True) for share in entry.backends)
    return replace(entry, action=replace(entry.action, shares=shares))


def _plain_destinations(
    view: View, group: ProxyGroup, services: tuple[OutboundService, ...]
) -> Iterator[ServiceDestination]:
    named: dict[tuple[ServiceKey, str, bool], bool] = {}
    for service in services:
        for backend in service.backends():
            assert isinstance(backend.upstream, ServiceKey)
            place = (backend.upstream, backend.target_port, backend.as_called)
            named[place] = named.get(place, False) or service.protocol.is_http
    for (key, target_port, as_called), is_http in sorted(named.items()):
        ports = [
            service_port
            for service_port in view.services[key].ports
            if str(service_port.target_port) == target_port
        ]
        who = {identity for port in ports for identity in answering(view, group.identity, key, port)}
        there = () if as_called else answering_at(view, group.identity, key, target_port)
        places = endpoints_of(view, key, there)
        name = key.fqdn(view.settings.cluster_domain)
        yield ServiceDestination(key, target_port, is_http, name, tuple(sorted(who)), places, as_called)


def _compare_bytes(view: View) -> None:
    serving = GroupSnapshots(view, translation(EnvoyDriver()))
    issued = {
        service_identity: a.certificate(service_identity, "1")
        for service_identity in service_identities(view)
    }
    serving.rendering.certify(issued, b"ROOT")
    (step,) = [item for item in serving.steps(PublishedSnapshots(), serving.touched()) if item is not None]
    published = step.after(PublishedSnapshots())
    for node, name in published.members.items():
        group = serving.group(node)
        assert group is not None
        alone = Snapshot.of(
            resource for piece in pieces(proxy_policy(view, group)) for resource in piece.resources()
        )
        served = published.snapshots[name]
        for type_url in {*served.types(), *alone.types()} - {SECRET}:
            fields = {resource.name: resource.body for resource in served.ordered(type_url)}
            assert fields == {resource.name: resource.body for resource in alone.ordered(type_url)}
            assert served.version(type_url) == alone.version(type_url)
