"""Explanation of a request from outside to a gateway, from a query and as JSON."""

from collections.abc import Iterable, Mapping
from typing import Final

from catalog.explain import EdgeExplanation, default_port, explain_edge
from catalog.oracle.edge import EdgeRequest
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
from meshwright.admin.pages.calls.relevant_objects import deciding
from meshwright.mesh.names import Namespace, Port, is_dns_subdomain
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problems
from meshwright.specs.values.references import parse_address

_GATEWAY: Final = "<namespace>/<gateway>[:<port>]"


def read_edge(
    view: View, query: Mapping[str, str], headers: Iterable[str], problems: Problems = ()
) -> EdgeExplanation | None:
    """Explain a request from outside to a gateway; return None without `gateway`. Raises QueryError.

    `gateway` is `<namespace>/<gateway>[:<port>]`; the port is that of the first listener by default. The host
    is `host`, or that of a URL as path. A header Host is for the request alone, as with curl, so the server
    name in TLS may be another one. `problems` are those of the mesh, which name refused objects.
    """
    named = query.get("gateway", "")
    _check_ends(query)
    if not named:
        return None
    rest, colon, number = named.partition(":")
    namespace, name = read_pair("gateway", rest, _GATEWAY)
    key = PolicyKey(Namespace(namespace), name)
    port = read_port("gateway", named, number, _GATEWAY) if colon else default_port(view, key) or Port(80)
    given = [read_header(header) for header in headers]
    path = query.get("path") or "/"
    _, is_url, rest = path.partition("://")
    where, _, below = rest.partition("/")
    named_hosts = [value for item, value in given if item.lower() == "host"]
    called = _host("path", path, where, "must have")
    if query.get("host"):
        called = _host("host", query["host"], query["host"], "must be")
    asked = EdgeRequest(
        key,
        port,
        _without_port(named_hosts[0]) if named_hosts else called,
        (query.get("method") or "GET").upper(),
        f"/{below}" if is_url else path,
        tuple(item for item in given if item[0].lower() != "host"),
        called,
    )
    return explain_edge(view, asked, problems)


def _check_ends(query: Mapping[str, str]) -> None:
    """Raise QueryError for a query that has both a gateway and the ends of a call, or a host alone."""
    if not query.get("gateway"):
        if query.get("host"):
            raise QueryError("host is for requests to a gateway: give gateway too")
    elif query.get("from") or query.get("to"):
        raise QueryError("gateway takes the place of from and to: give the one or the others")


def _host(field: str, text: str, host: str, must: str) -> str:
    """Return a host without its port; empty for an empty host. Raises QueryError."""
    called = _without_port(host)
    # Some hosts have underscores, which are valid in DNS although not in the names of hosts.
    is_name = is_dns_subdomain(called.replace("_", "a"))
    if host and not is_name and parse_address(called) is None:
        raise QueryError(f"{field} is {text[:200]!r}: {must} a host name, for example shop.example")
    return called


def _without_port(text: str) -> str:
    """Return a host or `host:port` in lower case and without the port; IPv6 addresses without brackets."""
    if parse_address(text) is not None:
        return text.lower()
    host, _, port = text.lower().rpartition(":")
    called = host if port.isdigit() else text.lower()
    return called[1:-1] if called.startswith("[") and called.endswith("]") else called


def edge(view: View, explanation: EdgeExplanation) -> dict[str, Json]:
    """Return the explanation of a request to a gateway, with the same fields as others.

    The state of the gateway's proxies is not evaluated.
    """
    asked = explanation.asked
    return {
        "from": "a client outside the mesh",
        "to": f"Gateway {asked.gateway}:{asked.port}",
        "method": asked.method,
        "path": f"{asked.host}{asked.path}",
        "headers": [list[Json](header) for header in asked.headers],
        "answer": explanation.answer.value,
        "policy": explanation.answer.value,
        **only_policy("a gateway"),
        "headline": explanation.headline,
        "because": [str(key) for key in explanation.because],
        "backends": [],
        "steps": steps_in_json(explanation.steps),
        "objects": deciding(view, explanation.steps, explanation.because),
        "missing": jsonable(explanation.missing),
        "besides": [],
    }
