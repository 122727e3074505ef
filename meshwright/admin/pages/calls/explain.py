"""`/debug/explain`: the reasons for allowing or refusing a request, for page, socket and command line."""

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Final

from catalog.explain import (
    Enforcement,
    Explanation,
    OutsideExplanation,
    address_outside,
    call_to,
    call_to_service,
    concerned,
    enforcement_without_server,
    explain,
    explain_outside,
    in_the_mesh,
    standing,
)
from catalog.explain.enforcement import headline
from catalog.explain.sidecars import Sidecar
from catalog.oracle.decide import Request
from catalog.store.view import View
from meshwright.admin.jsonable import Json, jsonable
from meshwright.admin.pages.calls.fields import (
    QueryError,
    only_policy,
    read_header,
    read_pair,
    read_port,
    steps_in_json,
)
from meshwright.admin.pages.calls.gateway import edge, read_edge
from meshwright.admin.pages.calls.relevant_objects import deciding
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import (
    Namespace,
    ServiceAccountName,
    ServiceName,
    is_dns_subdomain,
)
from meshwright.mesh.policies.callers import Client, Outsider
from meshwright.mesh.problems.problem import Problems
from meshwright.mesh.service import ServiceKey
from meshwright.specs.values.references import parse_address

USAGE: Final = (
    "?from=<namespace>/<service account>&to=<namespace>/<service>:<port>&method=GET&path=/&header=name: value"
    ", or from outside the mesh ?gateway=<namespace>/<gateway>:<port>&host=shop.example&method=GET&path=/"
)


_CLIENT: Final = "<namespace>/<service account>"
_CALLER: Final = (
    f"{_CLIENT}, or outside the mesh <IP>[,tls][,name=<name in its certificate>][,server=<requested "
    "server name>]"
)
_CALLED: Final = "<namespace>/<service>:<port>, or outside the mesh <IP or host>:<port>"


def read_request(query: Mapping[str, str], headers: Iterable[str]) -> Request:
    """Read a request from a query and headers of the form `name: value`. Raises QueryError.

    `from` is `<namespace>/<service account>`, or a caller outside the mesh (`_CALLER`). `to` is
    `<namespace>/<service>:<port>`. `method` is GET by default. `path` is `/` by default, and has the form of
    an HTTP/1.1 request target: a path, an http URL, or `*`. Without a host header, the host is that of most
    clients: the service's name and namespace, with the port unless it is 80; for example `store.shop:8080`.
    """
    client = _client(query.get("from", ""))
    called = query.get("to", "")
    rest, _, number = called.rpartition(":")
    port = read_port("to", called, number, _CALLED)
    namespace, name = read_pair("to", rest, _CALLED)
    path = query.get("path") or "/"
    if not path.startswith("/") and "://" not in path and path != "*":
        raise QueryError(f"path is {path[:200]!r}: must begin with /, or be a URL")
    given = [read_header(header) for header in headers]
    if not any(item.lower() in ("host", ":authority") for item, _ in given):
        given.append(("host", f"{name}.{namespace}" + ("" if number == "80" else f":{number}")))
    return Request(
        client=client,
        service=ServiceKey(Namespace(namespace), ServiceName(name)),
        port=port,
        method=(query.get("method") or "GET").upper(),
        path=path,
        headers=tuple(given),
    )


def _client(text: str) -> Client:
    """Return the caller in the parameter `from`: an identity or an outside client. Raises QueryError."""
    address, *lines = text.split(",")
    socket_address = parse_address(address)
    if socket_address is None:
        namespace, account = read_pair("from", text, _CALLER if lines else _CLIENT)
        return ServiceIdentity(Namespace(namespace), ServiceAccountName(account))
    words = dict(item.partition("=")[::2] for item in lines)
    if unknown := words.keys() - {"tls", "name", "server"}:
        raise QueryError(f"from is {text[:200]!r}: {min(unknown)[:50]!r} is unknown; must be {_CALLER}")
    return Outsider(socket_address, words.get("name", ""), bool(words), words.get("server", "").lower())


def read_outside(view: View, query: Mapping[str, str], headers: Iterable[str]) -> OutsideExplanation | None:
    """Explain a request to a destination outside the mesh. Raises QueryError.

    `to` is `<IP address>:<port>`, `<host>:<port>`, or the `<namespace>/<service>:<port>` of a Service outside
    the mesh. Returns None for a Service of the mesh. An address or a host of the mesh is an error, which
    names its owner.
    """
    called = query.get("to", "")
    if (outside_explanation := _service_outside(view, query, tuple(headers))) is not None:
        return outside_explanation
    try:
        where = HostPort.parse(called)
        where = HostPort(_as_sent(where.host), where.port)
    except ValueError:
        return None
    namespace, account = read_pair("from", query.get("from", ""), _CLIENT)
    if where.port < 1:
        raise QueryError(f"to is {called[:200]!r}: the port must be 1 to 65535")
    client = ServiceIdentity(Namespace(namespace), ServiceAccountName(account))
    if whose := in_the_mesh(view, where, client):
        raise QueryError(f"to is {called[:200]!r}: {whose}")
    given = tuple(map(read_header, headers))
    method, path = (query.get("method") or "GET").upper(), query.get("path") or "/"
    return explain_outside(view, client, where, call_to(view, client, where, method, path, given))


