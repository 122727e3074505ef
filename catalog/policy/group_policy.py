"""Policy of one group of proxies, put together from inbound and outbound parts."""

from dataclasses import replace

from catalog.policy.destinations import with_endpoints
from catalog.policy.edge import edge_ports
from catalog.policy.inbound import inbound_ports
from catalog.policy.objects.egress import beside, union_of_egresses
from catalog.policy.objects.telemetry import logging, tracing
from catalog.policy.objects.upstreams import nearby
from catalog.policy.reachable import reachable
from catalog.policy.unreachable import closed, closed_at
from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.interception import InterceptionKind, SocketAddress
from catalog.policy.values.outside import OutsidePort
from catalog.policy.values.proxy import ProxyPolicy, ReachableServices
from catalog.policy.values.terms import TlsRange
from catalog.relations.groups import ProxyGroup
from catalog.store import mesh_wide
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.tls_keys import fitting_curves, fitting_suites
from meshwright.mesh.values.cached_hash import SharedTuple
from meshwright.mesh.workload import Edge, Explicit, Transparent

__all__ = ["ProxyPolicy", "outline", "proxy_policy"]


@derived
def proxy_policy(view: View, group: ProxyGroup) -> ProxyPolicy:
    """Return the complete policy of a group of proxies."""
    result = outline(view, group)
    return replace(
        result,
        reachable=tuple(_with_endpoints(view, services) for services in result.reachable),
    )


def _with_endpoints(view: View, part: ReachableServices) -> ReachableServices:
    places = (
        with_endpoints(view, destination) if isinstance(destination, ServiceDestination) else destination
        for destination in part.destinations
    )
    return replace(part, destinations=SharedTuple(places))


@derived
def outline(view: View, group: ProxyGroup) -> ProxyPolicy:
    """Return the policy of a group of proxies without the endpoints of its destinations.

    Endpoints change far more often than the rest, and readers of the outline are not affected by them.
    """
    parts = reachable(view, group)
    # Set only if a policy prefers near endpoints; otherwise the parts are shared by all localities.
    if group.locality:
        parts = tuple(nearby(view, part, group.locality) for part in parts)
    kind = interception_kind(group)
    transparent = kind is InterceptionKind.TRANSPARENT
    passthrough = mesh_wide.egress(view).value() and transparent
    # Otherwise only calls to upstreams or to a gateway reach the proxy, and never calls out of the mesh.
    named = union_of_egresses(view, group.identity) if transparent else ()
    shut = _closed(view, parts, named, passthrough=passthrough)
    return ProxyPolicy(
        identity=group.identity,
        primary=group.primary,
        trust_domain=view.settings.trust_domain,
        interception=kind,
        tls=tls_range(view),
        inbound=inbound_ports(view, group),
        reachable=parts,
        outside=beside(view, named, parts, shut, passthrough=passthrough),
        passthrough=passthrough,
        closed=shut,
        transparent=_transparent(group),
        headers=view.settings.headers,
        denials=view.settings.denials,
        tracing=tracing(view, group),
        resilience=view.settings.resilience,
        logs=logging(view, group),
        method_overrides=view.settings.method_overrides,
        long_lived=view.settings.long_lived,
        edge=edge_ports(view, group),
    )


def _closed(
    view: View, parts: tuple[ReachableServices, ...], outside: tuple[OutsidePort, ...], *, passthrough: bool
) -> SharedTuple[SocketAddress]:
    """Return the addresses without a way out: at every port, or only at the ports of Egresses."""
    if passthrough:
        # With passthrough any address leads out of the mesh, otherwise only the ports of Egresses.
        return closed(view, parts)
    return closed_at(view, parts, frozenset(outside_port.port for outside_port in outside))


def interception_kind(group: ProxyGroup) -> InterceptionKind:
    """Return the way in which traffic reaches the proxies of a group."""
    match group.interception:
        case Transparent():
            return InterceptionKind.TRANSPARENT
        case Explicit():
            return InterceptionKind.EXPLICIT
        case Edge():
            return InterceptionKind.EDGE


def _transparent(group: ProxyGroup) -> Transparent:
    return group.interception if isinstance(group.interception, Transparent) else Transparent()


def tls_range(view: View) -> TlsRange:
    """Return the TLS settings of the mesh, limited to those that fit the keys of service certificates."""
    sidecar, keys = mesh_wide.sidecar(view).value(), view.settings.service_keys
    return TlsRange(
        minimum=sidecar.tls_min_version,
        maximum=sidecar.tls_max_version,
        cipher_suites=fitting_suites(sidecar.cipher_suites, keys, sidecar.tls_min_version),
        ecdh_curves=fitting_curves(sidecar.ecdh_curves, keys, sidecar.tls_max_version),
    )
