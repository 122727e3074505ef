"""Explanations of calls out of the mesh, with the missing Egress."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network
from typing import Final

from catalog.explain import names
from catalog.explain.outside_services import host_named, is_outside
from catalog.explain.remedy import Manifest
from catalog.explain.steps.step import Step, origin_of, origin_of_object
from catalog.oracle.decide import Answer
from catalog.oracle.outside import ClientProtocol, OutsideCall, OutsideDecision, decide_outside, of_port
from catalog.relations.backends.addresses import called_addresses
from catalog.relations.backends.precedence import is_superseded
from catalog.relations.outside import service_called, setting_named
from catalog.store.inventory import by_address, by_identity
from catalog.store.view import View, config_in_force
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import EGRESS, SERVICE, SERVICE_ACCOUNT, UPSTREAM_TRAFFIC_SETTING
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.egress import EgressProtocol
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import Edge, Explicit, Workload, WorkloadKey

SETTING: Final = "spec.traffic.enableEgress"
_EXCLUDED: Final = (
    "Connections that are excluded from interception never reach the sidecar: see `meshwright "
    "intercept --exclude-outbound-ranges` and `--exclude-outbound-ports`, and for Pods "
    "outboundIPRangeExclusionList and outboundPortExclusionList in the MeshConfig."
)
_MOST: Final = 5


@dataclass(frozen=True, slots=True)
class OutsideExplanation:
    """The answer to a call out of the mesh; `missing` are manifests that would admit the call."""

    client: ServiceIdentity
    where: HostPort
    answer: Answer
    because: tuple[ObjectKey, ...]
    steps: tuple[Step, ...]
    missing: tuple[Manifest, ...]


def in_the_mesh(view: View, where: HostPort, client: ServiceIdentity) -> str:
    """Return a clause with the right question if a place is in the mesh, or an empty text."""
    port = Port(where.port)
    if not _is_address(where.host):
        key = service_called(view, where.host, client.namespace)
        if key is None or is_outside(view, client, key, port):
            return ""
        return f"this is a name of Service {key}: ask about {key}:{where.port}"
    address = IpAddress(where.host)
    for key in view.services:
        there = called_addresses(view, view.services[key])
        if address in there and not is_outside(view, client, key, port):
            return f"this is the address of Service {key}: ask about {key}:{where.port}"
    for workload in by_address(view).lookup(address):
        # Without a sidecar the workload is outside the mesh, and a superseded one has lost the address.
        if workload.uuid is None or is_superseded(view, workload):
            continue
        return f"this is the address of workload {workload.key}: ask about a Service of this workload"
    return ""


def explain_outside(
    view: View, client: ServiceIdentity, where: HostPort, call: OutsideCall
) -> OutsideExplanation:
    """Explain a call to a place outside the mesh (see `in_the_mesh`). The function is pure."""
    here = [workload for workload in by_identity(view).lookup(client) if workload.uuid is not None]
    past = {workload.key: _past(workload, where) for workload in here}
    # Without a known workload the client counts as a workload whose calls are redirected to a sidecar.
    led = not past or not all(past.values())
    decision = decide_outside(view, call)
    # Calls that bypass the sidecar are not checked by any policy.
    answer = decision.answer if led else Answer.ALLOWED
    if led and answer is not Answer.ALLOWED and any(past.values()):
        answer = Answer.DEPENDS
    steps = tuple(_steps(view, call, past, decision, answer))
    return OutsideExplanation(client, where, answer, decision.because, steps, _missing(call, answer))


def call_to_service(
    view: View,
    client: ServiceIdentity,
    key: ServiceKey,
    where: HostPort,
    call: OutsideCall,
) -> OutsideCall:
    """Return a call to a Service outside the mesh, under the name in an Egress of the client."""
    if call.host != where.host:
        return call
    host = host_named(view, client, key, call.port)
    return replace(call, host=host) if host else call


def call_to(
    view: View,
    client: ServiceIdentity,
    where: HostPort,
    method: str,
    path: str,
    headers: tuple[tuple[str, str], ...],
) -> OutsideCall:
    """Return the call to explain, with TLS or HTTP by the URL or by the Egresses of the port.

    The host comes from the Host header, from the URL, or else from `where`. A call to an address has an
    unknown protocol, unless the question has a host, a path or an Egress for HTTP.
    """
    port, known = Port(where.port), _is_address(where.host)
    text = next((value for name, value in headers if name.lower() == "host"), "")
    scheme, mark, rest = path.partition("://")
    if mark:
        text, path = rest.partition("/")[0], f"/{rest.partition('/')[2]}"
    there = {
        at.protocol for egress in of_port(view, client, port) for at in egress.ports if at.number == port
    }
    if scheme.lower() == "https" or (EgressProtocol.HTTPS in there and EgressProtocol.HTTP not in there):
        speaks = ClientProtocol.TLS
    elif text or mark or not known or path != "/" or EgressProtocol.HTTP in there:
        speaks = ClientProtocol.HTTP
    else:
        speaks = ClientProtocol.OTHER
    host = text.removesuffix(f":{port}").removeprefix("[").removesuffix("]") or where.host
    address = IpAddress(where.host) if known else None
    return OutsideCall(client, port, speaks, host, address, method, path, headers)


def _past(workload: Workload, where: HostPort) -> str:
    """Return why calls of a workload to a place outside the mesh bypass its sidecar, or an empty text."""
    kind = workload.interception
    if isinstance(kind, Explicit):
        return "uses explicit interception: calls to anything but its upstreams bypass the sidecar."
    if isinstance(kind, Edge):
        return "serves a gateway, which only forwards requests by routes."
    if ":" in where.host and not kind.ipv6:
        return (
            "is intercepted only for IPv4 (interception.ipv6 is false): IPv6 connections bypass the sidecar."
        )
    return ""


def _steps(
    view: View,
    call: OutsideCall,
    past: Mapping[WorkloadKey, str],
    decision: OutsideDecision,
    answer: Answer,
) -> Iterator[Step]:
    yield _place(view, call)
    yield from names.client(view, call.client)
    for key in sorted(key for key, why in past.items() if why)[:_MOST]:
        yield Step(f"Workload {key} {past[key]}")
    yield from _egresses(view, call, decision)
    yield _setting(view)
    yield Step(_EXCLUDED)
    if decision.because and answer is Answer.ALLOWED:
        to = "the address that the DNS has for its host" if decision.by_dns else "its original address"
        yield Step(f"The call is allowed: it goes to {to}.")
    elif decision.answer is Answer.DEPENDS:
        yield Step(
            "The answer depends on the address that is called: ask about that address, with "
            "the host as a header."
        )
    else:
        yield Step(_CONCLUDED[answer])


def _place(view: View, call: OutsideCall) -> Step:
    """Return the step about the called place outside the mesh; for a Service, with the reason."""
    called = str(call.address or call.host)
    if (key := service_called(view, called, call.client.namespace)) is not None:
        text = (
            f"{called} is Service {key}, which is outside the mesh, because not all of its "
            "workloads have a sidecar. An Egress can admit calls to it; a TrafficTarget cannot."
        )
        return Step(text, origin_of(view, SERVICE, key))
    if call.address is None:
        return Step("The name is not that of a Service of the mesh, so the host is outside the mesh.")
    return Step(
        "The address belongs to neither a Service nor a workload of the mesh, so it is outside the mesh."
    )


def _egresses(view: View, call: OutsideCall, decision: OutsideDecision) -> Iterator[Step]:
    """Yield a step for each Egress of the client at the called port."""
    what = {
        ClientProtocol.HTTP: f"a request for {call.host or 'no host'}",
        ClientProtocol.TLS: f"TLS with the server name {call.host or 'no name'}",
        ClientProtocol.OTHER: "a connection with an unknown protocol",
    }[call.speaks]
    egresses = of_port(view, call.client, call.port)
    if egresses:
        yield Step(f"The call is {what}, at port {call.port}.")
    for egress in egresses[:_MOST]:
        key = ObjectKey.from_name(EGRESS, egress.key)
        does = "admits the call" if key in decision.because else "does not admit the call"
        hosts, networks = (
            ", ".join(egress.hosts) or "every host",
            ", ".join(egress.networks) or "every address",
        )
        ports = ", ".join(f"{at.number} {at.protocol}" for at in egress.ports if at.number == call.port)
        of = f", requests of {', '.join(egress.route_groups)}" if egress.route_groups else ""
        text = f"{key} {does}: it is for {ports}, {hosts}, {networks}{of}."
        yield Step(text, origin_of_object(view, key), depth=1)
        setting = setting_named(view, egress)
        if setting is not None and setting.host == call.host:
            by = ObjectKey.from_name(UPSTREAM_TRAFFIC_SETTING, setting.key)
            text = f"{by} limits concurrent calls to {setting.host}."
            yield Step(text, origin_of_object(view, by), depth=2)


def _setting(view: View) -> Step:
    first = config_in_force(view)
    opens = f"{SETTING}: true would admit calls of all workloads to all addresses"
    if first is None:
        return Step(f"There is no MeshConfig. One with {opens}.")
    text = f"has {SETTING}: true" if view.config.egress else f"does not admit calls out of the mesh; {opens}"
    return Step(f"{first} {text}.", origin_of_object(view, first))


_CONCLUDED: Final = {
    Answer.ALLOWED: "The call is allowed: the connection goes to its original address, unchanged.",
    Answer.REFUSED: (
        "The request is refused: an Egress that admits it is missing, and the client's sidecar answers 404."
    ),
    Answer.UNREACHABLE: (
        "The address is unreachable: calls out of the mesh are not admitted by "
        "default, so the client's sidecar ends the connection."
    ),
    Answer.DEPENDS: (
        "The answer depends on the calling workload: calls of some workloads bypass the sidecar."
    ),
}


def _missing(call: OutsideCall, answer: Answer) -> tuple[Manifest, ...]:
    """Return an Egress to admit the call: for the host, or for the address without a host."""
    if answer is Answer.ALLOWED:
        return ()
    if call.speaks is not ClientProtocol.OTHER and not _is_address(call.host):
        return (_egress(call),)
    return (_egress_to_address(call, call.address),) if call.address is not None else ()


def _egress(call: OutsideCall) -> Manifest:
    protocol = EgressProtocol.HTTPS if call.speaks is ClientProtocol.TLS else EgressProtocol.HTTP
    host = call.host.lower()
    return _manifest(call, host, protocol, {"hosts": [host]})


def _egress_to_address(call: OutsideCall, address: IpAddress) -> Manifest:
    """Return an Egress for all connections, or all requests, to one address, as of the API server."""
    protocol = EgressProtocol.HTTP if call.speaks is ClientProtocol.HTTP else EgressProtocol.TCP
    name = f"{call.client.service_account}-{call.port}"
    return _manifest(call, name, protocol, {"ipAddresses": [str(ip_network(address))]})


def _manifest(
    call: OutsideCall, name: str, protocol: EgressProtocol, where: Mapping[str, list[str]]
) -> Manifest:
    client = call.client
    source = {"kind": SERVICE_ACCOUNT.name, "name": client.service_account, "namespace": client.namespace}
    return {
        "apiVersion": f"{EGRESS.group}/v1alpha1",
        "kind": EGRESS.name,
        "metadata": {"name": name, "namespace": client.namespace},
        "spec": {
            "sources": [source],
            **where,
            "ports": [{"number": call.port, "protocol": protocol.value}],
        },
    }


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
