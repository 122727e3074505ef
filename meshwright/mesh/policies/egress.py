"""What may leave the mesh: OSM's Egress as a value, and which names a host's pattern covers."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.policies.smi import PolicyKey

ANY_HOST: Final = "*"
_BELOW: Final = "*."


class EgressProtocol(enum.StrEnum):
    """What is spoken to a host outside, as far as that decides by what it is told from others.

    HTTP: by the host that each request names. HTTPS: by the name that the client asks for in TLS, which is
    not looked into. TCP, TCP_SERVER_FIRST: by address and port alone.
    """

    HTTP = "http"
    HTTPS = "https"
    TCP = "tcp"
    TCP_SERVER_FIRST = "tcp-server-first"

    @property
    def is_tcp(self) -> bool:
        """Say whether nothing of what is sent is looked at."""
        return self in (EgressProtocol.TCP, EgressProtocol.TCP_SERVER_FIRST)


@dataclass(frozen=True, slots=True, order=True)
class EgressPort:
    """A port outside, and what is spoken there."""

    number: Port
    protocol: EgressProtocol


@dataclass(frozen=True, slots=True)
class Egress:
    """policy.openservicemesh.io Egress: these identities may call these hosts and addresses outside the mesh.

    `hosts` are names in the DNS in lower case, addresses, or `*.` and a name: all names below it. `networks`
    are ranges of addresses of either family; where there are any, what is called must be in one.
    `route_groups` are HTTPRouteGroups of its namespace, any of whose matches a request must fit; empty is
    every request. `limits` is an UpstreamTrafficSetting of its namespace, for calls to the host that it is
    for. All sequences are sorted.
    """

    key: PolicyKey
    sources: tuple[ServiceIdentity, ...]
    ports: tuple[EgressPort, ...]
    hosts: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    route_groups: tuple[str, ...] = ()
    limits: str | None = None


def covers(pattern: str, name: str) -> bool:
    """Say whether a pattern (`example.com`, `*.example.com`, `*`) is for a name, or for all of another one.

    As Envoy has it, for hosts and in TLS: `*.example.com` is for names below it at any depth, and not for
    `example.com`.
    """
    if pattern in (ANY_HOST, name):
        return True
    end = pattern[1:]
    return pattern.startswith(_BELOW) and name.endswith(end) and len(name) > len(end)


def patterns(name: str) -> Iterator[str]:
    """Yield every host that would cover a name, as `covers` has it: itself, those above it, and `*`."""
    yield ANY_HOST
    yield name
    bare = name.removeprefix(_BELOW)
    labels = bare.split(".")
    for at in range(1 if bare == name else 0, len(labels)):
        yield _BELOW + ".".join(labels[at:])


def is_wildcard(host: str) -> bool:
    """Say whether a host is a pattern for many names."""
    return host.startswith(_BELOW)
