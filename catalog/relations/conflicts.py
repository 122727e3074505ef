"""Listeners of explicit interception that would share an address and port: they would share connections.

Every sidecar in explicit interception binds its workload's ports and its upstreams' local addresses. Two
that are the same are said. Of two in one namespace that of the younger workload is left out, else the later
one by name; a workload's inbound ports come first. Of two namespaces neither is: what somebody claims to be
his takes no listener from anybody else.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final

from catalog.relations.backends.ports import GivenPorts, served
from catalog.relations.backends.targets import given_ports
from catalog.relations.backends.workloads import services_of
from catalog.store.precedence import age
from catalog.store.view import IN_VIEW, View, workloads
from meshwright.engine.derived import derived
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.service import Service
from meshwright.mesh.workload import Explicit, Workload, WorkloadKey

Place = tuple[str, str, Port]
"""Where claims may meet: on a machine's port, at an address and port, on every address of a machine."""

Spot = tuple[WorkloadKey, int]
"""Where a claim is found: its workload, and its place among what that claims."""

Rank = tuple[bool, str, WorkloadKey, int]
"""The order of claims: by the workload's age, then its name, then as the workload has them."""


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
        return f"{direction} {HostPort(self.address, self.port)} of workload {self.workload}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A claim that is left out, or shared, and the earlier one that has its address and port."""

    refused: Claim
    holder: Claim


def conflicts(view: View, key: WorkloadKey) -> tuple[Conflict, ...]:
    """Return the claims of a workload in explicit interception that others hold already, in its order."""
    found = ((claim, holder(view, key, place)) for place, claim in enumerate(claims_of(view, key)))
    return tuple(Conflict(claim, held) for claim, held in found if held is not None)


def shared(view: View, key: WorkloadKey) -> tuple[Conflict, ...]:
    """Return the claims of a workload that meet an earlier one of another namespace: both are in force."""
    own = ((place, claim) for place, claim in enumerate(claims_of(view, key)) if not holder(view, key, place))
    found = ((claim, _first(view, key, place, at_home=False)) for place, claim in own)
    return tuple(Conflict(claim, met) for claim, met in found if met is not None)


def claims_of(view: View, key: WorkloadKey) -> tuple[Claim, ...]:
    """Return what a workload's sidecar would bind, in its order; most are transparent, and bind nothing."""
    workload = view.workloads.get(key)
    return () if workload is None or not isinstance(workload.interception, Explicit) else _bound(view, key)


@derived
def _bound(view: View, key: WorkloadKey) -> tuple[Claim, ...]:
    services = [view.services[each] for each in services_of(view, key)]
    return claims(view.workloads[key], services, given_ports(view, key))


@derived
def holder(view: View, key: WorkloadKey, place: int) -> Claim | None:
    """Return who keeps a workload from what it claims at a place; None where it has what it claims."""
    return _first(view, key, place, at_home=True)


def _first(view: View, key: WorkloadKey, place: int, *, at_home: bool) -> Claim | None:
    """Return the first earlier claim in force that one meets, of its own namespace or of all others."""
    claim = claims_of(view, key)[place]
    for rival, there in _rivals(view, claim, _rank(view, key, place)):
        of_home = rival.workload.namespace == key.namespace
        if of_home is at_home and _same_machine(rival, claim) and holder(view, *there) is None:
            return rival
    return None


def places(claim: Claim) -> tuple[Place, ...]:
    """Return where a claim is found by those that might meet it."""
    found = [("on", _machine(claim), claim.port), ("at", claim.address, claim.port)]
    if ip_address(claim.address).is_unspecified:
        found.append(("everywhere", _machine(claim), claim.port))
    return tuple(found)


def _rivals(view: View, claim: Claim, own: Rank) -> Iterator[tuple[Claim, Spot]]:
    """Yield the earlier claims that might be met: those at the address, then those on every address."""
    machine, port = _machine(claim), claim.port
    if ip_address(claim.address).is_unspecified:
        yield from _earlier(view, ("on", machine, port), own)
        return
    yield from _earlier(view, ("at", claim.address, port), own)
    yield from _earlier(view, ("everywhere", machine, port), own)


def _earlier(view: View, place: Place, own: Rank) -> Iterator[tuple[Claim, Spot]]:
    for key in sorted(claimants(view).get(place, ()), key=lambda each: _rank(view, each, 0)):
        there = claims_of(view, key)
        for number in _numbers(view, key).get(place, ()):
            if _rank(view, key, number) < own:
                yield there[number], (key, number)


def _rank(view: View, key: WorkloadKey, number: int) -> Rank:
    return (*age(view.workloads[key].created), key, number)


@derived
def _numbers(view: View, key: WorkloadKey) -> Mapping[Place, tuple[int, ...]]:
    """Return the claims of a workload by where they are found: one may have thousands of upstreams."""
    found: dict[Place, list[int]] = {}
    for number, claim in enumerate(claims_of(view, key)):
        for place in places(claim):
            found.setdefault(place, []).append(number)
    return MappingProxyType({place: tuple(numbers) for place, numbers in found.items()})


def claims(workload: Workload, services: list[Service], given: GivenPorts = ()) -> tuple[Claim, ...]:
    """Return what a workload's sidecar binds: nothing without a sidecar or in transparent interception."""
    if workload.uuid is None or not isinstance(workload.interception, Explicit):
        return ()
    key, host = workload.key, workload.address
    inbound = (
        [Claim(key, -1, host, port, host) for port, _, _ in served(services, workload.ports, given)]
        if workload.interception.application_address is not None
        else []
    )
    outbound = [
        Claim(key, index, each.local_address, each.local_port, host)
        for index, each in enumerate(sorted(workload.interception.upstreams))
    ]
    return (*inbound, *outbound)


def _places(view: View, key: WorkloadKey) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(place for claim in claims_of(view, key) for place in places(claim)))


claimants: Final = IN_VIEW.derived_index("claims by place", workloads, _places)
"""The workloads that claim something at a place."""


def _machine(claim: Claim) -> str:
    """Name the machine: workloads on loopback addresses are on one."""
    return "loopback" if ip_address(claim.host).is_loopback else claim.host


def _same_machine(one: Claim, other: Claim) -> bool:
    """Say whether two claims meet: a loopback or unspecified address is another one on each machine."""
    if one.workload == other.workload or one.host == other.host:
        return True
    local = [ip_address(each) for each in (one.address, other.address)]
    if not any(each.is_loopback or each.is_unspecified for each in local):
        return True
    return all(ip_address(each).is_loopback for each in (one.host, other.host))
