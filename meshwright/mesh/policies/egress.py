"""Traffic out of the mesh: OSM's Egress as a value, and the matching of host patterns."""

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
    """Protocol of a host outside the mesh, as far as relevant for matching calls.

    - HTTP: by the host of each request.
    - HTTPS: by the requested name in TLS, which is not decrypted.
    - TCP, TCP_SERVER_FIRST: by address and port alone.
    """

    HTTP = "http"
    HTTPS = "https"
    TCP = "tcp"
    TCP_SERVER_FIRST = "tcp-server-first"

    @property
    def is_tcp(self) -> bool:
        """Return whether the proxy passes the traffic on as TCP, without inspection."""
        return self in (EgressProtocol.TCP, EgressProtocol.TCP_SERVER_FIRST)


@dataclass(frozen=True, slots=True, order=True)
class EgressPort:
    """A port of hosts outside the mesh, with the protocol."""

    number: Port
    protocol: EgressProtocol


@dataclass(frozen=True, slots=True)
class Egress:
    """policy.openservicemesh.io Egress: these identities may call these hosts and networks outside the mesh.

    - `hosts`: DNS names in lower case, addresses, or `*.` with a name, for all names below.
    - `networks`: networks of either family; unless empty, the destination must be in one.
    - `route_groups`: HTTPRouteGroups of the namespace; a request must match any of their matches. Empty for
      all.
    - `limits`: UpstreamTrafficSetting of the namespace, for calls to the host of this setting.
    All sequences are sorted.
    """

    key: PolicyKey
    sources: tuple[ServiceIdentity, ...]
    ports: tuple[EgressPort, ...]
    hosts: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    route_groups: tuple[str, ...] = ()
    limits: str | None = None


def covers(pattern: str, name: str) -> bool:
    """Return whether a pattern (`example.com`, `*.example.com`, `*`) covers a name or a whole pattern.

    As in Envoy, for hosts and in TLS, `*.example.com` covers names below at any depth, but not `example.com`.
    """
    if pattern in (ANY_HOST, name):
        return True
    end = pattern[1:]
    return pattern.startswith(_BELOW) and name.endswith(end) and len(name) > len(end)


def patterns(name: str) -> Iterator[str]:
    """Yield every pattern that covers a name (see `covers`): the name, wildcards above, and `*`.

    For example, `a.b.org` gives `*`, `a.b.org`, `*.b.org` and `*.org`.
    """
    yield ANY_HOST
    yield name
    bare = name.removeprefix(_BELOW)
    labels = bare.split(".")
    # A wildcard is among its own patterns, a name is not below itself.
    for at in range(1 if bare == name else 0, len(labels)):
        yield _BELOW + ".".join(labels[at:])


def is_wildcard(host: str) -> bool:
    """Return whether a host is a pattern such as `*.example.com`."""
    return host.startswith(_BELOW)
