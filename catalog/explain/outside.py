"""Calls to an address outside the mesh: what the client's sidecar does with them, and what opens the way."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from catalog.explain import names
from catalog.explain.remedy import Manifest
from catalog.explain.steps import Step, origin_of_object
from catalog.oracle.decide import Answer
from catalog.relations.addresses import called_addresses
from catalog.store.inventory import by_address, by_identity
from catalog.store.view import PREFERRED_CONFIG, View, config_order, configs
from mesh.host_port import HostPort
from mesh.identity import ServiceIdentity
from mesh.kinds import MESH_CONFIG
from mesh.names import IpAddress
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
    """What becomes of a connection to an address outside; `missing` are manifests that would open the way."""

    client: ServiceIdentity
    where: HostPort
    answer: Answer
    steps: tuple[Step, ...]
    missing: tuple[Manifest, ...]


def in_the_mesh(view: View, where: HostPort) -> str:
    """Return what of the mesh has an address, and how to ask about it; empty of one that is outside."""
    address = IpAddress(where.host)
    for key in view.services:
        if address in called_addresses(view, view.services[key]):
            return f"that is the address of Service {key}: ask about {key}:{where.port}"
    for workload in by_address(view).found(address):
        return f"that is the address of workload {workload.key}: ask about a Service that it stands behind"
    return ""


def explain_outside(view: View, client: ServiceIdentity, where: HostPort) -> Outside:
    """Explain a call to an address that is none of the mesh's (`in_the_mesh`); pure."""
    here = [each for each in by_identity(view).found(client) if each.uuid is not None]
    past = {each.key: _past(each, where) for each in here}
    open_ = view.config.egress
    led = not past or not all(past.values())
    answer = Answer.ALLOWED
    if led and not open_:
        answer = Answer.DEPENDS if any(past.values()) else Answer.UNREACHABLE
    return Outside(client, where, answer, tuple(_steps(view, client, past, answer)), _missing(view, answer))


def _past(workload: Workload, where: HostPort) -> str:
    """Return why such calls of a workload do not come to its sidecar; empty if they do."""
    kind = workload.interception
    if isinstance(kind, Explicit):
        return "is intercepted explicitly: what is no upstream of it goes past its sidecar"
    if ip_address(where.host).version == 6 and not kind.ipv6:
        return "is intercepted for IPv4 alone (interception.ipv6 is false): IPv6 goes past its sidecar"
    return ""


def _steps(
    view: View, client: ServiceIdentity, past: Mapping[WorkloadKey, str], answer: Answer
) -> Iterator[Step]:
    yield Step("no Service and no workload of the mesh has this address: it is outside")
    yield from names.client(view, client)
    for key in sorted(key for key, why in past.items() if why)[:_MOST]:
        yield Step(f"workload {key} {past[key]}")
    yield _setting(view)
    yield Step(_EXCLUDED)
    yield Step(_CONCLUDED[answer])


def _setting(view: View) -> Step:
    first = min(configs(view), key=config_order, default=None)
    opens = f"{SETTING}: true would open the way out, for all workloads and to all addresses"
    if first is None:
        return Step(f"there is no MeshConfig; one with {opens}")
    said = f"has {SETTING}: true" if view.config.egress else f"leaves it closed; {opens}"
    return Step(f"{first} {said}", origin_of_object(view, first))


_CONCLUDED: Final = {
    Answer.ALLOWED: "allowed: the connection goes to where it was going, as the application sends it",
    Answer.UNREACHABLE: "unreachable: outbound traffic out of the mesh is closed, as it is by default; "
    "the client's sidecar ends the connection",
    Answer.DEPENDS: "depends on which of the client's workloads calls: of some it goes past the sidecar",
}


def _missing(view: View, answer: Answer) -> tuple[Manifest, ...]:
    """Return a MeshConfig that opens the way; one that is there is to be changed, and is not written here."""
    if answer is Answer.ALLOWED or configs(view):
        return ()
    return (
        {
            "apiVersion": f"{MESH_CONFIG.group}/v1alpha2",
            "kind": MESH_CONFIG.name,
            "metadata": {"name": PREFERRED_CONFIG, "namespace": "default"},
            "spec": {"traffic": {"enableEgress": True}},
        },
    )
