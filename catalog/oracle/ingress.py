"""Decision of IngressBackends about a request from outside the mesh: a part of the oracle.

A client outside the mesh calls a workload directly, without a sidecar of its own, so splits have no effect.
The request is admitted if and only if the IngressBackend in force for a service behind the workload's port
has the client among the sources and the request among the matches. One object is in force per service and
target port: the oldest, or else the first by name. A port without HTTP refuses all clients from outside.

Sources:

- protocol http: an address in one of the ranges, or of an endpoint of one of the Services; in plain text.
- https: a certificate of the mesh's CA for one of the principals, and such an address if the object names
  any.
- https with skipClientCertValidation: such an address, in TLS, without a client certificate. A client that
  requests a service's full name, as callers of the mesh do, must show a certificate of the mesh, which
  decides. With `sniHosts` one of them must be requested.

See `catalog.oracle.decide`.
"""

import enum
from collections.abc import Iterator
from dataclasses import replace

from catalog.oracle.callers import is_caller
from catalog.oracle.request.request import Request, fits
from catalog.oracle.targets import Place
from catalog.relations.backends.endpoints import addresses_behind
from catalog.relations.backends.targets import served_by
from catalog.relations.backends.workloads import backing
from catalog.relations.identities import dns_names
from catalog.store.inventory import by_identity
from catalog.store.osm import ingress_by_service
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.policies.callers import (
    AuthenticatedName,
    Caller,
    Client,
    EncryptedRange,
    IpRange,
    Outsider,
)
from meshwright.mesh.policies.ingress import IngressBackend, IngressPort, Proof
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey


class IngressVerdict(enum.StrEnum):
    """Verdict of one IngressBackend about a request to a service's target port; only ADMITS admits."""

    ADMITS = "admits the request"
    OTHER_REQUESTS = "admits only other requests there"
    OTHER_CLIENTS = "names other sources"
    DANGLING = "names only matches that do not exist"
    OVERRULED = (
        "does not count, because another IngressBackend for the same Service and port takes precedence"
    )
    NO_HTTP = "does not count, because the port does not speak HTTP"


def ingress_verdicts(
    view: View, request: Request, key: ServiceKey, port: Port, *, is_http: bool
) -> Iterator[tuple[IngressBackend, IngressPort, IngressVerdict]]:
    """Yield the verdict of every IngressBackend for a service's target port; the first one is in force."""
    for number, (ingress_backend, backend) in enumerate(_by_precedence(view, key, port)):
        if not is_http:
            yield ingress_backend, backend, IngressVerdict.NO_HTTP
        elif number:
            yield ingress_backend, backend, IngressVerdict.OVERRULED
        else:
            yield ingress_backend, backend, _judge(view, request, ingress_backend, backend)


def lets_in(view: View, request: Request, place: tuple[Place, bool]) -> tuple[IngressBackend, ...]:
    """Return the IngressBackends that admit a request at a place, sorted; empty for a denial.

    All workloads of the place behind the called service must admit the request.
    """
    where, is_http = place
    if not is_http:
        return ()
    keys: set[PolicyKey] = set()
    by_key: dict[PolicyKey, IngressBackend] = {}
    for services in called_there(view, request.service, where):
        here = {
            ingress_backend.key: ingress_backend
            for key in services
            for ingress_backend, _, verdict in ingress_verdicts(
                view, request, key, where.port, is_http=is_http
            )
            if verdict is IngressVerdict.ADMITS
        }
        if not here:
            return ()
        by_key |= here
        keys |= here.keys()
    return tuple(by_key[policy_key] for policy_key in sorted(keys))


def seen(view: View, request: Request, place: Place) -> Request:
    """Return a request from outside as seen at a place: nameless unless the place requests a certificate."""
    client = request.client
    if not isinstance(client, Outsider) or not client.name:
        return request
    nameless = replace(client, name="", tls=True)
    for services in called_there(view, request.service, place):
        if client.server_name in {service.fqdn(view.settings.cluster_domain) for service in services}:
            continue
        for ingress_backend, backend in (
            item for key in services for item in _counting(view, key, place.port)
        ):
            if backend.proof is Proof.ENCRYPTION and _is_meant(view, nameless, ingress_backend, backend):
                return replace(request, client=nameless)
    return request


