"""Problems of Egresses: missing objects, hosts of the mesh, and ports where hosts are not checked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from typing import Final

from catalog.lint.budget import Budget, within
from catalog.lint.codes import Code
from catalog.lint.wording import Place, Suggestions, listed, meant, problem_of
from catalog.policy.outbound import visible
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.membership import belongs_to_the_mesh, service_of_the_mesh
from catalog.relations.outside import service_called, services_by_port, setting_named
from catalog.store.inventory import by_identity
from catalog.store.osm import egresses_by_source, settings
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import EGRESS
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.egress import Egress, EgressPort, EgressProtocol
from meshwright.mesh.policies.limits import RateLimits
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.service import Protocol, ServiceKey
from meshwright.mesh.values.networks import NetworkSet
from meshwright.mesh.workload import Explicit

_HOSTS: Final = "spec.hosts"
_ADDRESSES: Final = "spec.ipAddresses"


def problems(view: View, egress: Egress) -> Iterator[Problem]:
    """Yield the problems of an Egress."""
    key = ObjectKey.from_name(EGRESS, egress.key)
    yield from _groups(view, key, egress)
    yield from _limits(view, key, egress)
    place = Place(view, key)
    mine = "hosts of the mesh"
    yield from within(place, _HOSTS, mine, partial(_hosts_of_the_mesh, view, key, egress))
    yield from _addresses_of_the_mesh(view, key, egress)
    yield from _sources(view, key, egress)
    looked_for = "ports where hosts are not checked"
    yield from within(place, "spec.ports", looked_for, partial(_overruled, view, key, egress))


def _overruled(view: View, key: ObjectKey, egress: Egress, budget: Budget) -> Iterator[Problem]:
    beside = tuple(_beside(view, egress, budget))
    alone = tuple(item for item in beside if item[1])
    for port in egress.ports:
        first = tuple(_speaking_first(view, port)) if port.protocol is EgressProtocol.HTTPS else ()
        result = _overruling(view, port, beside if first else alone, first, budget)
        if not port.protocol.is_tcp and (why := next(result, "")):
            yield problem_of(
                view, key, Code.EGRESS_OVERRULED, Severity.WARNING, "spec.ports", _port_text(port), why
            )


def _groups(view: View, key: ObjectKey, egress: Egress) -> Iterator[Problem]:
    known = http_route_groups(view)
    names = Suggestions(
        lambda: (policy_key.name for policy_key in known if policy_key.namespace == key.namespace)
    )
    for name in egress.route_groups:
        group = known.get(PolicyKey(key.namespace, name))
        if group is not None and group.matches:
            continue
        what, do = f"does not exist or is invalid{names.hint(name)}", "Create or correct the group"
        if group is not None:
            what, do = "has no matches", "Add a match to the group"
        wanted = f"HTTPRouteGroup {key.namespace}/{name} {what}, so it is not in force. {do}."
        yield problem_of(view, key, Code.EGRESS_MATCH, Severity.ERROR, "spec.matches", name, wanted)


def _limits(view: View, key: ObjectKey, egress: Egress) -> Iterator[Problem]:
    if egress.limits is None:
        return
    named, setting = f"UpstreamTrafficSetting {key.namespace}/{egress.limits}", setting_named(view, egress)
    by_http = any(port.protocol is EgressProtocol.HTTP for port in egress.ports) and not egress.networks
    if setting is None:
        there = [policy_key.name for policy_key in settings(view) if policy_key.namespace == key.namespace]
        wanted = (
            f"{named} does not exist or is invalid{meant([egress.limits], there)}, so calls by this Egress "
            "are not limited. Create or correct the object."
        )
    elif setting.host not in egress.hosts or not by_http:
        wanted = (
            f"{named} is for {setting.host}, so calls by this Egress are not limited: limits apply only to "
            "hosts that the Egress lists, without ipAddresses, at ports with the protocol http. Correct the "
            "host or the Egress."
        )
    elif setting.rates != RateLimits():
        wanted = (
            f"{named} limits rates, which are ignored here, because the sidecars of called workloads count "
            "them and servers outside the mesh do not have a sidecar. Limit "
            "connections instead."
        )
    else:
        return
    yield problem_of(view, key, Code.EGRESS_LIMITS, Severity.WARNING, "spec.matches", egress.limits, wanted)


def _hosts_of_the_mesh(view: View, key: ObjectKey, egress: Egress, budget: Budget) -> Iterator[Problem]:
    namespaces = sorted({source.namespace for source in egress.sources})
    for host in egress.hosts:
        # A name with a dot has its own namespace, so it is the same Service for all sources.
        asking = namespaces[:1] if "." in host else namespaces
        budget.spend(len(asking))
        result = (service_of_the_mesh(view, host, namespace) for namespace in asking)
        if service := next(filter(None, result), None):
            yield _is_ours(view, key, _HOSTS, host, service)


def _addresses_of_the_mesh(view: View, key: ObjectKey, egress: Egress) -> Iterator[Problem]:
    numbers = {port.number for port in egress.ports}
    for item in egress.networks:
        network = ip_network(item)
        # Only ranges of a single address are left out of the policy (`catalog.policy.objects.egress`).
        if network.num_addresses == 1:
            address = str(network.network_address)
            called = service_called(view, address, key.namespace)
            if called is None or not any(view.services[called].port(number) for number in numbers):
                continue
            if belongs_to_the_mesh(view, called):
                yield _is_ours(view, key, _ADDRESSES, item, called)
            elif client := next((one for one in egress.sources if called in visible(view, one)), None):
                wanted = (
                    f"The Egress ignores this address for {client}, because the mesh's policies "
                    f"decide how {client} may call Service {called}. Remove the address, or use a "
                    "TrafficTarget."
                )
                yield problem_of(view, key, Code.EGRESS_TO_MESH, Severity.WARNING, _ADDRESSES, item, wanted)


def _is_ours(view: View, key: ObjectKey, field: str, value: str, service: ServiceKey) -> Problem:
    wanted = (
        f"The Egress ignores this entry, because it is Service {service} of the mesh, and "
        "only the mesh's policies admit calls to that Service. Remove the entry, or use a "
        "TrafficTarget."
    )
    return problem_of(view, key, Code.EGRESS_TO_MESH, Severity.WARNING, field, value, wanted)


def _sources(view: View, key: ObjectKey, egress: Egress) -> Iterator[Problem]:
    workloads = [workload for source in egress.sources for workload in by_identity(view).lookup(source)]
    if egress.sources and not workloads:
        sources = ", ".join(map(str, egress.sources))
        wanted = (
            "Workloads with these ServiceAccounts do not exist, so this Egress is not in force. "
            "Create the workload, or correct the names."
        )
        yield problem_of(view, key, Code.EGRESS_SOURCES, Severity.WARNING, "spec.sources", sources, wanted)
    explicit = [
        workload for workload in workloads if workload.uuid and isinstance(workload.interception, Explicit)
    ]
    if explicit:
        first = min(workload.key for workload in explicit)
        others = f" and {len(explicit) - 1} more" if len(explicit) > 1 else ""
        wanted = (
            f"Workload {first}{others} uses explicit interception, so its calls to anything but "
            "its upstreams bypass the sidecar and this Egress. Use "
            "transparent interception, or remove the source."
        )
        names = ", ".join(sorted({str(workload.identity) for workload in explicit}))
        yield problem_of(view, key, Code.EGRESS_EXPLICIT, Severity.WARNING, "spec.sources", names, wanted)


@dataclass(frozen=True, slots=True)
class _PortClaim:
    """TCP ports of an Egress by number; `meets` is True if the ranges overlap with the checked Egress."""

    by: str
    where: str
    ports: Mapping[Port, tuple[EgressPort, ...]]
    meets: bool


_Beyond = tuple[tuple[ServiceIdentity, tuple[_PortClaim, ...]], ...]
"""The sources of an Egress, each with its Egresses not counted for an earlier source."""


def _beside(
    view: View, egress: Egress, budget: Budget
) -> Iterator[tuple[ServiceIdentity, tuple[_PortClaim, ...]]]:
    """Yield each source of an Egress with the Egresses of the same source not yielded for an earlier one."""
    known: set[PolicyKey] = set()
    ranges = NetworkSet(map(ip_network, egress.networks))
    for source in egress.sources:
        port_claims: list[_PortClaim] = []
        for other in egresses_by_source(view).lookup(source):
            budget.spend()
            # Each Egress once, although it may have many of the sources: otherwise the work would be their
            # product.
            if other.key not in known:
                known.add(other.key)
                budget.spend(len(other.ports))
                port_claims.append(_of_other(egress, ranges, other))
        yield source, tuple(port_claims)


def _of_other(egress: Egress, ranges: NetworkSet, other: Egress) -> _PortClaim:
    ports: dict[Port, tuple[EgressPort, ...]] = {}
    for port in other.ports:
        if port.protocol.is_tcp:
            ports[port.number] = (*ports.get(port.number, ()), port)
    return _PortClaim(
        "This Egress" if other.key == egress.key else f"Egress {other.key}",
        f"to {listed(other.networks)}" if other.networks else "to every address",
        ports,
        not egress.networks
        or not other.networks
        or ranges.meets(NetworkSet(map(ip_network, other.networks))),
    )


def _overruling(
    view: View, port: EgressPort, beyond: _Beyond, first: Sequence[ServiceKey], budget: Budget
) -> Iterator[str]:
    """Yield the reasons why sidecars do not check the hosts of a port.

    `first` are the Services whose servers speak first at this port.
    """
    for source, others in beyond:
        budget.spend(1 + len(others) + len(first))
        for other in others:
            for egress_port in other.ports.get(port.number, ()):
                if (
                    egress_port.protocol is EgressProtocol.TCP_SERVER_FIRST
                    and port.protocol is EgressProtocol.HTTPS
                ):
                    yield (
                        f"{other.by} declares that servers speak first at this port, so sidecars "
                        "cannot read host names there. Use different ports."
                    )
                elif other.meets:
                    yield (
                        f"{other.by} admits every connection of {source} {other.where}, so "
                        "sidecars do not look at the hosts there. Remove one of the two ports."
                    )
        seen = visible(view, source) if first else ()
        if service := next((service_key for service_key in first if service_key in seen), None):
            yield (
                f"{source} may call Service {service}, whose servers speak first at this port, so "
                "sidecars cannot read host names there. Use different ports."
            )


def _speaking_first(view: View, port: EgressPort) -> Iterator[ServiceKey]:
    """Yield the Services with server-first TCP at the number of an Egress port, sorted."""
    for key in sorted(services_by_port(view).get(port.number, ())):
        here = view.services[key].port(port.number)
        if here and protocol_of(view, key, here) is Protocol.TCP_SERVER_FIRST:
            yield key


def _port_text(port: EgressPort) -> str:
    return f"{port.number} {port.protocol}"
