"""Calls out of the mesh: what the client's sidecar does with them, and what opens the way."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from catalog.explain import names
from catalog.explain.remedy import Manifest
from catalog.explain.steps import Step, origin_of_object
from catalog.oracle.decide import Answer
from catalog.oracle.outside import OutsideCall, OutsideDecision, Speaks, decide_outside, of_port
from catalog.relations.addresses import called_addresses
from catalog.relations.outside import service_called, setting_named
from catalog.store.inventory import by_address, by_identity
from catalog.store.view import PREFERRED_CONFIG, View, config_order, configs
from mesh.egress import EgressProtocol
from mesh.host_port import HostPort
from mesh.identity import ServiceIdentity
from mesh.kinds import EGRESS, MESH_CONFIG, SERVICE_ACCOUNT, UPSTREAM_TRAFFIC_SETTING
from mesh.names import IpAddress, Namespace, Port
from mesh.objects import ObjectKey
from mesh.workload import Explicit, Workload, WorkloadKey

SETTING: Final = "spec.traffic.enableEgress"
_EXCLUDED: Final = (
    "what the interception leaves out never comes to the sidecar: `meshwright intercept "
    "--exclude-outbound-ranges` and `--exclude-outbound-ports`, and of pods the MeshConfig's "
    "outboundIPRangeExclusionList and outboundPortExclusionList"
)
_MOST: Final = 5


@dataclass(frozen=True, slots=True)
class Outside:
    """What becomes of a call to an address or a host outside; `missing` would open the way, as manifests."""

    client: ServiceIdentity
    where: HostPort
    answer: Answer
    because: tuple[ObjectKey, ...]
    steps: tuple[Step, ...]
    missing: tuple[Manifest, ...]


def in_the_mesh(view: View, where: HostPort, namespace: Namespace) -> str:
    """Return what of the mesh a client of a namespace would call, and how to ask; empty for none."""
    if not _is_address(where.host):
        key = service_called(view, where.host, namespace)
        return "" if key is None else f"that is a name of Service {key}: ask about {key}:{where.port}"
    address = IpAddress(where.host)
    for key in view.services:
        if address in called_addresses(view, view.services[key]):
            return f"that is the address of Service {key}: ask about {key}:{where.port}"
    for workload in by_address(view).found(address):
        return f"that is the address of workload {workload.key}: ask about a Service that it stands behind"
    return ""


def explain_outside(view: View, client: ServiceIdentity, where: HostPort, asked: OutsideCall) -> Outside:
    """Explain a call to what is none of the mesh's (`in_the_mesh`); pure."""
    here = [each for each in by_identity(view).found(client) if each.uuid is not None]
    past = {each.key: _past(each, where) for each in here}
    led = not past or not all(past.values())
    decision = decide_outside(view, asked)
    answer = decision.answer if led else Answer.ALLOWED
    if led and answer is not Answer.ALLOWED and any(past.values()):
        answer = Answer.DEPENDS
    steps = tuple(_steps(view, asked, past, decision, answer))
    return Outside(client, where, answer, decision.because, steps, _missing(view, asked, answer))


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
        speaks = Speaks.TLS
    elif said or mark or not known or path != "/" or EgressProtocol.HTTP in there:
        speaks = Speaks.HTTP
    else:
        speaks = Speaks.OTHER
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
    if asked.address is None:
        yield Step("no Service of the mesh has this name: it is outside")
    else:
        yield Step("no Service and no workload of the mesh has this address: it is outside")
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


def _egresses(view: View, asked: OutsideCall, decision: OutsideDecision) -> Iterator[Step]:
    """Say what each Egress of the client and the port has to do with the call."""
    what = {
        Speaks.HTTP: f"a request for {asked.host or 'no host'}",
        Speaks.TLS: f"TLS that asks for {asked.host or 'no name'}",
        Speaks.OTHER: "a connection of which nothing is known",
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
    first = min(configs(view), key=config_order, default=None)
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


def _missing(view: View, asked: OutsideCall, answer: Answer) -> tuple[Manifest, ...]:
    """Return an Egress that lets such a call pass, or else a MeshConfig that opens the way.

    A MeshConfig that is there is to be changed, and is not written here.
    """
    if answer is Answer.ALLOWED:
        return ()
    if asked.speaks is not Speaks.OTHER and not _is_address(asked.host):
        return (_egress(asked),)
    if configs(view):
        return ()
    return (
        {
            "apiVersion": f"{MESH_CONFIG.group}/v1alpha2",
            "kind": MESH_CONFIG.name,
            "metadata": {"name": PREFERRED_CONFIG, "namespace": "default"},
            "spec": {"traffic": {"enableEgress": True}},
        },
    )


def _egress(asked: OutsideCall) -> Manifest:
    client, host = asked.client, asked.host.lower()
    source = {"kind": SERVICE_ACCOUNT.name, "name": client.service_account, "namespace": client.namespace}
    protocol = EgressProtocol.HTTPS if asked.speaks is Speaks.TLS else EgressProtocol.HTTP
    return {
        "apiVersion": f"{EGRESS.group}/v1alpha1",
        "kind": EGRESS.name,
        "metadata": {"name": host, "namespace": client.namespace},
        "spec": {
            "sources": [source],
            "hosts": [host],
            "ports": [{"number": asked.port, "protocol": protocol.value}],
        },
    }


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
