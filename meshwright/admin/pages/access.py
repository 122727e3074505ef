"""Access page: the allowed requests of every identity to every service port, with the deciding objects."""

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.policy.access import FullAccess, MatchingAccess, NoAccess, grant
from catalog.policy.outbound import visible
from catalog.policy.route_table import table
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.permissive import is_permissive
from catalog.store.inventory import by_identity
from catalog.store.smi import targets_between
from catalog.store.view import View
from meshwright.admin.jsonable import Json
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import MESH_CONFIG
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.mesh.service import Protocol, Service, ServiceKey, ServicePort


@dataclass(frozen=True, slots=True)
class Call:
    """A pair of one calling identity and one service port."""

    source: ServiceIdentity
    service: Service
    port: ServicePort
    protocol: Protocol
    visible: bool
    """False if no policy object concerns the pair, so that every request is refused."""


@dataclass(frozen=True, slots=True)
class AccessGrant:
    """The requests allowed by one policy object, `by`; None as `matches` means every request."""

    by: str
    matches: tuple[HTTPMatch, ...] | None


def access_pairs(view: View, source: str | None = None) -> list[Json]:
    """Return a sorted record for every pair of identity and service port, or for one `source`.

    An identity is listed if it has a workload. `allowed` is true if any request may pass. On HTTP ports,
    `requests` are the allowed requests (`*` is every request). `by` are the objects that allow them. A
    request to the apex of a TrafficSplit counts as a request to its backends.
    """
    return [_record(view, call) for call in _calls(view, source)]


def _calls(view: View, wanted: str | None) -> Iterator[Call]:
    ports = [
        (service, port, protocol_of(view, key, port))
        for key, service in view.services.items()
        for port in service.ports
    ]
    for source in sorted(by_identity(view)):
        if wanted not in (None, str(source)):
            continue
        # Most pairs of a large mesh are not visible, and need no search for routes.
        seen = frozenset(visible(view, source))
        for service, port, protocol in ports:
            yield Call(source, service, port, protocol, service.key in seen)


def _record(view: View, call: Call) -> Json:
    access_grants = tuple(dict.fromkeys(_admitted(view, call))) if call.visible else ()
    return {
        "source": str(call.source),
        "destination_service": str(call.service.key),
        "port": call.port.port,
        "protocol": call.protocol.value,
        "allowed": bool(access_grants),
        "by": list[Json](sorted({access_grant.by for access_grant in access_grants})),
        "requests": list[Json](_requests(access_grants)) if call.protocol.is_http else None,
    }


def _admitted(view: View, call: Call) -> Iterator[AccessGrant]:
    key = call.service.key
    # Entries that differ in the treatment of requests have the same backends.
    entries = table(view, call.source, key, call.port)
    for backends in dict.fromkeys(entry.backends for entry in entries):
        for backend in backends:
            if not isinstance(backend.upstream, ServiceKey):
                continue
            behind = view.services[backend.upstream]
            # A backend with weight 0 gets no requests.
            for port in behind.ports_leading_to(backend.target_port) if backend.weight else ():
                for endpoint in endpoints(view, behind.key, port):
                    if endpoint.identity is not None:
                        yield from _by_target(view, call, endpoint.identity, endpoint.port)


def _by_target(view: View, call: Call, server: ServiceIdentity, called_at: Port) -> Iterator[AccessGrant]:
    if is_permissive(view, server.namespace):
        by = MESH_CONFIG if view.config.permissive else ObjectKey.of_namespace(server.namespace)
        yield AccessGrant(f"{by} (permissive)", None)
        return
    for target in targets_between(view).lookup((call.source, server)):
        match grant(view, target, called_at, call.protocol):
            case FullAccess():
                yield AccessGrant(f"TrafficTarget {target.key}", None)
            case MatchingAccess(matches):
                yield AccessGrant(f"TrafficTarget {target.key}", matches)
            case NoAccess():
                pass


def _requests(access_grants: tuple[AccessGrant, ...]) -> list[str]:
    shown: dict[str, None] = {}
    for access_grant in access_grants:
        for match in access_grant.matches if access_grant.matches is not None else (HTTPMatch(""),):
            shown[requests_of(match)] = None
    return list(shown)


def requests_of(match: HTTPMatch) -> str:
    """Return the requests of a match as one line: methods, path and headers, for example `GET /books.*`.

    `*` stands for any method or any path.
    """
    methods = ",".join(match.methods) or "*"
    headers = "".join(f" {header.name}={header.regex}" for header in match.headers)
    return f"{methods} {match.path_regex or '*'}{headers}"
