"""Problems of IngressBackends: backends and sources that are not there, and which of several counts."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.told import meant, say
from catalog.policy.ingress import deciding, requests
from catalog.relations.backing import backing
from catalog.relations.endpoints import addresses_behind
from catalog.relations.permissive import services_in
from catalog.relations.ports import served, target_number
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from mesh.ingress import IngressBackend, IngressPort
from mesh.kinds import HTTP_ROUTE_GROUP, INGRESS_BACKEND, SERVICE
from mesh.names import Port
from mesh.objects import ObjectKey
from mesh.policy import PolicyKey
from mesh.problems import Problem, Severity
from mesh.service import Service


def problems(view: View, found: IngressBackend) -> Iterator[Problem]:
    """Yield the problems of an IngressBackend; what is wrong with one backend leaves the others in force."""
    key = ObjectKey.of(INGRESS_BACKEND, found.key)
    for backend in found.backends:
        yield from _of_backend(view, key, found, backend)
    yield from _of_sources(view, key, found)
    yield from _of_matches(view, key, found)


def _of_backend(view: View, key: ObjectKey, found: IngressBackend, backend: IngressPort) -> Iterator[Problem]:
    named = f"{backend.service.name}:{backend.port}"
    service = view.services.get(backend.service)
    if service is None:
        there = [each.name for each in services_in(view).get(key.namespace, ())]
        wanted = (
            f"must be a Service of namespace {key.namespace}{meant((backend.service.name,), there)}; "
            "nobody is admitted by it until there is one"
        )
        yield say(
            view,
            key,
            Code.UNKNOWN_INGRESS_BACKEND,
            Severity.ERROR,
            "spec.backends",
            backend.service.name,
            wanted,
        )
        return
    if wanted := _wrong_port(view, service, backend.port):
        yield say(view, key, Code.INGRESS_PORT, Severity.ERROR, "spec.backends", named, wanted)
    elif _speaks_no_http(view, service, backend.port):
        wanted = (
            "the port speaks plain TCP, and an IngressBackend is for HTTP; nobody is admitted there "
            "(appProtocol: http in the Service says otherwise)"
        )
        yield say(view, key, Code.INGRESS_NOT_HTTP, Severity.ERROR, "spec.backends", named, wanted)
    decided = deciding(view, backend.service, backend.port)
    if decided is not None and decided[0].key != found.key:
        wanted = (
            f"IngressBackend {decided[0].key} is for the same service and port, and goes first: "
            "it is older, or first by name"
        )
        yield say(view, key, Code.OVERRULED_INGRESS, Severity.ERROR, "spec.backends", named, wanted)


def _wrong_port(view: View, service: Service, port: Port) -> str:
    """Say what is wrong with a number that is no target port of a service; empty if it is one, or may be."""
    workloads, has = backing(view, service.key), set[Port]()
    for each in service.ports:
        if isinstance(each.target_port, int):
            has.add(each.target_port)
        elif not workloads:
            return ""
        has.update(
            number for workload in workloads if (number := target_number(each, workload.ports)) is not None
        )
    if port in has:
        return ""
    listed = ", ".join(map(str, sorted(has))) or "none"
    slip = next((each for each in service.ports if each.port == port), None)
    said = f"; {port} is the Service's port, whose target port is {slip.target_port}" if slip else ""
    return f"must be a target port of Service {service.key}, which has {listed}{said}; nobody is admitted"


def _speaks_no_http(view: View, service: Service, port: Port) -> bool:
    """Say whether some workload behind a service speaks no HTTP at a port, as its sidecar has it."""
    return any(
        number == port and not protocol.is_http
        for workload in backing(view, service.key)
        for number, protocol, _ in served([service], workload.ports)
    )


def _of_sources(view: View, key: ObjectKey, found: IngressBackend) -> Iterator[Problem]:
    for each in found.services:
        if addresses_behind(view, each):
            continue
        if each in view.services:
            wanted = f"no address is known behind {SERVICE} {each}; nobody is admitted by it until one is"
        else:
            there = [service.name for service in services_in(view).get(each.namespace, ())]
            wanted = (
                f"must be a Service{meant((each.name,), there)}; nobody is admitted by it until there is one"
            )
        yield say(view, key, Code.UNKNOWN_INGRESS_SOURCE, Severity.WARNING, "spec.sources", str(each), wanted)


def _of_matches(view: View, key: ObjectKey, found: IngressBackend) -> Iterator[Problem]:
    groups = http_route_groups(view)
    unknown = [name for name in found.matches if PolicyKey(key.namespace, name) not in groups]
    if unknown:
        nothing = requests(view, found.key.namespace, found.matches) == ()
        so = "nothing is admitted" if nothing else "the others that are named count"
        wanted = f"must be HTTPRouteGroups of namespace {key.namespace}; {so}"
        yield say(
            view,
            key,
            Code.UNKNOWN_INGRESS_MATCH,
            Severity.ERROR,
            "spec.matches",
            ", ".join(unknown),
            wanted,
        )
    elif requests(view, found.key.namespace, found.matches) == ():
        wanted = f"every {HTTP_ROUTE_GROUP} that is named has no matches; nothing is admitted"
        yield say(view, key, Code.UNKNOWN_INGRESS_MATCH, Severity.ERROR, "spec.matches", "", wanted)
