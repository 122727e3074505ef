"""What a group of proxies may call outside the mesh, in mesh words: ports, ranges of addresses, hosts.

Where several ranges have an address the narrowest decides, and has all that the wider ones let pass: so a
proxy that looks for the narrowest, as Envoy does, never misses what another Egress says.
"""

from dataclasses import dataclass, field, replace

from meshwright.mesh.names import Port
from meshwright.mesh.policies.limits import ConnectionLimits
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.service import ExternalHost
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once


@dataclass(frozen=True, slots=True)
class OutsideRoute:
    """Requests that fit any of `matches` (None: all) go to the host, wherever the DNS says that it is.

    Without a host they go where they were going. `limits` are of calls to the host.
    """

    matches: tuple[HTTPMatch, ...] | None
    host: ExternalHost | None = None
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)


@dataclass(frozen=True, slots=True)
class OutsideHost:
    """What becomes of requests for a host; the first route that fits decides, and what fits none is refused.

    `name` is a name in lower case or an address, `*.` and a name for all below it, or `*` for all that no
    other one has. The host with the longest name that covers a request's decides, and it alone.
    """

    name: str
    routes: tuple[OutsideRoute, ...]


@dataclass(frozen=True, slots=True)
class OutsideRange:
    """What passes at a port to addresses in these networks; without any, to all that no other range has.

    `connections`: all of them, and nothing in them is looked at; there is nothing else then. `server_names`:
    TLS that asks for such a name (`*`: any), to where it was going. `hosts`: requests in plain text.
    """

    networks: tuple[str, ...] = ()
    connections: bool = False
    server_names: tuple[str, ...] = ()
    hosts: tuple[OutsideHost, ...] = ()


@hashed_once
@dataclass(frozen=True, slots=True)
class OutsidePort(CachedHash):
    """A port outside at which something may be called; `by` are the Egresses that say so, sorted.

    `told_apart`: requests are told from whatever else is sent there, for that passes too. `server_first`:
    servers speak first there, so that nothing waits for what clients send.
    """

    port: Port
    ranges: tuple[OutsideRange, ...]
    told_apart: bool = False
    server_first: bool = False
    by: tuple[PolicyKey, ...] = ()

    @property
    def reads_tls(self) -> bool:
        """Say whether it must be seen which name a client asks for in TLS."""
        return any(each.server_names for each in self.ranges)

    @property
    def without_routes(self) -> "OutsidePort":
        """The same without what only requests are asked for, and by whom it is."""
        ranges = (replace(each, hosts=_SOME if each.hosts else ()) for each in self.ranges)
        return replace(self, ranges=tuple(ranges), by=())


_SOME = (OutsideHost("*", ()),)
"""That there are hosts."""
