"""Problems of Services: nobody behind them, endpoints outside the mesh, addresses and ports in dispute."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.lint import IN_LINT, Lint
from catalog.lint.services.mesh_membership import is_unmeshed
from catalog.lint.templates import behind, named_in_vain
from catalog.lint.wording import Suggestions, listed, say
from catalog.policy.outbound import protocol_of
from catalog.policy.values.interception import SocketAddress
from catalog.relations.backends.addresses import called_addresses
from catalog.relations.backends.endpoints import endpoints, health_at
from catalog.relations.backends.ports import declared_protocol
from catalog.relations.backends.targets import given_ports, served_by, target_numbers
from catalog.relations.backends.workloads import backing, services_of
from catalog.store.objects import workload_object
from catalog.store.precedence import age
from catalog.store.smi import splits_by_apex
from catalog.store.view import View
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.service import Protocol, Service, ServiceKey, ServicePort
from meshwright.mesh.workload import Endpoint, Explicit, PodTemplate, Workload

_NAMED: Final = 8

_NEARNESS: Final = "trafficDistribution"
_INSTEAD: Final = {
    "externalIPs": "these addresses are no service of the mesh to them; call the Service by its name",
    "internalTrafficPolicy": "they call endpoints on every node",
    "sessionAffinity": "each request may go to another endpoint; an UpstreamPolicy that balances by "
    "ConsistentHash keeps a caller's requests together",
    _NEARNESS: "an UpstreamPolicy says how near endpoints must be",
}
"""By field: what sidecars do, and which object they obey instead."""


def of_service(lint: Lint, service: Service) -> Iterator[Problem]:
    """Yield the problems of a Service."""
    if not is_unmeshed(lint, service.key):
        yield from _behind(lint, service)
        yield from _guessed(lint.view, service)
        yield from _without_effect(lint.view, service)
    yield from _shared_addresses(lint, service)
    yield from _overruled(lint.view, service)


def of_workload(view: View, workload: Workload) -> Iterator[Problem]:
    """Yield the problems of the services that a workload names."""
    yield from _names(view, workload)
    yield from _protocols(view, workload)


def _object(key: ServiceKey) -> ObjectKey:
    return ObjectKey.of(SERVICE, key)


def _without_effect(view: View, service: Service) -> Iterator[Problem]:
    """Yield the fields that decide which endpoint kube-proxy chooses: sidecars choose by themselves."""
    code = Code.SERVICE_FIELD_WITHOUT_EFFECT
    for name, value in service.without_effect:
        is_annotation = name.startswith("metadata.")
        near = is_annotation or name == _NEARNESS
        severity = Severity.INFO if near else Severity.WARNING
        wanted = f"has no effect on calls by sidecars: {_INSTEAD[_NEARNESS if near else name]}"
        field = name if is_annotation else f"spec.{name}"
        yield say(view, _object(service.key), code, severity, field, value, wanted)


def _behind(lint: Lint, service: Service) -> Iterator[Problem]:
    view, key = lint.view, _object(service.key)
    found = [each for port in service.ports for each in endpoints(view, service.key, port)]
    # A Service without a TCP port is not called; the apex of a split need not have anyone behind it.
    if service.ports and not found and service.key not in splits_by_apex(view):
        yield from _to_come(lint, service)
    yield from _named_in_vain(view, service)
    outside = sorted({_place(each) for each in found if each.identity is None})
    if outside:
        wanted = "each endpoint must be a workload of this namespace with a sidecar; these get no calls"
        yield say(view, key, Code.OUTSIDE_MESH, Severity.WARNING, "endpoints", listed(outside), wanted)


def _to_come(lint: Lint, service: Service) -> Iterator[Problem]:
    """Yield that nobody is behind a Service, or who is going to be."""
    view, key, selector = lint.view, _object(service.key), _selector(service)
    if len(named_in_vain(backing(view, service.key), service)) == len(service.ports):
        return  # somebody is, and it is the ports that are wrong
    templates = behind(lint, service.key)
    if not templates:
        wanted = "needs a workload or EndpointSlice behind it; until then calls to it get no answer"
        yield say(view, key, Code.NO_ENDPOINTS, Severity.WARNING, "spec.selector", selector, wanted)
        return
    named = listed([str(each) for each in templates])
    vain = named_in_vain(templates, service)
    yield from _misnamed(view, service, vain, named, templates)
    where = "until a Pod, EndpointSlice or Workload says where they are"
    wanted = f"selects the pods of {named}; calls to it get no answer {where}"
    yield say(view, key, Code.TEMPLATES_ONLY, Severity.INFO, "spec.selector", selector, wanted)


def _named_in_vain(view: View, service: Service) -> Iterator[Problem]:
    """Yield the ports whose target is a name that no workload behind a Service has, and no slice gives."""
    there = backing(view, service.key)
    vain = (each for each in named_in_vain(there, service) if not endpoints(view, service.key, each))
    yield from _misnamed(view, service, vain, "the workloads behind it", there)


def _misnamed(
    view: View,
    service: Service,
    ports: Iterable[ServicePort],
    whose: str,
    there: Iterable[Workload | PodTemplate],
) -> Iterator[Problem]:
    """Yield the ports whose target is no name of a port there, and which names there are."""
    names = sorted({each.name for one in there for each in one.ports if each.name})
    has = f"one of {', '.join(names[:_NAMED])}" if names else "a number, as none has a name"
    key, meant = _object(service.key), Suggestions(lambda: names)
    for port in ports:
        value = str(port.target_port)
        wanted = f"must be the name of a port of {whose}: {has}{meant.of(value)}"
        wanted += f"; calls to port {port.port} get no answer"
        yield say(view, key, Code.NO_ENDPOINTS, Severity.WARNING, "spec.ports.targetPort", value, wanted)


def _guessed(view: View, service: Service) -> Iterator[Problem]:
    """Yield the ports of which neither the Service nor a workload says what they speak."""
    for port in service.ports:
        said = (
            declared_protocol(target, workload.ports)
            for workload in backing(view, service.key)
            for target in target_numbers(view, workload, service, port)
        )
        if port.protocol_source == "default" and not any(said):
            key, wanted = _object(service.key), f"taken for {port.protocol.value}; set appProtocol"
            yield say(view, key, Code.PROTOCOL_GUESSED, Severity.INFO, "spec.ports", str(port.port), wanted)


def _place(endpoint: Endpoint) -> str:
    return str(HostPort(endpoint.address, endpoint.port))


def _selector(service: Service) -> str:
    return ", ".join(f"{name}={value}" for name, value in service.selector)


def _called_at(view: View, service: Service, port: ServicePort) -> tuple[SocketAddress, ...]:
    """Return where a port of a service is called."""
    if service.headless:
        found = endpoints(view, service.key, port)
        return tuple(sorted({SocketAddress(at, each.port) for each in found for at in each.addresses}))
    return tuple(SocketAddress(each, port.port) for each in called_addresses(view, service))


def _called_addresses(lint: Lint, key: ServiceKey) -> Collection[SocketAddress]:
    service = lint.view.services[key]
    return {where: None for port in service.ports for where in _called_at(lint.view, service, port)}


_by_called_address: Final = IN_LINT.derived_index(
    "services by called address", lambda lint: lint.view.services, _called_addresses
)


def _shared_addresses(lint: Lint, service: Service) -> Iterator[Problem]:
    for port in service.ports:
        for where in _called_at(lint.view, service, port):
            holder = min(_by_called_address(lint)[where], key=partial(_by_health, lint.view, where))
            if holder != service.key:
                wanted = f"Service {holder} is called at the same address and port, and gets the calls"
                yield say(
                    lint.view,
                    _object(service.key),
                    Code.SHARED_ADDRESS,
                    Severity.WARNING,
                    "spec.clusterIP",
                    str(where),
                    wanted,
                )


def _overruled(view: View, service: Service) -> Iterator[Problem]:
    """Yield the ports whose calls fail, as another Service has the workloads' port for another protocol."""
    seen: set[object] = set()
    said: dict[Port, tuple[Port, Protocol, Protocol, tuple[ServiceKey, ...]]] = {}
    for workload in backing(view, service.key):
        alike = (services_of(view, workload.key), workload.ports, given_ports(view, workload.key))
        if workload.uuid is None or alike in seen:
            continue
        seen.add(alike)
        there = {number: (protocol, behind) for number, protocol, behind in served_by(view, workload)}
        for port in service.ports:
            called = protocol_of(view, service.key, port)
            for number in target_numbers(view, workload, service, port):
                taken, behind = there[number]
                others = tuple(each.key for each in behind if each.key != service.key)
                if taken.is_http != called.is_http and others:
                    said.setdefault(port.port, (number, called, taken, others))
    for at, (number, called, taken, others) in sorted(said.items()):
        wanted = (
            f"calls to port {at} as {called.value} fail: the workloads' port {number} is taken for "
            f"{taken.value}, as {listed([str(each) for each in others])} or the workload has it; of several "
            "Services the oldest decides; set appProtocol alike, or call another target port"
        )
        key = _object(service.key)
        yield say(view, key, Code.PROTOCOL_OVERRULED, Severity.ERROR, "spec.ports", str(at), wanted)


