"""Conversion of a line of a sidecar's access log to a query for `explain`.

The line of a called sidecar has the caller's SPIFFE ID and the local address; the line of the caller's own
sidecar has a route and a cluster. Fields that the line lacks must be in the query.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from catalog.relations.attachment import parent_verdicts
from catalog.relations.backends.precedence import is_superseded
from catalog.relations.backends.targets import target_numbers
from catalog.relations.backends.workloads import services_of
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.store.inventory import by_address
from catalog.store.smi import splits
from catalog.store.view import View
from meshwright.admin.pages.calls.fields import QueryError
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE
from meshwright.mesh.names import IpAddress, Namespace, ServiceName, is_dns_label, is_dns_subdomain
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import Edge

OUTCOME: Final[tuple[str, ...]] = (
    "start_time",
    "response_code",
    "response_code_details",
    "policy",
    "policy_looked_for",
)
FIELDS: Final = (
    *OUTCOME,
    "caller",
    "local_address",
    "upstream_cluster",
    "route_name",
    "method",
    "path",
    "authority",
    "user_agent",
    "requested_server_name",
)
"""Keys that are read from a line; see `meshwright.sidecars.envoy.telemetry.access_log`."""

_LOCAL: Final = "|local"
_ROUTES: Final = {kind.name: kind for kind in (HTTP_ROUTE, GRPC_ROUTE)}
"""Kinds of routes by the first word of a route's name in a line."""


class LineError(QueryError):
    """Error for an invalid access-log line; the message describes a valid one."""


def read_line(text: str) -> dict[str, str]:
    """Return the known, non-empty fields of a line from a sidecar's access log. Raises LineError."""
    try:
        result = json.loads(text)
    except ValueError:
        result = None
    if not isinstance(result, dict) or not {"start_time", "local_address"} <= result.keys():
        raise LineError(
            "the line must be one of a sidecar's access log: a JSON object with start_time and local_address"
        )
    return {name: str(result[name]) for name in FIELDS if result.get(name) is not None}


@dataclass(frozen=True, slots=True)
class Question:
    """Query for `/debug/explain`, with the request's headers.

    `logged` has the response fields of the access log's line, for example `response_code`. The mapping is
    empty if the query was made without such a line.
    """

    query: Mapping[str, str]
    headers: tuple[str, ...]
    logged: Mapping[str, str] = field(default_factory=dict)


def question(view: View, query: Mapping[str, str], headers: Iterable[str]) -> Question:
    """Return a query completed by the line of an access log, if there is one; the query's own fields win.

    Raises LineError if the line lacks a required field, or names a service that no longer exists.
    """
    if not (text := query.get("line")):
        return Question(query, tuple(headers))
    line = read_line(text)
    given = tuple(headers)
    named = {item.partition(":")[0].strip().lower() for item in given}
    known = tuple(header for header in _headers(line) if header.partition(":")[0] not in named)
    outcome = {name: line[name] for name in OUTCOME if name in line}
    return Question(_completed(view, line, query), (*known, *given), outcome)


def _completed(view: View, line: Mapping[str, str], query: Mapping[str, str]) -> dict[str, str]:
    result = {name: line[name] for name in ("method", "path") if name in line}
    if at_gateway := _at_gateway(view, line, query):
        result |= at_gateway
    else:
        if not query.get("from"):
            result["from"] = _caller(line)
        if not query.get("to"):
            result["to"] = _called(view, line)
    return result | {name: value for name, value in query.items() if value and name != "line"}


def _at_gateway(view: View, line: Mapping[str, str], query: Mapping[str, str]) -> dict[str, str]:
    """Return gateway and server name of a line of a gateway's proxy; empty for a line of a sidecar.

    A client with a sidecar may call a gateway too: a query with the caller is about the line of that sidecar.
    """
    if query.get("from") or query.get("to"):
        return {}
    gateway = query.get("gateway") or _gateway_of(view, line)
    named = line.get("requested_server_name")
    return ({"gateway": gateway} | ({"host": named} if named else {})) if gateway else {}


def _gateway_of(view: View, line: Mapping[str, str]) -> str:
    """Return the gateway with the local address of a line, and its port; empty for other addresses."""
    where = _local(line)
    if where is None or "caller" in line:
        return ""
    served = [
        PolicyKey(workload.key.namespace, workload.interception.gateway)
        for workload in by_address(view).lookup(IpAddress(where.host))
        if isinstance(workload.interception, Edge)
    ]
    # Several gateways can share an address, with different ports.
    ranked = sorted(served, key=lambda key: (where.port not in _ports(view, key), key))
    return f"{ranked[0]}:{where.port}" if ranked else ""


