"""Calls out of the mesh: what the client's sidecar does with them, and what opens the way."""

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
from meshwright.mesh.workload import Explicit, Workload, WorkloadKey

SETTING: Final = "spec.traffic.enableEgress"
_EXCLUDED: Final = (
    "what the interception leaves out never comes to the sidecar: `meshwright intercept "
    "--exclude-outbound-ranges` and `--exclude-outbound-ports`, and of pods the MeshConfig's "
    "outboundIPRangeExclusionList and outboundPortExclusionList"
)
_MOST: Final = 5


@dataclass(frozen=True, slots=True)
class OutsideExplanation:
    """What becomes of a call to an address or a host outside; `missing` would open the way, as manifests."""

    client: ServiceIdentity
    where: HostPort
    answer: Answer
    because: tuple[ObjectKey, ...]
    steps: tuple[Step, ...]
    missing: tuple[Manifest, ...]


def in_the_mesh(view: View, where: HostPort, client: ServiceIdentity) -> str:
    """Return what of the mesh a client would call, and how to ask about it; empty for what is outside."""
    port = Port(where.port)
    if not _is_address(where.host):
        key = service_called(view, where.host, client.namespace)
        if key is None or is_outside(view, client, key, port):
            return ""
        return f"that is a name of Service {key}: ask about {key}:{where.port}"
    address = IpAddress(where.host)
    for key in view.services:
        there = called_addresses(view, view.services[key])
        if address in there and not is_outside(view, client, key, port):
            return f"that is the address of Service {key}: ask about {key}:{where.port}"
    for workload in by_address(view).found(address):
        if workload.uuid is None or is_superseded(view, workload):
            continue
        return f"that is the address of workload {workload.key}: ask about a Service that it stands behind"
    return ""


def explain_outside(
    view: View, client: ServiceIdentity, where: HostPort, asked: OutsideCall
) -> OutsideExplanation:
    """Explain a call to what is none of the mesh's (`in_the_mesh`); pure."""
    here = [each for each in by_identity(view).found(client) if each.uuid is not None]
    past = {each.key: _past(each, where) for each in here}
    led = not past or not all(past.values())
    decision = decide_outside(view, asked)
    answer = decision.answer if led else Answer.ALLOWED
    if led and answer is not Answer.ALLOWED and any(past.values()):
        answer = Answer.DEPENDS
    steps = tuple(_steps(view, asked, past, decision, answer))
    return OutsideExplanation(client, where, answer, decision.because, steps, _missing(asked, answer))


def call_to_service(
    view: View,
    client: ServiceIdentity,
    key: ServiceKey,
    where: HostPort,
    asked: OutsideCall,
) -> OutsideCall:
    """Return a call to a Service outside the mesh, under the name that an Egress of the client has for it."""
    if asked.host != where.host:
        return asked
    host = host_named(view, client, key, asked.port)
    return replace(asked, host=host) if host else asked


def call_to(
    view: View,
    client: ServiceIdentity,
    where: HostPort,
    method: str,
    path: str,
    headers: tuple[tuple[str, str], ...],
) -> OutsideCall:
    """Return the call that is asked about: TLS or HTTP, as the URL or the Egresses of the port say.

    A host is the one of a Host header, of the URL, or the one that is called; an address alone is called by
    whatever is no HTTP, unless something of the question is about HTTP.
    """
    port, known = Port(where.port), _is_address(where.host)
    said = next((value for name, value in headers if name.lower() == "host"), "")
    scheme, mark, rest = path.partition("://")
    if mark:
        said, path = rest.partition("/")[0], f"/{rest.partition('/')[2]}"
    there = {at.protocol for each in of_port(view, client, port) for at in each.ports if at.number == port}
    if scheme.lower() == "https" or (EgressProtocol.HTTPS in there and EgressProtocol.HTTP not in there):
        speaks = ClientProtocol.TLS
    elif said or mark or not known or path != "/" or EgressProtocol.HTTP in there:
        speaks = ClientProtocol.HTTP
    else:
        speaks = ClientProtocol.OTHER
    host = said.removesuffix(f":{port}").removeprefix("[").removesuffix("]") or where.host
    address = IpAddress(where.host) if known else None
    return OutsideCall(client, port, speaks, host, address, method, path, headers)


def _past(workload: Workload, where: HostPort) -> str:
    """Return why such calls of a workload do not come to its sidecar; empty if they do."""
    kind = workload.interception
    if isinstance(kind, Explicit):
        return "is intercepted explicitly: what is no upstream of it goes past its sidecar"
    if ":" in where.host and not kind.ipv6:
        return "is intercepted for IPv4 alone (interception.ipv6 is false): IPv6 goes past its sidecar"
    return ""


def _steps(
    view: View,
    asked: OutsideCall,
    past: Mapping[WorkloadKey, str],
    decision: OutsideDecision,
    answer: Answer,
) -> Iterator[Step]:
    yield _place(view, asked)
    yield from names.client(view, asked.client)
    for key in sorted(key for key, why in past.items() if why)[:_MOST]:
        yield Step(f"workload {key} {past[key]}")
    yield from _egresses(view, asked, decision)
    yield _setting(view)
    yield Step(_EXCLUDED)
    if decision.because and answer is Answer.ALLOWED:
        to = "where the DNS says that its host is" if decision.by_dns else "where it was going"
        yield Step(f"allowed: the call goes to {to}")
    elif decision.answer is Answer.DEPENDS:
        yield Step("depends on the address that is called: ask about it, with the host as a header")
    else:
        yield Step(_CONCLUDED[answer])


