"""Listeners of a gateway at its proxies: ports with filter chains, which have route tables or backends."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.route_actions import Forward, RouteAction, WeightedBackend
from catalog.policy.values.route_table import RouteEntry
from meshwright.mesh.gateway.gateways import ValidationMode
from meshwright.mesh.names import Port
from meshwright.mesh.policies.client_traffic import DEFAULTS, PORT_DEFAULTS, ClientSettings, PortSettings
from meshwright.mesh.policies.rate_services import RateLimitService
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once


@hashed_once
@dataclass(frozen=True, slots=True)
class EdgeHost(CachedHash):
    """Requests for a host name: the first entry of `table` that fits decides; without one the answer is 404.

    `hostname` is exact, a suffix such as `*.shop.example`, or empty for all other names.
    """

    hostname: str
    table: tuple[RouteEntry, ...]


@dataclass(frozen=True, slots=True)
class EdgeTls:
    """TLS connections for a server name: exact, a suffix such as `*.shop.example`, or empty for all others.

    The proxy ends TLS with one of `certificates`, which are names of Secrets. Without any the proxy passes
    the connections on unread. `clients` is the mode of validation of client certificates, by the
    EdgeAuthorities of the port; None if clients need no certificate.
    """

    server_name: str = ""
    certificates: tuple[PolicyKey, ...] = ()
    clients: ValidationMode | None = None


@dataclass(frozen=True, slots=True)
class EdgeAuthorities:
    """CA certificates (PEM) by which a port of a gateway validates the certificates of its clients."""

    gateway: PolicyKey
    port: Port
    pem: str = field(repr=False)


@hashed_once
@dataclass(frozen=True, slots=True)
class EdgeChain(CachedHash):
    """Clients of a port whose connections `tls` describes, or all clients of the port for None.

    `hosts` are for requests, sorted by host name; the most specific one for the name of a request
    decides. None stands for connections without visible requests: they get the action of `entry`, and are
    closed without an entry. `settings` are the limits of these clients.
    """

    tls: EdgeTls | None = None
    hosts: tuple[EdgeHost, ...] | None = None
    entry: RouteEntry | None = None
    settings: ClientSettings = DEFAULTS

    @property
    def fails_over(self) -> bool:
        """True if any entry repeats failed requests farther away."""
        return any(isinstance(action, Forward) and action.fails_over for action in self._actions())

    @property
    def cross_origin(self) -> bool:
        """True if any entry allows cross-origin requests of browsers."""
        return any(entry.treatment is not None and entry.treatment.cors is not None for entry in self.entries)

    @property
    def rate_services(self) -> tuple[RateLimitService, ...]:
        """The rate limit services that are asked about these clients; about requests only if visible."""
        limits = self.settings.rates.limits
        return (limits if self.hosts is not None else limits.of_connections).services

    @property
    def entries(self) -> Iterator[RouteEntry]:
        """The entries of all hosts, or the entry of the connections."""
        if self.entry is not None:
            yield self.entry
        for host in self.hosts or ():
            yield from host.table

    def backends(self) -> Iterator[WeightedBackend]:
        """Yield the backends of all entries, possibly repeated; those of mirrors are included."""
        # Entries share actions, because a rule makes an entry for each of its matches.
        for action in {id(action): action for action in self._actions()}.values():
            if isinstance(action, Forward):
                yield from action.backends()

    def _actions(self) -> Iterator[RouteAction]:
        return (entry.action for entry in self.entries)


@hashed_once
@dataclass(frozen=True, slots=True)
class EdgePort(CachedHash):
    """A port of a gateway; `listen` are the proxy's own addresses.

    `chains` are sorted by server name. A connection gets the most specific one, and is closed without any.
    `settings` are those of all connections.
    """

    gateway: PolicyKey
    port: Port
    chains: tuple[EdgeChain, ...]
    listen: tuple[SocketAddress, ...] = ()
    settings: PortSettings = PORT_DEFAULTS

    @property
    def entries(self) -> Iterator[RouteEntry]:
        """The entries of all chains."""
        for chain in self.chains:
            yield from chain.entries