def _ports(view: View, gateway: PolicyKey) -> set[int]:
    return {verdict.listener.port for verdict in listener_verdicts(view, gateway)}


def _local(line: Mapping[str, str]) -> HostPort | None:
    try:
        return HostPort.parse(line.get("local_address", ""))
    except ValueError:
        return None


def _headers(line: Mapping[str, str]) -> Iterator[str]:
    """Yield the request headers known from the log line; all others are unknown."""
    for name, header in (("authority", "host"), ("user_agent", "user-agent")):
        if name in line:
            yield f"{header}: {line[name]}"


def _caller(line: Mapping[str, str]) -> str:
    """Return the caller as `namespace/service account`, from the SPIFFE ID in the log line."""
    if "caller" not in line:
        raise LineError(
            "the log line does not name the caller: give --from if it is from the caller's own sidecar, or "
            "--gateway if it is from a gateway that does not have the address "
            f"{line.get('local_address', '')[:200]} any more"
        )
    _, _, path = line["caller"].removeprefix("spiffe://").partition("/")
    parts = path.split("/")
    # spiffe://<trust domain>/ns/<namespace>/sa/<service account>
    if len(parts) != 4 or (parts[0], parts[2]) != ("ns", "sa") or not is_dns_label(parts[1]):
        raise LineError(
            f"caller is {line['caller'][:200]!r}: must be spiffe://<trust "
            "domain>/ns/<namespace>/sa/<service account>"
        )
    return f"{parts[1]}/{parts[3]}"


def _called(view: View, line: Mapping[str, str]) -> str:
    """Return the called service and port as `namespace/service:port`, from the log line."""
    host = line.get("authority", "")
    cluster = line.get("upstream_cluster", "")
    inbound = "caller" in line or cluster.endswith(_LOCAL)
    result = sorted(_served_at(view, line) if inbound else _led_to(view, line, cluster))
    if not result:
        where = line.get("local_address", "") if inbound else line.get("route_name", "") or cluster
        raise LineError(
            f"no Service of the mesh is found at {where[:200]!r}: it may have been deleted since; give --to"
        )
    # Several services can share a workload and a port: the Host header selects one.
    name = host.partition(":")[0].partition(".")[0]
    key, port = next((item for item in result if item[0].name == name), result[0])
    return f"{key}:{port}"


def _served_at(view: View, line: Mapping[str, str]) -> Iterator[tuple[ServiceKey, int]]:
    """Yield the services and ports of the workload at the local address in the log line."""
    where = _local(line)
    if where is None:
        return
    for workload in by_address(view).lookup(IpAddress(where.host)):
        if is_superseded(view, workload):
            continue
        for key in services_of(view, workload.key):
            for port in view.services[key].ports:
                if where.port in target_numbers(view, workload, view.services[key], port):
                    yield key, port.port


def _led_to(view: View, line: Mapping[str, str], cluster: str) -> Iterator[tuple[ServiceKey, int]]:
    """Yield the services and ports called by the caller's own sidecar, by route, or for TCP by cluster."""
    kind, _, named = line.get("route_name", "").partition(":")
    backend, _, target = cluster.partition("|")
    if kind in _ROUTES:
        yield from _parents_of(view, kind, named)
        return
    key = _key(named if kind in ("service", "split") else backend)
    if key is None:
        return
    if kind == "split":
        split = splits(view).get(PolicyKey(key.namespace, str(key.name)))
        if split is None:
            return
        key = split.apex
    service = view.services.get(key)
    ports = service.ports if service is not None else ()
    fitting = [port for port in ports if port.target == target.partition("|")[0]]
    yield from ((key, service_port.port) for service_port in fitting or ports)


def _parents_of(view: View, kind: str, named: str) -> Iterator[tuple[ServiceKey, int]]:
    """Yield the services and ports at which a route is in force, by a name such as `shop/web/rule-1`."""
    key = _key(named.rpartition("/")[0])
    if key is not None:
        for verdict in parent_verdicts(view, ObjectKey.from_name(_ROUTES[kind], key)):
            yield from ((verdict.service, port) for port in verdict.ports)


def _key(text: str) -> ServiceKey | None:
    namespace, slash, name = text.partition("/")
    if not slash or not is_dns_label(namespace) or not is_dns_subdomain(name):
        return None
    return ServiceKey(Namespace(namespace), ServiceName(name))
