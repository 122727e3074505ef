"""Decision about one call out of the mesh, by the text of Egress: a part of the oracle.

An Egress for the client and the port allows, by the protocol of the port:

- tcp, tcp-server-first: every connection to an address in the ranges.
- https: TLS for one of the hosts, to the ranges; for any name if there are no hosts.
- http: requests for one of the hosts, and fitting the matches if the Egress names HTTPRouteGroups. With
  ranges they go to the original destination in a range, for any host if there are no hosts. Without ranges
  they go to the address in DNS; a wildcard, which DNS cannot resolve, is ignored.

Ranges hold for every protocol; without ranges every address is allowed. Hosts of the mesh are ignored. On
ports where servers speak first TLS names are not read. A request refused for its host stays refused; with
passthrough all other traffic goes to the original destination.

Written from docs/policy/osm.md; no code is shared with `catalog.policy.objects.egress`.
"""

import enum
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network
from typing import Final

from catalog.oracle.decide import Answer, offered
from catalog.oracle.request.paths import LocalReply, hidden_dots
from catalog.oracle.request.request import Request, fits, passed, path_of
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.workloads import backing
from catalog.relations.membership import service_of_the_mesh
from catalog.store.osm import egresses_by_source
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import EGRESS
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.egress import Egress, EgressProtocol
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import EscapedSlashes, Protocol, ServiceKey


class ClientProtocol(enum.StrEnum):
    """First data of a client on a connection: a request in plain text, TLS, or anything else."""

    HTTP = "http"
    TLS = "tls"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """A call out of the mesh to `address`, `None` if unknown.

    `host` is the host in the request, without port, or the server name in TLS, or empty.
    """

    client: ServiceIdentity
    port: Port
    speaks: ClientProtocol
    host: str = ""
    address: IpAddress | None = None
    method: str = "GET"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class OutsideDecision:
    """The outcome, the allowing Egresses (kind and key, sorted), and the target of the call.

    With `by_dns` the call goes to the host's address in DNS, else to the original destination. DEPENDS: on
    the address.
    """

    answer: Answer
    because: tuple[ObjectKey, ...] = ()
    by_dns: bool = False


def decide_outside(view: View, call: OutsideCall) -> OutsideDecision:
    """Decide a call out of the mesh. Pure; whether the call reaches a sidecar at all is not considered."""
    if call.address is not None:
        return _decide(view, call, inside=True)
    inside, elsewhere = (_decide(view, call, inside=item) for item in (True, False))
    # The address is unknown, so the call is judged twice: with an address in every range, and in none.
    return elsewhere if inside.answer is elsewhere.answer else replace(inside, answer=Answer.DEPENDS)


def _decide(view: View, call: OutsideCall, *, inside: bool) -> OutsideDecision:
    """Decide a call out of the mesh.

    `inside` is the assumption whether an unknown address is in each range.
    """
    here = [
        (egress, port.protocol)
        for egress in egresses_by_source(view).lookup(call.client)
        for port in egress.ports
        if port.number == call.port and _in_range(egress, call.address, inside=inside)
    ]
    # First, because a rule for TCP admits every byte at the port, whatever other Egresses require.
    if tcp := [egress for egress, protocol in here if protocol.is_tcp]:
        return _passes(tcp)
    blind = speaks_first(view, call.client, call.port)
    if call.speaks is ClientProtocol.TLS and not blind:
        https = [egress for egress, protocol in here if protocol is EgressProtocol.HTTPS]
        if named := [egress for egress in https if not egress.hosts or _names(view, egress, call)]:
            return _passes(named)
    http = [egress for egress, protocol in here if protocol is EgressProtocol.HTTP]
    if call.speaks is ClientProtocol.HTTP and http and not (blind and view.config.egress):
        return _of_http(view, call, http)
    return OutsideDecision(Answer.ALLOWED if view.config.egress else Answer.UNREACHABLE)