def _counting(view: View, key: ServiceKey, port: Port) -> tuple[tuple[IngressBackend, IngressPort], ...]:
    return tuple(_by_precedence(view, key, port)[:1])


def _by_precedence(view: View, key: ServiceKey, port: Port) -> list[tuple[IngressBackend, IngressPort]]:
    result = [
        (ingress_backend, backend)
        for ingress_backend in ingress_by_service(view).lookup(key)
        for backend in ingress_backend.backends
        if backend.service == key and backend.port == port
    ]
    # The same order as `catalog.policy.objects.ingress.precedence`, written a second time, because the oracle
    # shares no code with the policy: tests compare the two.
    return sorted(result, key=lambda pair: (pair[0].created == "", pair[0].created, pair[0].key))


def called_there(view: View, key: ServiceKey, where: Place) -> Iterator[tuple[ServiceKey, ...]]:
    """Yield, for each workload of a place, the services called at the place's port."""
    for workload in backing(view, key):
        if workload.uuid is None or workload.identity != where.identity:
            continue
        for number, _, behind in served_by(view, workload):
            if number == where.port:
                yield tuple(service.key for service in behind)


def _judge(
    view: View, request: Request, ingress_backend: IngressBackend, backend: IngressPort
) -> IngressVerdict:
    if not _is_source(view, request, ingress_backend, backend):
        return IngressVerdict.OTHER_CLIENTS
    if not ingress_backend.matches:
        return IngressVerdict.ADMITS
    groups = [
        http_route_groups(view).get(PolicyKey(ingress_backend.key.namespace, name))
        for name in ingress_backend.matches
    ]
    # Missing groups are left out; the existing ones still count.
    matches = [match for group in groups if group is not None for match in group.matches]
    if not matches:
        return IngressVerdict.DANGLING
    fit = any(fits(match, request) for match in matches)
    return IngressVerdict.ADMITS if fit else IngressVerdict.OTHER_REQUESTS


def _is_source(view: View, request: Request, ingress_backend: IngressBackend, backend: IngressPort) -> bool:
    if not isinstance(request.client, ServiceIdentity):
        return _is_meant(view, request.client, ingress_backend, backend)
    shown = tuple(_shown(view, request.client, request.service))
    # The calling workload is not known, so each workload of the identity must be among the sources.
    return bool(shown) and all(
        any(_is_meant(view, name, ingress_backend, backend) for name in names) for names in shown
    )


def _is_meant(
    view: View, client: Client | None, ingress_backend: IngressBackend, backend: IngressPort
) -> bool:
    trust_domain = view.settings.trust_domain
    return any(is_caller(source, client, trust_domain) for source in _sources(view, ingress_backend, backend))


def _sources(view: View, ingress_backend: IngressBackend, backend: IngressPort) -> Iterator[Caller]:
    near = [*ingress_backend.ranges]
    for key in ingress_backend.services:
        near += [IpRange(f"{item}/{128 if ':' in item else 32}") for item in addresses_behind(view, key)]
    match backend.proof:
        case Proof.NOTHING:
            yield from near
        case Proof.ENCRYPTION:
            yield from (EncryptedRange(ip_range, backend.server_names) for ip_range in near)
        case Proof.CERTIFICATE if near or not (ingress_backend.services or ingress_backend.ranges):
            places = tuple(near)
            for name in ingress_backend.principals:
                yield AuthenticatedName(name, places, backend.server_names)
        case Proof.CERTIFICATE:
            pass


def _shown(view: View, client: ServiceIdentity, called: ServiceKey) -> Iterator[tuple[Outsider, ...]]:
    """Yield, for each sidecar of an identity, the names in its certificate with its address, as Outsiders."""
    names = (client.spiffe_id(view.settings.trust_domain), *dns_names(view, client))
    server = called.fqdn(view.settings.cluster_domain)
    for workload in by_identity(view).lookup(client):
        yield tuple(Outsider(workload.address, name, server_name=server) for name in names)
