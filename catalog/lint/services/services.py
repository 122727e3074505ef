"""Problems of Services: missing endpoints, endpoints outside the mesh, and addresses or ports in conflict."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.lint import IN_LINT, Lint
from catalog.lint.services.mesh_membership import is_unmeshed
from catalog.lint.templates import behind, named_in_vain
from catalog.lint.wording import Suggestions, listed, problem_of
from catalog.policy.values.interception import SocketAddress
from catalog.relations.backends.addresses import called_addresses
from catalog.relations.backends.endpoints import endpoints, health_at
from catalog.relations.backends.ports import declared_protocol
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.backends.targets import served_by, slice_ports, target_numbers
from catalog.relations.backends.workloads import backing, services_of
from catalog.relations.references import resolved_rules
from catalog.relations.route_reach import attached_routes, places_of
from catalog.store.inventory import by_address
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
from meshwright.mesh.workload import Edge, Endpoint, Explicit, PodTemplate, Workload

_NAMED: Final = 8

_NEARNESS: Final = "trafficDistribution"
_INSTEAD: Final = {
    "externalIPs": (
        ": sidecars do not send calls to these addresses to the Service. Call the Service by its name."
    ),
    "internalTrafficPolicy": ": sidecars call endpoints on every node. Remove the field.",
    "sessionAffinity": (
        ": each request may go to another endpoint. To send all requests of a "
        "caller to one endpoint, use an UpstreamPolicy with the balancing policy "
        "ConsistentHash."
    ),
    _NEARNESS: ". Use an UpstreamPolicy to prefer near endpoints.",
}
"""By field: the end of the sentence about sidecars, with the object of the same purpose."""


def of_service(lint: Lint, service: Service) -> Iterator[Problem]:
    """Yield the problems of a Service."""
    if not is_unmeshed(lint, service.key):
        yield from _behind(lint, service)
        yield from _guessed(lint.view, service)
        yield from _without_effect(lint.view, service)
    yield from _shared_addresses(lint, service)
    yield from _overruled(lint.view, service)


def of_workload(view: View, workload: Workload) -> Iterator[Problem]:
    """Yield the problems of the Services named by a workload, and of the protocols of its ports."""
    yield from _names(view, workload)
    yield from _protocols(view, workload)


def _object(key: ServiceKey) -> ObjectKey:
    return ObjectKey.from_name(SERVICE, key)


def _without_effect(view: View, service: Service) -> Iterator[Problem]:
    """Yield a problem for each Service field that only kube-proxy uses to choose an endpoint."""
    code = Code.SERVICE_FIELD_WITHOUT_EFFECT
    for name, value in service.without_effect:
        is_annotation = name.startswith("metadata.")
        near = is_annotation or name == _NEARNESS
        severity = Severity.INFO if near else Severity.WARNING
        wanted = f"The field does not affect calls by sidecars{_INSTEAD[_NEARNESS if near else name]}"
        field = name if is_annotation else f"spec.{name}"
        yield problem_of(view, _object(service.key), code, severity, field, value, wanted)


def _behind(lint: Lint, service: Service) -> Iterator[Problem]:
    view, key = lint.view, _object(service.key)
    result = [endpoint for port in service.ports for endpoint in endpoints(view, service.key, port)]
    # A Service without a TCP port is not called, and the apex of a TrafficSplit needs no endpoints.
    leads = service.key in splits_by_apex(view) or _leads_to_others(view, service.key)
    if service.ports and not result and not leads:
        yield from _future_pods(lint, service)
    yield from _named_in_vain(view, service)
    others = (endpoint for endpoint in result if endpoint.identity is None)
    outside = sorted({_place(endpoint) for endpoint in others if not _is_of_gateway(view, endpoint)})
    if outside:
        wanted = (
            "These endpoints do not get calls, because their addresses do not belong to workloads of this "
            "namespace with a sidecar. Inject a sidecar into their Pods, or remove the "
            "endpoints."
        )
        yield problem_of(view, key, Code.OUTSIDE_MESH, Severity.WARNING, "endpoints", listed(outside), wanted)


def _is_of_gateway(view: View, endpoint: Endpoint) -> bool:
    """Return whether an endpoint is a proxy of a gateway, which is called by clients from outside."""
    there = by_address(view).lookup(endpoint.address)
    return any(isinstance(workload.interception, Edge) for workload in there)


def _leads_to_others(view: View, key: ServiceKey) -> bool:
    """Return whether a Service has routes, and its own workloads are behind none of them."""
    routes = attached_routes(view, key)
    rules = (rule for route in routes for rule in resolved_rules(view, route))
    return bool(routes) and all(place.service != key for rule in rules for place in places_of(rule))


def _future_pods(lint: Lint, service: Service) -> Iterator[Problem]:
    """Yield the problem of a Service without endpoints, with the controllers of Pods selected later."""
    view, key, selector = lint.view, _object(service.key), _selector(service)
    if len(named_in_vain(backing(view, service.key), service)) == len(service.ports):
        return  # there are workloads; `_named_in_vain` reports their missing ports
    templates = behind(lint, service.key)
    if not templates:
        wanted = (
            "Calls to this Service fail, because it lacks both a workload and an EndpointSlice. Start a "
            "workload with the labels of the selector, or create an "
            "EndpointSlice."
        )
        yield problem_of(view, key, Code.NO_ENDPOINTS, Severity.WARNING, "spec.selector", selector, wanted)
        return
    named = listed([str(template) for template in templates])
    vain = named_in_vain(templates, service)
    yield from _misnamed(view, service, vain, named, templates)
    wanted = (
        f"The Service selects the Pods of {named}, but these Pods are not known yet. Calls fail until a "
        "Pod, an EndpointSlice or a Workload gives an address."
    )
    yield problem_of(view, key, Code.TEMPLATES_ONLY, Severity.INFO, "spec.selector", selector, wanted)


def _named_in_vain(view: View, service: Service) -> Iterator[Problem]:
    """Yield the ports with a target name missing in all workloads and EndpointSlices of the Service."""
    there = backing(view, service.key)
    vain = (
        service_port
        for service_port in named_in_vain(there, service)
        if not endpoints(view, service.key, service_port)
    )
    yield from _misnamed(view, service, vain, "the workloads behind it", there)


def _misnamed(
    view: View,
    service: Service,
    ports: Iterable[ServicePort],
    owner: str,
    there: Iterable[Workload | PodTemplate],
) -> Iterator[Problem]:
    """Yield a problem for each Service port with an unknown name as target port, with the existing names."""
    names = sorted({workload_port.name for one in there for workload_port in one.ports if workload_port.name})
    use = (
        f"Use one of {', '.join(names[:_NAMED])}"
        if names
        else "Use a number, because the ports there do not have names"
    )
    key, meant = _object(service.key), Suggestions(lambda: names)
    for port in ports:
        value = port.target
        wanted = (
            f"A port of {owner} with this name does not exist, so calls to port {port.port} fail. "
            f"{use}{meant.hint(value)}."
        )
        yield problem_of(
            view, key, Code.NO_ENDPOINTS, Severity.WARNING, "spec.ports.targetPort", value, wanted
        )


def _guessed(view: View, service: Service) -> Iterator[Problem]:
    """Yield a problem for each port with a protocol declared by neither the Service nor a workload."""
    for port in service.ports:
        answer = (
            declared_protocol(target, workload.ports)
            for workload in backing(view, service.key)
            for target in target_numbers(view, workload, service, port)
        )
        if port.protocol_source == "default" and not any(answer):
            key, wanted = (
                _object(service.key),
                (
                    "Neither the Service nor a workload declares the protocol of this port, so "
                    f"it is treated as {port.protocol.value}. Set appProtocol."
                ),
            )
            yield problem_of(
                view, key, Code.PROTOCOL_GUESSED, Severity.INFO, "spec.ports", str(port.port), wanted
            )


def _place(endpoint: Endpoint) -> str:
    return str(HostPort(endpoint.address, endpoint.port))


def _selector(service: Service) -> str:
    return ", ".join(f"{name}={value}" for name, value in service.selector)


def _called_at(view: View, service: Service, port: ServicePort) -> tuple[SocketAddress, ...]:
    """Return the addresses at which a port of a Service is called."""
    if service.headless:
        result = endpoints(view, service.key, port)
        return tuple(
            sorted({SocketAddress(at, endpoint.port) for endpoint in result for at in endpoint.addresses})
        )
    return tuple(
        SocketAddress(called_address, port.port) for called_address in called_addresses(view, service)
    )


def _called_addresses(lint: Lint, key: ServiceKey) -> Collection[SocketAddress]:
    service = lint.view.services[key]
    return {where: None for port in service.ports for where in _called_at(lint.view, service, port)}


_by_called_address: Final = IN_LINT.derived_index(
    "services by called address", lambda lint: lint.view.services, _called_addresses
)


def _shared_addresses(lint: Lint, service: Service) -> Iterator[Problem]:
    for port in service.ports:
        for where in _called_at(lint.view, service, port):
            # The same order as in `catalog.policy.reachable`, which decides who gets the calls.
            holder = min(_by_called_address(lint)[where], key=partial(_by_health, lint.view, where))
            if holder != service.key:
                wanted = (
                    f"Service {holder} has the same address and port, and gets the calls. Give "
                    "one of the two Services another address or port."
                )
                yield problem_of(
                    lint.view,
                    _object(service.key),
                    Code.SHARED_ADDRESS,
                    Severity.WARNING,
                    "spec.clusterIP",
                    str(where),
                    wanted,
                )


def _overruled(view: View, service: Service) -> Iterator[Problem]:
    """Yield a problem for each port with failing calls, because another protocol takes precedence there."""
    seen: set[object] = set()
    answer: dict[Port, tuple[Port, Protocol, Protocol, tuple[ServiceKey, ...]]] = {}
    for workload in backing(view, service.key):
        alike = (services_of(view, workload.key), workload.ports, slice_ports(view, workload.key))
        # Pods of one Deployment are equal here, so one of them is enough.
        if workload.uuid is None or alike in seen:
            continue
        seen.add(alike)
        there = {number: (protocol, behind) for number, protocol, behind in served_by(view, workload)}
        for port in service.ports:
            called = protocol_of(view, service.key, port)
            for number in target_numbers(view, workload, service, port):
                taken, behind = there[number]
                others = tuple(item.key for item in behind if item.key != service.key)
                if taken.is_http != called.is_http and others:
                    answer.setdefault(port.port, (number, called, taken, others))
    for at, (number, called, taken, others) in sorted(answer.items()):
        wanted = (
            f"Calls to port {at} as {called.value} fail, because port {number} of the workloads is served as "
            f"{taken.value}. That protocol is declared by {listed([str(each) for each in others])} or by the "
            "workload; of several Services the oldest decides. Set the same appProtocol in all of them, or "
            "use another target port."
        )
        key = _object(service.key)
        yield problem_of(view, key, Code.PROTOCOL_OVERRULED, Severity.ERROR, "spec.ports", str(at), wanted)


def _by_health(view: View, where: SocketAddress, key: ServiceKey) -> tuple[int, bool, str, ServiceKey]:
    return (health_at(view, key, (where.address, where.port)), *age(view.services[key].created), key)


def _names(view: View, workload: Workload) -> Iterator[Problem]:
    if workload.uuid is None:
        return
    key = workload_object(view, workload.key)
    primary = ServiceKey(workload.key.namespace, workload.service)
    # A Pod that names no Service is often only a client with a port for metrics, so there is no problem.
    to_be_called = bool(workload.ports) and workload.names_service
    if to_be_called and primary not in view.services and not services_of(view, workload.key):
        wanted = (
            f"This workload cannot be called, because Service {primary} does not exist and other Services "
            "do not select the workload. Create the Service, or correct the name."
        )
        yield problem_of(
            view, key, Code.UNKNOWN_PRIMARY, Severity.WARNING, "spec.service", workload.service, wanted
        )
    if not isinstance(workload.interception, Explicit):
        return
    for upstream in workload.interception.upstreams:
        service = view.services.get(upstream.service)
        if service is None or service.port(upstream.service_port) is None:
            named = f"{upstream.service}:{upstream.service_port}"
            wanted = (
                "The sidecar does not offer this upstream, because a Service with this name and port does "
                "not exist. Create the Service, or correct the name and the port."
            )
            yield problem_of(
                view, key, Code.UNKNOWN_UPSTREAM, Severity.ERROR, "spec.upstreams", named, wanted
            )


def _protocols(view: View, workload: Workload) -> Iterator[Problem]:
    answer: dict[Port, dict[Protocol, ServiceKey]] = {}
    for key in services_of(view, workload.key):
        for port in view.services[key].ports:
            for number in target_numbers(view, workload, view.services[key], port):
                answer.setdefault(number, {}).setdefault(protocol_of(view, key, port), key)
    for number, protocols in sorted(answer.items()):
        if len({protocol.is_http for protocol in protocols}) > 1:
            named = ", ".join(f"{protocol.value} by {key}" for protocol, key in sorted(protocols.items()))
            wanted = (
                f"The Services declare different protocols for port {number} of this workload, and "
                "only one of the protocols can be in force. Set the same appProtocol in all of "
                "them, or declare the protocol in the workload."
            )
            named_by = workload_object(view, workload.key)
            yield problem_of(
                view, named_by, Code.PROTOCOLS_DIFFER, Severity.WARNING, "spec.ports", named, wanted
            )