def _service_outside(
    view: View, query: Mapping[str, str], headers: tuple[str, ...]
) -> OutsideExplanation | None:
    """Explain a request to a Service outside the mesh; return None for other destinations."""
    if not {"/", ":"} <= set(query.get("to", "")):
        return None
    request = read_request(query, headers)
    client = request.identity
    address = None if client is None else address_outside(view, client, request.service, request.port)
    if client is None or address is None:
        return None
    where = HostPort(str(address), request.port)
    given = tuple(map(read_header, headers))
    asked = call_to(view, client, where, request.method, request.path, given)
    return explain_outside(view, client, where, call_to_service(view, client, request.service, where, asked))


def _as_sent(host: str) -> str:
    """Return a host as it appears in packets.

    An IPv4-mapped IPv6 address becomes an IPv4 address. Another host is a DNS name, in lower case. Raises
    ValueError for an invalid name.
    """
    try:
        address = ip_address(host)
    except ValueError:
        if not is_dns_subdomain(host.lower()) or "." not in host:  # a Service whose namespace is missing
            raise
        return host.lower()
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def outside(view: View, outside_explanation: OutsideExplanation) -> dict[str, Json]:
    """Return the explanation of a request to an address outside the mesh, with the same fields as others.

    The state of sidecars is not evaluated; `/debug/proxy` shows whether they are in step.
    """
    return {
        "from": str(outside_explanation.client),
        "to": str(outside_explanation.where),
        "method": "",
        "path": "",
        "headers": [],
        "answer": outside_explanation.answer.value,
        "policy": outside_explanation.answer.value,
        **only_policy("a destination outside the mesh"),
        "headline": outside_explanation.answer.value,
        "because": [str(key) for key in outside_explanation.because],
        "backends": [],
        "steps": steps_in_json(outside_explanation.steps),
        "objects": deciding(view, outside_explanation.steps, outside_explanation.because),
        "missing": jsonable(outside_explanation.missing),
        "besides": [],
    }


def by_policy(
    view: View, query: Mapping[str, str], headers: Iterable[str], problems: Problems = ()
) -> dict[str, Json] | None:
    """Return the explanation of a request whose sidecars are not compared. Raises QueryError.

    Such a request is to a gateway, or to a destination outside the mesh. Returns None for other requests.
    `problems` are those of the mesh.
    """
    given = tuple(headers)
    if (at_edge := read_edge(view, query, given, problems)) is not None:
        return edge(view, at_edge)
    if (outside_explanation := read_outside(view, query, given)) is not None:
        return outside(view, outside_explanation)
    return None


def answer(
    view: View, query: Mapping[str, str], headers: Iterable[str], problems: Problems = ()
) -> dict[str, Json]:
    """Return the explanation of one request as JSON, by policy alone. Raises QueryError."""
    given = tuple(headers)
    if (found := by_policy(view, query, given, problems)) is not None:
        return found
    explained = explain(view, read_request(query, given))
    return document(view, explained, enforcement_without_server(explained.decision))


def explained(view: View, request: Request) -> tuple[Explanation, tuple[ProxyName, ...]]:
    """Return the explanation of a request by policy, and the names of the sidecars on the path."""
    explanation = explain(view, request)
    return explanation, concerned(view, request, explanation.decision)


def compared_document(
    view: View, explanation: Explanation, sidecars: Mapping[ProxyName, Sidecar]
) -> dict[str, Json]:
    """Return an explanation as JSON, compared with the state of the sidecars on the path of the request."""
    return document(view, explanation, standing(view, explanation.request, explanation.decision, sidecars))


def document(view: View, explanation: Explanation, stands: Enforcement) -> dict[str, Json]:
    """Return an explanation as JSON.

    `policy` is the answer of policy. `answer` is the answer in force, or the answer of policy if the former
    is unknown. `objects` are the involved objects in force (see `deciding`). `missing` are manifests that
    would allow the request, once the conditions in `besides` are met.
    """
    asked = explanation.request
    return {
        "from": str(asked.client),
        "to": f"{asked.service}:{asked.port}",
        "method": asked.method,
        "path": asked.path,
        "headers": [list[Json](header) for header in asked.headers],
        "answer": stands.decision.answer.value,
        "policy": explanation.decision.answer.value,
        "in_force": stands.in_force.value,
        "in_force_because": list[Json](stands.because),
        "headline": headline(stands, explanation.decision),
        "because": [str(key) for key in explanation.decision.because],
        "backends": [
            {
                "service": str(share.service),
                "weight": share.weight,
                "admitted": [str(identity) for identity in share.admitted],
                "refused": [str(identity) for identity in share.refused],
            }
            for share in stands.decision.shares
        ],
        "steps": steps_in_json(explanation.steps),
        "objects": deciding(view, explanation.steps, explanation.decision.because),
        "missing": jsonable(explanation.missing),
        "besides": list[Json](explanation.besides),
    }