def _of_http(view: View, outside_call: OutsideCall, http: list[Egress]) -> OutsideDecision:
    call = replace(
        outside_call, host=outside_call.host.removesuffix(".")
    )  # with a final dot (DNS root) it is the same host
    ranged = [
        egress for egress in http if egress.networks and (not egress.hosts or _names(view, egress, call))
    ]
    exact = [egress for egress in http if not egress.networks and _names(view, egress, call, exactly=True)]
    if not ranged and not exact:
        if view.config.egress:
            return OutsideDecision(Answer.ALLOWED)
        known = any(egress.networks or _hosts(view, egress, call.client) for egress in http)
        return OutsideDecision(Answer.REFUSED if known else Answer.UNREACHABLE)
    rest = (*((name, item) for name, item in call.headers if name.lower() != "host"), ("host", call.host))
    sent = Request(call.client, _NOBODY, call.port, call.method, call.path, rest)
    request = passed(sent, EscapedSlashes.KEEP, view.settings.long_lived.upgrades)
    if isinstance(request, LocalReply):
        return OutsideDecision(Answer.REFUSED)
    # Without matches no rule reads the path, so hidden dot segments do no harm.
    judged = any(egress.route_groups for egress in (*ranged, *exact))
    if judged and hidden_dots(path_of(request).encode("utf-8", "surrogateescape")):
        return OutsideDecision(Answer.REFUSED)
    for those, by_dns in ((ranged, False), (exact, True)):
        if admitting := [egress for egress in those if _fits(view, egress, request)]:
            return replace(_passes(admitting), by_dns=by_dns)
    return OutsideDecision(Answer.REFUSED)


def speaks_first(view: View, client: ServiceIdentity, port: Port) -> bool:
    """Return whether a server sends the first bytes of a connection to this port, as with MySQL.

    An Egress for the client, or a service that the client may call, declares this protocol for the port.
    """
    answer = (
        egress_port
        for egress in of_port(view, client, port)
        for egress_port in egress.ports
        if egress_port.number == port
    )
    if any(egress_port.protocol is EgressProtocol.TCP_SERVER_FIRST for egress_port in answer):
        return True
    there = ((key, service.port(port)) for key, service in view.services.items())
    return any(
        here is not None
        and spoken(here, backing(view, key)) is Protocol.TCP_SERVER_FIRST
        and offered(view, Request(client, key, port), here)
        for key, here in there
    )


def of_port(view: View, client: ServiceIdentity, port: Port) -> tuple[Egress, ...]:
    """Return the Egresses with rules for a client at a port, sorted."""
    egresses = egresses_by_source(view).lookup(client)
    return tuple(egress for egress in egresses if any(port == at.number for at in egress.ports))


_NOBODY: Final = ServiceKey(Namespace(""), ServiceName(""))


def _passes(by: list[Egress]) -> OutsideDecision:
    keys = {ObjectKey.from_name(EGRESS, egress.key) for egress in by}
    return OutsideDecision(Answer.ALLOWED, tuple(sorted(keys)))


def _in_range(egress: Egress, address: IpAddress | None, *, inside: bool) -> bool:
    if not egress.networks or address is None:
        return inside or not egress.networks
    return any(ip_address(address) in ip_network(network) for network in egress.networks)


def _hosts(view: View, egress: Egress, client: ServiceIdentity) -> list[str]:
    """Return an Egress's hosts outside the mesh; wildcards only if the Egress has ranges."""
    ours = [host for host in egress.hosts if service_of_the_mesh(view, host, client.namespace) is None]
    return ours if egress.networks else [item for item in ours if not item.startswith("*")]


def _names(view: View, egress: Egress, call: OutsideCall, *, exactly: bool = False) -> bool:
    """Return whether an Egress names the host of a call, exactly or by a wildcard."""
    host = call.host.lower()
    for item in egress.hosts:
        if service_of_the_mesh(view, item, call.client.namespace) is not None:
            continue
        if item == host or (
            not exactly and item.startswith("*.") and host.endswith(item[1:]) and host != item[1:]
        ):
            return True
    return False


def _fits(view: View, egress: Egress, request: Request) -> bool:
    """Return whether a request fits any match of an Egress's groups; missing groups are ignored."""
    if not egress.route_groups:
        return True
    keys = (PolicyKey(egress.key.namespace, route_group) for route_group in egress.route_groups)
    groups = (http_route_groups(view).get(key) for key in keys)
    return any(fits(match, request) for group in groups if group is not None for match in group.matches)
