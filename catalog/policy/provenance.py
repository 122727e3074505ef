"""Provenance: the objects behind one part of a group's policy.

The engine records the reads of every function of the catalog. A resource is about one part of its policy, and
this part is the result of a few functions; the inputs that these have read are the inputs of the resource.
Nothing is stored for this purpose: provenance is looked up on request.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from catalog.policy.backend_tls import objects_of_backend_tls
from catalog.policy.destinations import answering_at, endpoints_of
from catalog.policy.edge import authorities_of_gateway, ports_of_gateway, secrets_of_gateway
from catalog.policy.group_policy import proxy_policy
from catalog.policy.inbound import access, inbound_ports
from catalog.policy.objects import routing, upstreams
from catalog.policy.objects.egress import union_of_egresses
from catalog.policy.objects.ingress import ingress_rule
from catalog.policy.objects.limits import connection_limits, rate_limits
from catalog.policy.objects.mutual_tls import plain_rule
from catalog.policy.objects.retries import retry_of
from catalog.policy.outbound import permitted
from catalog.policy.reachable import reachable
from catalog.policy.route_table import places_behind, table
from catalog.policy.values.parts import (
    AllInbound,
    AllOutbound,
    Application,
    Calls,
    DestinationPolicy,
    GatewayPorts,
    IdentityCertificate,
    InboundAdmission,
    MeshWide,
    OutsideAccess,
    Part,
    Roots,
    WholePolicy,
)
from catalog.relations.backends.protocols import spoken_there
from catalog.relations.groups import ProxyGroup, members
from catalog.relations.identities import dns_names
from catalog.relations.permissive import relevant_client
from catalog.relations.route_reach import deciding_routes, side_of
from catalog.relations.telemetry import telemetry_objects
from catalog.store.objects import origin_of, slice_object, workload_object
from catalog.store.view import View, config_in_force, kind_in
from meshwright.engine.derived import derived
from meshwright.engine.graph import sources
from meshwright.engine.node import Derivation, Source
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import (
    CERTIFICATE,
    ENDPOINT_SLICE,
    EXTENSION_SERVICE,
    RETRY,
    ROUTE_POLICY,
    SERVICE,
    TELEMETRY,
    TRUST_BUNDLE,
    UPSTREAM_POLICY,
)
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import EndpointSlice, ObjectKey
from meshwright.mesh.origins import FromSource, Origin
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey, ServicePort
from meshwright.mesh.workload import Edge, WorkloadKey

ISSUER: Final = FromSource("certificates")
"""Origin of certificates and CA certificates."""


@dataclass(frozen=True, slots=True)
class InputObject:
    """One input: an object and the place where it was read.

    Two kinds are not objects: `certificate` (with the name of its identity) and `trust bundle`.
    """

    key: ObjectKey
    origin: Origin

    def __str__(self) -> str:
        return f"{self.key} ({self.origin})"


# Both functions are plain in their own modules. As derived values their reads are recorded, too.
_table: Final = derived(table)
_plain: Final = derived(plain_rule)
"""Cached for provenance only; elsewhere these are parts of larger derived values."""


def made_from(view: View, group: ProxyGroup, part: Part) -> tuple[InputObject, ...]:
    """Return the inputs behind a part of a group's policy, sorted.

    All objects that were read and exist are included, also those that had no effect. The set of all objects
    and the server's settings are left out.
    """
    keys = {key for node in _nodes(view, group, part) for key in _read(view, node)}
    keys.update(_named(view, group, part))
    input_objects = [InputObject(key, origin_of(view, key)) for key in keys]
    match part:
        case IdentityCertificate(identity):
            name = ObjectKey(CERTIFICATE, identity.namespace, identity.service_account)
            input_objects.append(InputObject(name, ISSUER))
        case Roots(trust_domain):
            input_objects.append(InputObject(ObjectKey(TRUST_BUNDLE, Namespace(""), trust_domain), ISSUER))
        case _:
            pass
    return tuple(sorted(input_objects, key=lambda input_object: input_object.key))


def _nodes(view: View, group: ProxyGroup, part: Part) -> Iterator[Derivation]:
    """Yield the derived values from which a part of a group's policy is computed."""
    identity = group.identity
    match part:
        case WholePolicy():
            yield proxy_policy.node(view, group)
        case AllInbound():
            yield inbound_ports.node(view, group)
        case GatewayPorts():
            yield ports_of_gateway.node(view, group)
            yield secrets_of_gateway.node(view, group)
            yield authorities_of_gateway.node(view, group)
        case AllOutbound():
            yield reachable.node(view, group)
            yield union_of_egresses.node(view, identity)
        case OutsideAccess():
            yield union_of_egresses.node(view, identity)
        case InboundAdmission(number, protocol, services):
            yield access.node(view, identity, number, protocol)
            yield rate_limits.node(view, services)
            yield _plain.node(view, identity, number, protocol)
            yield from (ingress_rule.node(view, service, number) for service in services)
        case Calls(called, number):
            for port in _ports(view, called, number):
                yield _table.node(view, identity, called, port)
                yield spoken_there.node(view, called, port)
        case DestinationPolicy(key, target_port):
            yield from _nodes_of_destination(view, identity, key, target_port)
        case IdentityCertificate(certified):
            yield dns_names.node(view, certified)
        case Application() | MeshWide() | Roots():
            pass


