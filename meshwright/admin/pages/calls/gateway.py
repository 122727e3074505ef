"""Explanation of a request from outside to a gateway, from a query and as JSON."""

from collections.abc import Iterable, Mapping
from typing import Final

from catalog.explain import EdgeExplanation, default_port, explain_edge
from catalog.explain.enforcement import EnforcementState
from catalog.oracle.edge import EdgeRequest
from catalog.store.view import View
from meshwright.admin.jsonable import Json, jsonable
from meshwright.admin.pages.calls.fields import QueryError, read_header, read_pair, steps_in_json
from meshwright.admin.pages.calls.relevant_objects import deciding
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problems

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
    if not named:
        return None
    rest, colon, number = named.partition(":")
    namespace, name = read_pair("gateway", rest, _GATEWAY)
    if colon and not (number.isascii() and number.isdigit() and 1 <= int(number[:6]) <= 65535):
        raise QueryError(f"gateway is {named[:200]!r}: must be {_GATEWAY}")
    key = PolicyKey(Namespace(namespace), name)
    port = Port(int(number)) if number else default_port(view, key) or Port(80)
    given = [read_header(header) for header in headers]
    path = query.get("path") or "/"
    _, is_url, rest = path.partition("://")
    where, _, below = rest.partition("/")
    named_hosts = [value for item, value in given if item.lower() == "host"]
    called = _without_port(query.get("host") or where)
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


def _without_port(text: str) -> str:
    host, _, port = text.lower().rpartition(":")
    return host if port.isdigit() else text.lower()


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
        "in_force": EnforcementState.NOT_ASKED.value,
        "in_force_because": ["only policy was evaluated"],
        "headline": explanation.headline,
        "because": [str(key) for key in explanation.because],
        "backends": [],
        "steps": steps_in_json(explanation.steps),
        "objects": deciding(view, explanation.steps, explanation.because),
        "missing": jsonable(explanation.missing),
        "besides": [],
    }
