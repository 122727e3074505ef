"""Listeners of explicit interception that would share an address and port: they would share connections.

Every sidecar in explicit interception binds its workload's ports and its upstreams' local addresses. Two
that are the same are said, and the later one, by workload, its inbound ports first, is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from catalog.ports import served
from mesh.names import IpAddress, Port
from mesh.service import Service, ServiceKey
from mesh.workload import Explicit, Workload, WorkloadKey


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """An address and port that one sidecar binds; `host` is its workload's address: it tells machines apart.

    `index` is the place among the workload's upstreams, -1 for an inbound port.
    """

    workload: WorkloadKey
    index: int
    address: IpAddress
    port: Port
    host: IpAddress

    def __str__(self) -> str:
        direction = "inbound" if self.index < 0 else "outbound"
        return f"{direction} {self.address}:{self.port} of workload {self.workload}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A claim that is left out, and the earlier one that has its address and port."""

    refused: Claim
    holder: Claim


def conflicts(
    services: Mapping[ServiceKey, Service],
    workloads: Mapping[WorkloadKey, Workload],
    services_of: Mapping[WorkloadKey, tuple[ServiceKey, ...]],
) -> Mapping[WorkloadKey, tuple[Conflict, ...]]:
    """Return the conflicts of all workloads in explicit interception, by the workload that loses."""
    held: dict[tuple[IpAddress, Port], list[Claim]] = {}
    on_every_address: dict[Port, list[Claim]] = {}
    by_port: dict[Port, list[Claim]] = {}
    found: dict[WorkloadKey, list[Conflict]] = {}
    for workload in sorted(workloads.values(), key=lambda each: each.key):
        own = [services[key] for key in services_of.get(workload.key, ())]
        for claim in claims(workload, own):
            everywhere = ip_address(claim.address).is_unspecified
            rivals = (
                by_port.get(claim.port, [])
                if everywhere
                else held.get((claim.address, claim.port), []) + on_every_address.get(claim.port, [])
            )
            holder = next((rival for rival in rivals if _same_machine(rival, claim)), None)
            if holder is not None:
                found.setdefault(workload.key, []).append(Conflict(claim, holder))
                continue
            held.setdefault((claim.address, claim.port), []).append(claim)
            by_port.setdefault(claim.port, []).append(claim)
            if everywhere:
                on_every_address.setdefault(claim.port, []).append(claim)
    return {key: tuple(each) for key, each in found.items()}


def claims(workload: Workload, services: list[Service]) -> tuple[Claim, ...]:
    """Return what a workload's sidecar binds: nothing without a sidecar or in transparent interception."""
    if workload.uuid is None or not isinstance(workload.interception, Explicit):
        return ()
    key, host = workload.key, workload.address
    inbound = (
        [Claim(key, -1, host, port, host) for port, _, _ in served(services, workload.ports)]
        if workload.interception.application_address is not None
        else []
    )
    outbound = [
        Claim(key, index, each.local_address, each.local_port, host)
        for index, each in enumerate(sorted(workload.interception.upstreams))
    ]
    return (*inbound, *outbound)


def _same_machine(one: Claim, other: Claim) -> bool:
    """Say whether two claims meet: a loopback or unspecified address is another one on each machine."""
    if one.workload == other.workload or one.host == other.host:
        return True
    local = [ip_address(each) for each in (one.address, other.address)]
    if not any(each.is_loopback or each.is_unspecified for each in local):
        return True
    return all(ip_address(each).is_loopback for each in (one.host, other.host))
