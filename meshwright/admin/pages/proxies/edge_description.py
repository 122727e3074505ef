"""A gateway proxy's configuration for clients outside the mesh, as the mesh describes it."""

from collections.abc import Iterable, Iterator
from typing import Final

from catalog.policy.values.edge import EdgeChain, EdgePort
from meshwright.admin.jsonable import Document
from meshwright.admin.pages.proxies import route_lines

_ALL: Final = "all other names"


def listeners(ports: Iterable[EdgePort]) -> list[Document]:
    """Describe, line by line, the connections that are accepted at each port, by server name."""
    return [_listener(port, chain) for port in ports for chain in port.chains]


def routes(ports: Iterable[EdgePort]) -> list[Document]:
    """Describe, line by line, what happens to requests for each host, and to connections."""
    return [line for port in ports for chain in port.chains for line in _routes(port, chain)]


def _listener(port: EdgePort, chain: EdgeChain) -> Document:
    # Without hosts the proxy looks at connections alone.
    hosts = None if chain.hosts is None else [host.hostname for host in chain.hosts]
    accepted = _connections(chain) or "connections"
    if hosts is not None:
        accepted += f", with requests for {', '.join(map(_shown, hosts))}"
    return {
        "direction": "edge",
        "gateway": str(port.gateway),
        "port": port.port,
        "addresses": [str(address) for address in port.listen],
        "server_names": [] if chain.tls is None else [chain.tls.server_name],
        "hosts": list(hosts or ()),
        "text": f"edge {_place(port)}: {accepted}",
    }


def _routes(port: EdgePort, chain: EdgeChain) -> Iterator[Document]:
    place: Document = {"direction": "edge", "gateway": str(port.gateway), "port": port.port}
    called = f"edge {_place(port)}"
    if connections := _connections(chain):
        called += f", {connections}"
    if chain.hosts is None:
        yield from route_lines.lines(() if chain.entry is None else (chain.entry,), place, called)
        if chain.entry is None:
            yield {**place, "requests": None, "text": f"{called}: connections are closed"}
    for host in chain.hosts or ():
        where, at_host = f"{called}, host {_shown(host.hostname)}", {**place, "host": host.hostname}
        yield from route_lines.lines(host.table, at_host, where)
        if not host.table:
            yield {**at_host, "requests": None, "text": f"{where}: everything -> answer 404"}


def _connections(chain: EdgeChain) -> str:
    """Return the TLS connections of a chain in words; empty without TLS."""
    if chain.tls is None:
        return ""
    shown = ", ".join(map(str, chain.tls.certificates))
    treated = f"ended with Secret {shown}" if shown else "passed on"
    if chain.tls.clients is not None:
        treated += f", client certificates validated ({chain.tls.clients})"
    return f"TLS for {_shown(chain.tls.server_name)} {treated}"


def _shown(name: str) -> str:
    return name or _ALL


def _place(port: EdgePort) -> str:
    return f"port {port.port} of Gateway {port.gateway}"
