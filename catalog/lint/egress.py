"""Problems of Egresses: what they name in vain, what is the mesh's, and what overrules them."""

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.told import meant, say
from catalog.policy.outbound import protocol_of, visible
from catalog.relations.outside import service_called, services_by_port, setting_named
from catalog.store.inventory import by_identity
from catalog.store.osm import egresses_by_source, settings
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from mesh.egress import Egress, EgressPort, EgressProtocol
from mesh.identity import ServiceIdentity
from mesh.kinds import EGRESS
from mesh.limits import RateLimits
from mesh.objects import ObjectKey
from mesh.policy import PolicyKey
from mesh.problems import Problem, Severity
from mesh.service import Protocol, ServiceKey
from mesh.workload import Explicit

_HOSTS: Final = "spec.hosts"
_ADDRESSES: Final = "spec.ipAddresses"


def problems(view: View, egress: Egress) -> Iterator[Problem]:
    """Yield the problems of an Egress."""
    key = ObjectKey.of(EGRESS, egress.key)
    yield from _groups(view, key, egress)
    yield from _limits(view, key, egress)
    yield from _of_the_mesh(view, key, egress)
    yield from _sources(view, key, egress)
    for port in egress.ports:
        if not port.protocol.is_tcp and (why := next(_overruling(view, egress, port), "")):
            yield say(view, key, Code.EGRESS_OVERRULED, Severity.WARNING, "spec.ports", _said(port), why)


def _groups(view: View, key: ObjectKey, egress: Egress) -> Iterator[Problem]:
    known = http_route_groups(view)
    for name in egress.route_groups:
        group = known.get(PolicyKey(key.namespace, name))
        if group is not None and group.matches:
            continue
        there = [each.name for each in known if each.namespace == key.namespace] if group is None else []
        what = "does not exist or is refused" if group is None else "has no matches"
        wanted = f"HTTPRouteGroup {key.namespace}/{name} {what}{meant([name], there)}; "
        wanted += "no request is admitted by it"
        yield say(view, key, Code.EGRESS_MATCH, Severity.ERROR, "spec.matches", name, wanted)


def _limits(view: View, key: ObjectKey, egress: Egress) -> Iterator[Problem]:
    if egress.limits is None:
        return
    named, setting = f"UpstreamTrafficSetting {key.namespace}/{egress.limits}", setting_named(view, egress)
    by_http = any(each.protocol is EgressProtocol.HTTP for each in egress.ports) and not egress.networks
    if setting is None:
        there = [each.name for each in settings(view) if each.namespace == key.namespace]
        wanted = f"{named} does not exist or is refused{meant([egress.limits], there)}"
    elif setting.host not in egress.hosts or not by_http:
        wanted = (
            f"{named} is for {setting.host}; limits hold for hosts of an Egress, without ipAddresses, at "
            "ports of http"
        )
    elif setting.rates != RateLimits():
        wanted = f"{named} says rates, which the called count: outside the mesh nobody does"
        yield say(view, key, Code.EGRESS_LIMITS, Severity.WARNING, "spec.matches", egress.limits, wanted)
        return
    else:
        return
    wanted += "; its calls have no limits"
    yield say(view, key, Code.EGRESS_LIMITS, Severity.WARNING, "spec.matches", egress.limits, wanted)


def _of_the_mesh(view: View, key: ObjectKey, egress: Egress) -> Iterator[Problem]:
    namespaces = sorted({each.namespace for each in egress.sources})
    for host in egress.hosts:
        found = (service_called(view, host, each) for each in namespaces)
        if service := next(filter(None, found), None):
            yield _is_ours(view, key, _HOSTS, host, service)
    for each in egress.networks:
        network = ip_network(each)
        if network.num_addresses == 1:
            address = str(network.network_address)
            called = service_called(view, address, key.namespace)
            at = {port.port for port in view.services[called].ports} if called else set()
            if called and any(port.number in at for port in egress.ports):
                yield _is_ours(view, key, _ADDRESSES, each, called)


def _is_ours(view: View, key: ObjectKey, field: str, value: str, service: ServiceKey) -> Problem:
    wanted = f"this is Service {service} of the mesh, which policies let call and not an Egress: left out"
    return say(view, key, Code.EGRESS_TO_MESH, Severity.WARNING, field, value, wanted)


def _sources(view: View, key: ObjectKey, egress: Egress) -> Iterator[Problem]:
    workloads = [each for source in egress.sources for each in by_identity(view).found(source)]
    if egress.sources and not workloads:
        sources = ", ".join(map(str, egress.sources))
        wanted = "no workload has any of these ServiceAccounts; this Egress lets nobody's calls pass so long"
        yield say(view, key, Code.EGRESS_SOURCES, Severity.WARNING, "spec.sources", sources, wanted)
    explicit = [each for each in workloads if each.uuid and isinstance(each.interception, Explicit)]
    if explicit:
        first = min(each.key for each in explicit)
        others = f" and {len(explicit) - 1} more" if len(explicit) > 1 else ""
        wanted = (
            f"workload {first}{others} is intercepted explicitly: what is no upstream of it goes past its "
            "sidecar, and this Egress says nothing of it"
        )
        names = ", ".join(sorted({str(each.identity) for each in explicit}))
        yield say(view, key, Code.EGRESS_EXPLICIT, Severity.WARNING, "spec.sources", names, wanted)


def _overruling(view: View, egress: Egress, port: EgressPort) -> Iterator[str]:
    """Yield why the hosts of a port are not looked at, or not everywhere."""
    for source in egress.sources:
        for other in egresses_by_source(view).found(source):
            for each in other.ports:
                if each.number != port.number or not each.protocol.is_tcp:
                    continue
                by = "this Egress" if other.key == egress.key else f"Egress {other.key}"
                if each.protocol is EgressProtocol.TCP_SERVER_FIRST and port.protocol is EgressProtocol.HTTPS:
                    yield f"{by} says that servers speak first at this port: no name can be read there"
                elif _meet(egress, other):
                    where = f"to {', '.join(other.networks)}" if other.networks else "to every address"
                    yield f"{by} lets every connection of {source} pass {where}: nothing is looked at there"
        if (service := _server_first(view, source, port)) and port.protocol is EgressProtocol.HTTPS:
            yield (
                f"{source} may call Service {service}, which speaks first at this port: "
                "no name can be read there"
            )


def _meet(one: Egress, other: Egress) -> bool:
    """Say whether both are for some address."""
    pairs = ((ip_network(mine), ip_network(its)) for mine in one.networks for its in other.networks)
    return not one.networks or not other.networks or any(mine.overlaps(its) for mine, its in pairs)


def _server_first(view: View, source: ServiceIdentity, port: EgressPort) -> ServiceKey | None:
    seen = visible(view, source)
    for key in sorted(services_by_port(view).get(port.number, ())):
        here = view.services[key].port(port.number)
        if here and key in seen and protocol_of(view, key, here) is Protocol.TCP_SERVER_FIRST:
            return key
    return None


def _said(port: EgressPort) -> str:
    return f"{port.number} {port.protocol}"
