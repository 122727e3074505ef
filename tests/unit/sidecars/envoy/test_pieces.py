"""Tests of pieces: each leaves out only parts of a policy that it does not use."""

import contextlib
import functools
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from catalog.policy.group_policy import outline, proxy_policy
from catalog.policy.values.destinations import ExternalDestination
from catalog.policy.values.interception import InterceptionKind
from catalog.policy.values.proxy import ProxyPolicy
from catalog.relations.groups import groups
from catalog.store.view import View
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.clusters import cluster as clusters
from meshwright.sidecars.envoy.clusters import endpoints
from meshwright.sidecars.envoy.listeners import inbound as inbound_listeners
from meshwright.sidecars.envoy.listeners import outbound as outbound_listeners
from meshwright.sidecars.envoy.listeners.outbound import OutboundInputs
from meshwright.sidecars.envoy.routes import route as routes
from tests.meshes.random_meshes import random_mesh
from tests.meshes.resources import pieces
from tests.tools.hypothesis_profiles import examples
from xds.protocol.resources.resource import Resource


def _from_the_whole(policy: ProxyPolicy) -> Iterator[Resource]:
    """Make every resource from the whole policy."""
    yield from inbound_listeners.inbound(policy)
    ipv6, parts = policy.transparent.ipv6, policy.reachable
    yield from outbound_listeners.outbound(
        OutboundInputs(
            policy.interception, ipv6, policy.terms, parts, policy.passthrough, policy.closed, policy.outside
        )
    )
    ranges = [(port.port, outside_range) for port in policy.outside for outside_range in port.ranges]
    yield from (
        routes.outside(number, outside_range) for number, outside_range in ranges if outside_range.hosts
    )
    ways = {
        (number, route.host, route.limits)
        for number, e in ranges
        for host in e.hosts
        for route in host.routes
    }
    for number, to, limits in ways:
        if to is not None:
            place = ExternalDestination(to, number, is_http=True, limits=limits)
            yield clusters.external(policy.headers, policy.resilience.reuse, place)
    if any(to is None for _, to, _ in ways):
        yield clusters.passthrough_http(policy.headers, policy.resilience.reuse)
    yield from _extension_clusters(policy)
    opened = [*filter(inbound_listeners.is_open, policy.inbound)]
    for port in opened:
        yield clusters.application(policy.headers, policy.resilience.reuse, policy.primary, port)
        if port.protocol.is_http:
            yield routes.inbound(policy.trust_domain, policy.denials, policy.primary, port)
    yield from (
        routes.outbound(outbound_service, policy.resilience.retry)
        for outbound_service in policy.outbound
        if outbound_service.protocol.is_http
    )
    for destination in policy.service_destinations:
        yield clusters.destination(policy.terms, destination)
        yield endpoints.assignment(destination)
    if policy.interception is InterceptionKind.TRANSPARENT:
        if policy.passthrough or any(
            outside_range.connections or outside_range.server_names for _, outside_range in ranges
        ):
            yield clusters.passthrough()
        if policy.passthrough or policy.outside:
            yield clusters.blackhole()


def _extension_clusters(policy: ProxyPolicy) -> Iterator[Resource]:
    if policy.logs.collector is not None:
        yield clusters.extension(policy.logs.collector)
    opened = [*filter(inbound_listeners.is_open, policy.inbound)]
    asked = {
        (names.authorizer_cluster(port.asked), port.asked.authorizer.server) for port in opened if port.asked
    }
    for name, server in asked:
        yield clusters.authorizer(name, server)
    for server in {service.server for port in opened for service in port.rates.services}:
        yield clusters.rate_limits(server)


def _told(resource: Resource) -> tuple[object, ...]:
    return (resource.type_url, resource.name, resource.body, sorted(resource.references))


MESHES = examples(25, fresh=60)


@functools.cache
def _random_policies() -> tuple[tuple[ProxyPolicy, ProxyPolicy], ...]:
    """Return policies of random meshes, each without endpoints and whole; both tests share them."""
    return tuple(_made_policies())


def _made_policies() -> Iterator[tuple[ProxyPolicy, ProxyPolicy]]:
    for seed in range(60 - MESHES, 60):  # in 52 the endpoints matter
        mesh = random_mesh(random.Random(seed))  # noqa: S311 - dice
        view = View(mesh.settings)
        view.apply(view.edits_to(mesh.known()))
        for group in groups(view):
            with contextlib.suppress(ValueError):  # the range of virtual addresses is too small in some
                yield outline(view, group), proxy_policy(view, group)


@pytest.mark.fuzzed
def test_pieces_make_the_same_bytes_as_the_whole_policy() -> None:
    """If a function used a part that its piece leaves out, some random mesh would give different bytes."""
    compared = 0
    for _, policy in _random_policies():
        made = [_told(resource) for piece in pieces(policy) for resource in piece.resources()]
        assert sorted(made, key=str) == sorted(map(_told, _from_the_whole(policy)), key=str)
        compared += 1
    assert compared > MESHES


@pytest.mark.fuzzed
def test_endpoints_affect_only_load_assignments() -> None:
    """Without endpoints, only the pieces of load assignments differ, and only in their endpoints."""
    different: set[object] = set()
    for without, policy in _random_policies():
        for bare, whole in zip(pieces(without), pieces(policy), strict=True):
            places = tuple(replace(destination, endpoints=()) for destination in whole.destinations)
            assert bare == replace(whole, destinations=places)
            different.update(() if bare == whole else (whole.make,))
    assert different == {endpoints.assignment}
