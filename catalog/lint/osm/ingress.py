"""Problems of IngressBackends: missing backends and sources, wrong ports, and precedence."""

from collections.abc import Iterator
from functools import partial

from catalog.lint.codes import Code
from catalog.lint.wording import OR_OUTSIDE, Suggestions, listed, problem_of
from catalog.policy.objects.ingress import deciding, requests
from catalog.relations.backends.endpoints import addresses_behind
from catalog.relations.backends.ports import served
from catalog.relations.backends.targets import slice_ports, target_numbers
from catalog.relations.backends.workloads import backing
from catalog.relations.permissive import services_in
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP, INGRESS_BACKEND, SERVICE
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.ingress import IngressBackend, IngressPort
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.service import Service, ServiceKey


def problems(view: View, ingress_backend: IngressBackend) -> Iterator[Problem]:
    """Yield the problems of an IngressBackend; a problem of one backend leaves the others in force."""
    key = ObjectKey.from_name(INGRESS_BACKEND, ingress_backend.key)
    meant = Suggestions(lambda: _services(view, key.namespace))
    for backend in ingress_backend.backends:
        yield from _of_backend(view, key, ingress_backend, backend, meant)
    yield from _of_sources(view, key, ingress_backend)
    yield from _of_matches(view, key, ingress_backend)


def _services(view: View, namespace: Namespace) -> Iterator[str]:
    return (service_key.name for service_key in services_in(view).get(namespace, ()))


def _of_backend(
    view: View, key: ObjectKey, ingress_backend: IngressBackend, backend: IngressPort, meant: Suggestions
) -> Iterator[Problem]:
    named = f"{backend.service.name}:{backend.port}"
    service = view.services.get(backend.service)
    if service is None:
        wanted = (
            f"Namespace {key.namespace} does not have this Service{meant.hint(backend.service.name)}, "
            "so this backend does not admit callers. Create the Service, or correct the name."
        )
        yield problem_of(
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
        yield problem_of(view, key, Code.INGRESS_PORT, Severity.ERROR, "spec.backends", named, wanted)
    elif backend.port in _without_http(view, service.key):
        wanted = (
            "The port speaks plain TCP, and an IngressBackend is only for HTTP, so callers are not "
            "admitted there. Set appProtocol: http in the Service if the port speaks HTTP."
        )
        yield problem_of(view, key, Code.INGRESS_NOT_HTTP, Severity.ERROR, "spec.backends", named, wanted)
    decided = deciding(view, backend.service, backend.port)
    if decided is not None and decided[0].key != ingress_backend.key:
        wanted = (
            f"IngressBackend {decided[0].key} is for the same Service and port and takes "
            "precedence, because it is older or first by name. Delete one of the two."
        )
        yield problem_of(view, key, Code.OVERRULED_INGRESS, Severity.ERROR, "spec.backends", named, wanted)


def _wrong_port(view: View, service: Service, port: Port) -> str:
    """Return the problem of a number other than any target port of a Service, or an empty text."""
    has = _target_ports(view, service.key)
    if has is None or port in has:
        return ""
    there = listed([str(item) for item in sorted(has)]) or "none"
    slip = service.port(port)
    text = f"; {port} is a port of the Service, and its target port is {slip.target_port}" if slip else ""
    return (
        f"Service {service.key} does not have this target port, so callers are not admitted there. "
        f"Its target ports: {there}{text}."
    )


@derived
def _target_ports(view: View, key: ServiceKey) -> frozenset[Port] | None:
    """Return the target ports of a Service as numbers, or None if a name still lacks a workload."""
    workloads, has = backing(view, key), set[Port]()
    for port in view.services[key].ports:
        if isinstance(port.target_port, int):
            has.add(port.target_port)
        elif not workloads:
            return None
        has.update(
            number
            for workload in workloads
            for number in target_numbers(view, workload, view.services[key], port)
        )
    return frozenset(has)


@derived
def _without_http(view: View, key: ServiceKey) -> frozenset[Port]:
    """Return the target ports of a Service at which the sidecar of a workload does not serve HTTP."""
    service = view.services[key]
    return frozenset(
        number
        for workload in backing(view, key)
        for number, protocol, _ in served([service], workload.ports, slice_ports(view, workload.key))
        if not protocol.is_http
    )


def _of_sources(view: View, key: ObjectKey, ingress_backend: IngressBackend) -> Iterator[Problem]:
    meant: dict[Namespace, Suggestions] = {}
    for service in ingress_backend.services:
        if addresses_behind(view, service):
            continue
        if service in view.services:
            wanted = (
                f"{SERVICE} {service} does not have a known address, so this source is not in force yet. "
                "Start a workload of the Service."
            )
        else:
            here = meant.setdefault(
                service.namespace, Suggestions(partial(_services, view, service.namespace))
            )
            wanted = (
                f"This Service does not exist{here.hint(service.name)}, {OR_OUTSIDE}, so this source is "
                "not in force yet. Create the Service, or correct the name."
            )
        yield problem_of(
            view, key, Code.UNKNOWN_INGRESS_SOURCE, Severity.WARNING, "spec.sources", str(service), wanted
        )


def _of_matches(view: View, key: ObjectKey, ingress_backend: IngressBackend) -> Iterator[Problem]:
    groups = http_route_groups(view)
    unknown = [name for name in ingress_backend.matches if PolicyKey(key.namespace, name) not in groups]
    if unknown:
        nothing = requests(view, ingress_backend.key.namespace, ingress_backend.matches) == ()
        so = "requests are not admitted" if nothing else "only the other groups in the list count"
        wanted = (
            f"Namespace {key.namespace} does not have this HTTPRouteGroup, so {so}. "
            "Create the group, or correct the name."
        )
        yield problem_of(
            view,
            key,
            Code.UNKNOWN_INGRESS_MATCH,
            Severity.ERROR,
            "spec.matches",
            ", ".join(unknown),
            wanted,
        )
    elif requests(view, ingress_backend.key.namespace, ingress_backend.matches) == ():
        wanted = (
            f"No {HTTP_ROUTE_GROUP} in the list has a match, so requests are not admitted. Add matches to a "
            "group."
        )
        yield problem_of(view, key, Code.UNKNOWN_INGRESS_MATCH, Severity.ERROR, "spec.matches", "", wanted)