def _nodes_of_destination(
    view: View, identity: ServiceIdentity, key: ServiceKey, target_port: str
) -> Iterator[Derivation]:
    client = relevant_client(view, identity, key)
    yield connection_limits.node(view, key)
    answering = answering_at(view, client, key, target_port) if key in view.services else ()
    yield endpoints_of.node(view, key, answering)
    for port, _ in answering:
        yield permitted.node(view, client, key, port)


def _named(view: View, group: ProxyGroup, part: Part) -> Iterator[ObjectKey]:
    """Yield the objects that a part of a policy itself names."""
    match part:
        case InboundAdmission(services=services) | Application(services):
            yield from map(_service, services)
            for workload in members(view).get(group, ()):
                yield workload_object(view, workload)
        case Calls(called, number):
            yield _service(called)
            yield from deciding_routes(view, called, number, side_of(view, called, group.identity.namespace))
            if (retry := retry_of(view, group.identity, called)) is not None:
                yield ObjectKey.from_name(RETRY, retry.key)
            if (policy := routing.policy_of(view, called)) is not None:
                yield ObjectKey.from_name(ROUTE_POLICY, policy.key)
            # The hash keys of a route come from the UpstreamPolicies of its backends.
            side = side_of(view, called, group.identity.namespace)
            there = places_behind(view, called, side) if called in view.services else ()
            for answering in dict.fromkeys(place[0] for place in there):
                yield from _upstream_policy(view, answering)
        case DestinationPolicy(answering, target_port):
            yield from _upstream_policy(view, answering)
            if isinstance(group.interception, Edge) and answering in view.services:
                yield from objects_of_backend_tls(view, answering, target_port)
            yield from _config(view)
        case OutsideAccess() | MeshWide():
            yield from _config(view)
        case AllInbound() | AllOutbound() | GatewayPorts():
            yield from _config(view)
            yield from _telemetry_keys(view, group)
        case WholePolicy() | IdentityCertificate() | Roots():
            pass


def _config(view: View) -> Iterator[ObjectKey]:
    if (config := config_in_force(view)) is not None:
        yield config


def _telemetry_keys(view: View, group: ProxyGroup) -> Iterator[ObjectKey]:
    for telemetry in telemetry_objects(view, group.telemetry):
        yield ObjectKey.from_name(TELEMETRY, telemetry.key)
        if telemetry.access_log is not None and (export := telemetry.access_log.export) is not None:
            yield from _present(view, ObjectKey.from_name(EXTENSION_SERVICE, export.service))


def _upstream_policy(view: View, key: ServiceKey) -> Iterator[ObjectKey]:
    if (policy := upstreams.policy_of(view, key)) is not None:
        yield ObjectKey.from_name(UPSTREAM_POLICY, policy.key)


def _ports(view: View, called: ServiceKey, number: Port) -> Iterable[ServicePort]:
    """Return the service's ports with a number; a headless service is called at its target ports."""
    service = view.services.get(called)
    if service is None:
        return ()
    port = None if service.headless else service.port(number)
    return service.ports if port is None else (port,)


def _read(view: View, node: Derivation) -> Iterator[ObjectKey]:
    with contextlib.suppress(Exception):  # an error also depends on the values read before it
        view.graph.answer(node)
    for source in sources(node):
        yield from _objects(view, source)


def _objects(view: View, source: Source) -> Iterator[ObjectKey]:
    # A source has the name of its table and a key. Entries of indexes, which have other names, are
    # skipped, because the objects found by them were read separately.
    kind = kind_in(source.origin)
    match source.key:
        case WorkloadKey() as key if kind and key in view.workloads:
            yield workload_object(view, key)
        case EndpointSlice() as found if kind:
            yield slice_object(view, found.namespace, found.name)
        case ServiceKey() as key if kind and key in view.services:
            yield _service(key)
        case PolicyKey(namespace, name) if kind:
            yield from _present(view, ObjectKey(kind, namespace, name))
        case ObjectKey(_, namespace, name) if kind == ENDPOINT_SLICE:
            yield slice_object(view, namespace, name)
        case ObjectKey() as named if kind:
            yield from _present(view, named)
        case str(name) if kind:
            yield from _present(view, ObjectKey(kind, Namespace(""), name))
        case _:
            pass


def _present(view: View, key: ObjectKey) -> Iterator[ObjectKey]:
    """Yield the key of an existing object; a missing object has no effect."""
    if key in view.sourced:
        yield key


def _service(key: ServiceKey) -> ObjectKey:
    return ObjectKey.from_name(SERVICE, key)
