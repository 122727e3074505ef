"""Upstreams: services at local addresses of a workload, offered by the proxy in explicit interception.

Each upstream is a separate value, so a changed route makes only the services of some upstreams again, and a
workload with hundreds of upstreams pays for one.
"""

from catalog.policy.destinations import with_destinations
from catalog.policy.objects.retries import in_force, with_retries
from catalog.policy.outbound import escaped_slashes
from catalog.policy.route_table import table
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ReachableServices
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.conflicts import conflicts
from catalog.relations.groups import ProxyGroup
from catalog.relations.scope import in_scope, scope_of
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import Explicit

_Listening = tuple[ServiceKey, Port, tuple[SocketAddress, ...]]
"""A service port, and the local addresses at which the workload calls it."""


def at_local_addresses(view: View, group: ProxyGroup) -> ReachableServices:
    """Return the services that a group of proxies offers to their workload at local addresses."""
    retried = in_force(view, group.identity)
    offered = (
        with_retries(view, service, retried.get(key))
        for key, number, where in _listening(view, group)
        if (service := _offered(view, group.identity, key, number, where)) is not None
    )
    return with_destinations(view, group.identity, offered)


@derived
def _listening(view: View, group: ProxyGroup) -> tuple[_Listening, ...]:
    """Return the upstreams in force, sorted, without those in conflict and out of the scope."""
    if not isinstance(group.interception, Explicit):
        return ()
    held = conflicts(view, group.workload) if group.workload else ()
    # The indexes are those of `conflicts.claims`: both number the sorted upstreams.
    refused = {conflict.refused.index for conflict in held}
    scope = scope_of(view, group)
    listen: dict[tuple[ServiceKey, Port], list[SocketAddress]] = {}
    for index, upstream in enumerate(sorted(group.interception.upstreams)):
        if index not in refused and in_scope(scope, upstream.service):
            where = SocketAddress(upstream.local_address, upstream.local_port)
            listen.setdefault((upstream.service, upstream.service_port), []).append(where)
    return tuple((key, number, tuple(where)) for (key, number), where in sorted(listen.items()))


@derived
def _offered(
    view: View, client: ServiceIdentity, key: ServiceKey, number: Port, listen: tuple[SocketAddress, ...]
) -> OutboundService | None:
    """Return a service port that a client calls at local addresses; None if it may reach no backend."""
    service = view.services.get(key)
    port = service.port(number) if service is not None else None
    entries = table(view, client, key, port) if port is not None else ()
    if port is None or not entries:
        return None
    protocol = protocol_of(view, key, port)
    slashes = escaped_slashes(view, key, protocol)
    return OutboundService(key, number, protocol, entries, listen=listen, escaped_slashes=slashes)