def _place(view: View, asked: OutsideCall) -> Step:
    """Say that the place which is called is outside the mesh, and why it is if a Service is there."""
    called = str(asked.address or asked.host)
    if (key := service_called(view, called, asked.client.namespace)) is not None:
        said = (
            f"{called} is Service {key}, which is outside the mesh, because not every workload behind it "
            "has a sidecar: an Egress lets it be called, and no TrafficTarget does"
        )
        return Step(said, origin_of(view, SERVICE, key))
    if asked.address is None:
        return Step("no Service of the mesh has this name: it is outside")
    return Step("no Service and no workload of the mesh has this address: it is outside")


def _egresses(view: View, asked: OutsideCall, decision: OutsideDecision) -> Iterator[Step]:
    """Say what each Egress of the client and the port has to do with the call."""
    what = {
        ClientProtocol.HTTP: f"a request for {asked.host or 'no host'}",
        ClientProtocol.TLS: f"TLS that asks for {asked.host or 'no name'}",
        ClientProtocol.OTHER: "a connection of which nothing is known",
    }[asked.speaks]
    found = of_port(view, asked.client, asked.port)
    if found:
        yield Step(f"the call is {what}, at port {asked.port}")
    for each in found[:_MOST]:
        key = ObjectKey.of(EGRESS, each.key)
        does = "lets it pass" if key in decision.because else "does not let it pass"
        hosts, networks = ", ".join(each.hosts) or "every host", ", ".join(each.networks) or "every address"
        ports = ", ".join(f"{at.number} {at.protocol}" for at in each.ports if at.number == asked.port)
        of = f", requests of {', '.join(each.route_groups)}" if each.route_groups else ""
        text = f"{key} {does}: it is for {ports}, {hosts}, {networks}{of}"
        yield Step(text, origin_of_object(view, key), depth=1)
        setting = setting_named(view, each)
        if setting is not None and setting.host == asked.host:
            by = ObjectKey.of(UPSTREAM_TRAFFIC_SETTING, setting.key)
            text = f"{by} limits what goes at once to {setting.host}"
            yield Step(text, origin_of_object(view, by), depth=2)


def _setting(view: View) -> Step:
    first = config_in_force(view)
    opens = f"{SETTING}: true would open the way out, for all workloads and to all addresses"
    if first is None:
        return Step(f"there is no MeshConfig; one with {opens}")
    said = f"has {SETTING}: true" if view.config.egress else f"leaves it closed; {opens}"
    return Step(f"{first} {said}", origin_of_object(view, first))


_CONCLUDED: Final = {
    Answer.ALLOWED: "allowed: the connection goes to where it was going, as the application sends it",
    Answer.REFUSED: "refused: no Egress lets such a request pass; the client's sidecar answers 404",
    Answer.UNREACHABLE: "unreachable: outbound traffic out of the mesh is closed, as it is by default; "
    "the client's sidecar ends the connection",
    Answer.DEPENDS: "depends on which of the client's workloads calls: of some it goes past the sidecar",
}


def _missing(asked: OutsideCall, answer: Answer) -> tuple[Manifest, ...]:
    """Return an Egress that lets such a call pass: for the host, or for the address if no host is known."""
    if answer is Answer.ALLOWED:
        return ()
    if asked.speaks is not ClientProtocol.OTHER and not _is_address(asked.host):
        return (_egress(asked),)
    return (_egress_to_address(asked, asked.address),) if asked.address is not None else ()


def _egress(asked: OutsideCall) -> Manifest:
    protocol = EgressProtocol.HTTPS if asked.speaks is ClientProtocol.TLS else EgressProtocol.HTTP
    host = asked.host.lower()
    return _manifest(asked, host, protocol, {"hosts": [host]})


def _egress_to_address(asked: OutsideCall, address: IpAddress) -> Manifest:
    """Return an Egress for all connections, or all requests, to one address, as of the API server."""
    protocol = EgressProtocol.HTTP if asked.speaks is ClientProtocol.HTTP else EgressProtocol.TCP
    name = f"{asked.client.service_account}-{asked.port}"
    return _manifest(asked, name, protocol, {"ipAddresses": [str(ip_network(address))]})


def _manifest(
    asked: OutsideCall, name: str, protocol: EgressProtocol, where: Mapping[str, list[str]]
) -> Manifest:
    client = asked.client
    source = {"kind": SERVICE_ACCOUNT.name, "name": client.service_account, "namespace": client.namespace}
    return {
        "apiVersion": f"{EGRESS.group}/v1alpha1",
        "kind": EGRESS.name,
        "metadata": {"name": name, "namespace": client.namespace},
        "spec": {
            "sources": [source],
            **where,
            "ports": [{"number": asked.port, "protocol": protocol.value}],
        },
    }


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