def _by_health(view: View, where: SocketAddress, key: ServiceKey) -> tuple[int, bool, str, ServiceKey]:
    return (health_at(view, key, (where.address, where.port)), *age(view.services[key].created), key)


def _names(view: View, workload: Workload) -> Iterator[Problem]:
    if workload.uuid is None:
        return
    key = workload_object(view, workload.key)
    primary = ServiceKey(workload.key.namespace, workload.service)
    # A Pod that names no service is often only a client, and its ports are for metrics: nothing is missing.
    to_be_called = bool(workload.ports) and workload.names_service
    if to_be_called and primary not in view.services and not services_of(view, workload.key):
        wanted = f"Service {primary} does not exist and no other has this workload; nobody can call it"
        yield say(view, key, Code.UNKNOWN_PRIMARY, Severity.WARNING, "spec.service", workload.service, wanted)
    if not isinstance(workload.interception, Explicit):
        return
    for upstream in workload.interception.upstreams:
        service = view.services.get(upstream.service)
        if service is None or service.port(upstream.service_port) is None:
            named = f"{upstream.service}:{upstream.service_port}"
            wanted = "must be a Service and one of its ports; until then nothing is offered here"
            yield say(view, key, Code.UNKNOWN_UPSTREAM, Severity.ERROR, "spec.upstreams", named, wanted)


def _protocols(view: View, workload: Workload) -> Iterator[Problem]:
    said: dict[Port, dict[Protocol, ServiceKey]] = {}
    for key in services_of(view, workload.key):
        for port in view.services[key].ports:
            for number in target_numbers(view, workload, view.services[key], port):
                said.setdefault(number, {}).setdefault(protocol_of(view, key, port), key)
    for number, protocols in sorted(said.items()):
        if len({protocol.is_http for protocol in protocols}) > 1:
            named = ", ".join(f"{protocol.value} by {key}" for protocol, key in sorted(protocols.items()))
            wanted = (
                f"needs one protocol for port {number}: set appProtocol alike, or the workload's own protocol"
            )
            named_by = workload_object(view, workload.key)
            yield say(view, named_by, Code.PROTOCOLS_DIFFER, Severity.WARNING, "spec.ports", named, wanted)
