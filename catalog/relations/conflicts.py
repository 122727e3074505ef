"""Conflicts of listeners in explicit interception, which would share connections.

Every sidecar in explicit interception binds its workload's ports and its upstreams' local addresses. Equal
ones are reported. Of two in one namespace the listener of the younger workload is left out, then of the later
one by name; a workload's inbound ports precede its upstreams. Between two namespaces both stay, because a
claim in one namespace must not remove a listener of another.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final

from catalog.relations.backends.ports import GivenPorts, served
from catalog.relations.backends.targets import slice_ports
from catalog.relations.backends.workloads import services_of
from catalog.store.precedence import age
from catalog.store.view import IN_VIEW, View, workloads
from meshwright.engine.derived import derived
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.service import Service
from meshwright.mesh.workload import Explicit, Workload, WorkloadKey

Place = tuple[str, str, Port]
"""Place where claims may meet: a port of a machine, an address and port, or all addresses of a machine."""

Spot = tuple[WorkloadKey, int]
"""Position of a claim: its workload, and its index among the workload's claims."""

Rank = tuple[bool, str, WorkloadKey, int]
"""Order of claims: by the workload's age, then its name, then the index."""


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """An address and port that one sidecar binds.

    `host` is its workload's address and identifies the machine.

    `index` is the index among the workload's upstreams, -1 for an inbound port.
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
    """A claim that is left out or shared, and the earlier one with its address and port.

    For example: `outbound 127.0.0.1:9001 of workload shop/cart-1`, twice on one machine.
    """

    refused: Claim
    holder: Claim


def conflicts(view: View, key: WorkloadKey) -> tuple[Conflict, ...]:
    """Return the claims of a workload that others already hold in its namespace, in the workload's order."""
    result = ((claim, holder(view, key, place)) for place, claim in enumerate(claims_of(view, key)))
    return tuple(Conflict(claim, held) for claim, held in result if held is not None)


def shared(view: View, key: WorkloadKey) -> tuple[Conflict, ...]:
    """Return the claims of a workload that meet an earlier one of another namespace; both are in force."""
    own = ((place, claim) for place, claim in enumerate(claims_of(view, key)) if not holder(view, key, place))
    result = ((claim, _first(view, key, place, at_home=False)) for place, claim in own)
    return tuple(Conflict(claim, met) for claim, met in result if met is not None)


def claims_of(view: View, key: WorkloadKey) -> tuple[Claim, ...]:
    """Return the addresses and ports that a workload's sidecar would bind, in order.

    Empty in transparent interception.
    """
    workload = view.workloads.get(key)
    return () if workload is None or not isinstance(workload.interception, Explicit) else _bound(view, key)


@derived
def _bound(view: View, key: WorkloadKey) -> tuple[Claim, ...]:
    services = [view.services[service_key] for service_key in services_of(view, key)]
    return claims(view.workloads[key], services, slice_ports(view, key))


@derived
def holder(view: View, key: WorkloadKey, place: int) -> Claim | None:
    """Return the earlier claim of another listener that prevents a workload's claim, or `None`."""
    return _first(view, key, place, at_home=True)


def _first(view: View, key: WorkloadKey, place: int, *, at_home: bool) -> Claim | None:
    """Return the first earlier claim in force that meets this one, in its own or in all other namespaces."""
    claim = claims_of(view, key)[place]
    for rival, there in _rivals(view, claim, _rank(view, key, place)):
        of_home = rival.workload.namespace == key.namespace
        # An earlier claim that is itself left out does not count. The recursion ends, because ranks fall.
        if of_home is at_home and _same_machine(rival, claim) and holder(view, *there) is None:
            return rival
    return None


def places(claim: Claim) -> tuple[Place, ...]:
    """Return the places at which a claim may meet others, as keys of the index."""
    result = [("on", _machine(claim), claim.port), ("at", claim.address, claim.port)]
    if ip_address(claim.address).is_unspecified:
        result.append(("everywhere", _machine(claim), claim.port))
    return tuple(result)


def _rivals(view: View, claim: Claim, own: Rank) -> Iterator[tuple[Claim, Spot]]:
    """Yield earlier claims that may be met: first those at the address, then those on all addresses."""
    machine, port = _machine(claim), claim.port
    if ip_address(claim.address).is_unspecified:
        yield from _earlier(view, ("on", machine, port), own)
        return
    yield from _earlier(view, ("at", claim.address, port), own)
    yield from _earlier(view, ("everywhere", machine, port), own)


def _earlier(view: View, place: Place, own: Rank) -> Iterator[tuple[Claim, Spot]]:
    for key in sorted(claimants(view).get(place, ()), key=lambda workload_key: _rank(view, workload_key, 0)):
        there = claims_of(view, key)
        for number in _numbers(view, key).get(place, ()):
            if _rank(view, key, number) < own:
                yield there[number], (key, number)


def _rank(view: View, key: WorkloadKey, number: int) -> Rank:
    return (*age(view.workloads[key].created), key, number)


@derived
def _numbers(view: View, key: WorkloadKey) -> Mapping[Place, tuple[int, ...]]:
    """Return the indexes of a workload's claims by place; there may be thousands of upstreams."""
    result: dict[Place, list[int]] = {}
    for number, claim in enumerate(claims_of(view, key)):
        for place in places(claim):
            result.setdefault(place, []).append(number)
    return MappingProxyType({place: tuple(numbers) for place, numbers in result.items()})


def claims(workload: Workload, services: list[Service], slice_ports: GivenPorts = ()) -> tuple[Claim, ...]:
    """Return the addresses and ports claimed by a workload's sidecar.

    Empty without a sidecar or in transparent interception.
    """
    if workload.uuid is None or not isinstance(workload.interception, Explicit):
        return ()
    key, host = workload.key, workload.address
    inbound = (
        [Claim(key, -1, host, port, host) for port, _, _ in served(services, workload.ports, slice_ports)]
        if workload.interception.application_address is not None
        else []
    )
    outbound = [
        Claim(key, index, upstream.local_address, upstream.local_port, host)
        for index, upstream in enumerate(sorted(workload.interception.upstreams))
    ]
    return (*inbound, *outbound)


def _places(view: View, key: WorkloadKey) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(place for claim in claims_of(view, key) for place in places(claim)))


claimants: Final = IN_VIEW.derived_index("claims by place", workloads, _places)
"""The workloads with a claim at a place."""


def _machine(claim: Claim) -> str:
    """Return the name of a claim's machine."""
    # All workloads with a loopback address run on one machine, for example in a local demo.
    return "loopback" if ip_address(claim.host).is_loopback else claim.host


def _same_machine(one: Claim, other: Claim) -> bool:
    """Return whether two claims of one address and port meet.

    Loopback and unspecified addresses differ between machines.
    """
    if one.workload == other.workload or one.host == other.host:
        return True
    local = [ip_address(address) for address in (one.address, other.address)]
    # A routable address belongs to one machine. Loopback and 0.0.0.0 exist on each machine, so equal claims
    # need not meet.
    if not any(item.is_loopback or item.is_unspecified for item in local):
        return True
    return all(ip_address(address).is_loopback for address in (one.host, other.host))
