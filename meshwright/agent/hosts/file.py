"""The hosts file with the names of callable services.

The names are taken from Envoy's accepted listeners, so a name exists exactly as long as calls are accepted,
and only Envoy must be queried. In explicit interception a name resolves to the proxy's local address for the
service; of two such addresses the first one counts. An example of a line is `10.0.0.7 cart.shop cart.shop.svc
cart.shop.svc.cluster.local`.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from certs.state import links
from meshwright.agent.envoy.listeners import Listener
from meshwright.mesh.names import IpAddress, Namespace
from meshwright.mesh.service import ServiceKey
from meshwright.sidecars.envoy.listeners.chain_names import called_service

BEGIN: Final = (
    "# Services of the mesh, kept by meshwright agent: what stands between these lines is replaced."
)
END: Final = "# End of the services of the mesh."


def called(listeners: Iterable[Listener]) -> tuple[tuple[ServiceKey, tuple[IpAddress, ...]], ...]:
    """Return the callable services with their addresses, sorted.

    In explicit interception each service has one address.
    """
    addresses: dict[ServiceKey, set[IpAddress]] = {}
    for service, at in sorted(_places(listeners)):
        known = addresses.setdefault(service, set())
        if not known or at.matched:
            known.add(at.address)
    return tuple((service, tuple(sorted(addresses[service]))) for service in sorted(addresses))


def lines(
    result: Iterable[tuple[ServiceKey, tuple[IpAddress, ...]]], own: Namespace, cluster_domain: str
) -> tuple[str, ...]:
    """Return the lines of a hosts file.

    Services of the machine's own namespace also have their short name.
    """
    written = []
    for service, addresses in result:
        names = service.host_names(cluster_domain)
        if service.namespace == own:
            names = (service.name, *names)
        written += [f"{address} {' '.join(names)}" for address in addresses]
    return tuple(written)


def with_block(text: str, wanted: Iterable[str]) -> str:
    """Return a hosts file with these lines between BEGIN and END, or without a block if there are no lines.

    Every other line stays. Of a block without END only the BEGIN line is removed.
    """
    before, after = _around(text.splitlines())
    block = [BEGIN, *wanted, END]
    kept = [*before, *(block if len(block) > 2 else ()), *after]
    return "".join(f"{line}\n" for line in kept)


@dataclass(frozen=True, slots=True)
class HostsFile:
    """A hosts file, shared with other programs. Methods raise OSError.

    The file is written in place, because in a container the file is a mount, which a rename cannot replace.
    Another user's symbolic link is not followed, and only regular files are written (`certs.state.links`).
    """

    path: Path

    def put(self, wanted: Iterable[str]) -> bool:
        """Replace this program's block by the wanted lines; return whether the file changed."""
        with links.place(self.path) as (folder, name):
            descriptor = links.open_file(name, folder, 0o644, any_owner=True)
        with os.fdopen(descriptor, "r+b") as file:
            before = file.read()
            replaced = with_block(before.decode(), wanted).encode()
            if replaced == before:
                return False
            file.seek(0)
            file.write(replaced)
            file.truncate()
        return True


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """An address of a service, from a chain (`matched`) or else the listener's own."""

    address: IpAddress
    matched: bool


def _places(listeners: Iterable[Listener]) -> Iterator[tuple[ServiceKey, _Place]]:
    for listener in listeners:
        for chain in listener.chains:
            service = called_service(chain.name)
            if service is None:
                continue
            for address in chain.addresses:
                yield service, _Place(address, matched=True)
            if not chain.addresses and listener.address is not None:
                yield service, _Place(listener.address, matched=False)


def _around(result: list[str]) -> tuple[list[str], list[str]]:
    if BEGIN not in result:
        return result, []
    begin = result.index(BEGIN)
    rest = result[begin + 1 :]
    return result[:begin], rest[rest.index(END) + 1 :] if END in rest else rest
