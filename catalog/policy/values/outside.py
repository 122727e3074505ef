"""Calls out of the mesh in words of the mesh: ports, ranges of addresses, hosts.

If an address is in several ranges, the narrowest decides, and includes all that the wider ones allow. A proxy
that looks for the narrowest range, as Envoy does, therefore never misses another Egress.
"""

from dataclasses import dataclass, field, replace

from meshwright.mesh.names import Port
from meshwright.mesh.policies.limits import ConnectionLimits
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.service import ExternalHost
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once


@dataclass(frozen=True, slots=True)
class OutsideRoute:
    """Requests that fit any of `matches` (`None`: all) go to the host, at its address in DNS.

    Without a host they go to their original destination. `limits` hold for calls to the host.
    """

    matches: tuple[HTTPMatch, ...] | None
    host: ExternalHost | None = None
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)


@dataclass(frozen=True, slots=True)
class OutsideHost:
    """Routes of requests for a host; the first that fits decides, and requests that fit none are refused.

    `name` is a lower-case name or an address, `*.example.com` for all names below, or `*` for all other
    hosts. Only the host with the longest matching name counts.
    """

    name: str
    routes: tuple[OutsideRoute, ...]


@dataclass(frozen=True, slots=True)
class OutsideRange:
    """Allowed traffic at a port to addresses in these networks; without any, to all other addresses.

    With `connections` all connections pass unread, and the other attributes are empty. `server_names` are TLS
    names (`*`: any) whose connections go to their original destination. `hosts` are requests in plain text.
    """

    networks: tuple[str, ...] = ()
    connections: bool = False
    server_names: tuple[str, ...] = ()
    hosts: tuple[OutsideHost, ...] = ()


@hashed_once
@dataclass(frozen=True, slots=True)
class OutsidePort(CachedHash):
    """A port with allowed traffic out of the mesh; `by` are the Egresses, sorted.

    With `told_apart` requests must be distinguished from other data, which passes as well. With
    `server_first` servers speak first, so the proxy must not wait for the client's data.
    """

    port: Port
    ranges: tuple[OutsideRange, ...]
    told_apart: bool = False
    server_first: bool = False
    by: tuple[PolicyKey, ...] = ()

    @property
    def reads_tls(self) -> bool:
        """True if the TLS server name of clients must be read."""
        return any(outside_range.server_names for outside_range in self.ranges)

    @property
    def without_routes(self) -> "OutsidePort":
        """The same port without attributes that only routes and provenance need."""
        ranges = (
            replace(outside_range, hosts=_SOME if outside_range.hosts else ())
            for outside_range in self.ranges
        )
        return replace(self, ranges=tuple(ranges), by=())


_SOME = (OutsideHost("*", ()),)
"""Placeholder for any hosts."""
