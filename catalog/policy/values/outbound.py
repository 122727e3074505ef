"""Calls made by a group of proxies: service ports with their route tables."""

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.route_actions import Forward, HttpVersion, WeightedBackend
from catalog.policy.values.route_table import RouteEntry
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.policies.retries import Retries
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import EscapedSlashes, Protocol, Upstream
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once


class CachedBackends(CachedHash):
    """Base of OutboundService: it provides the slots for the hash and the backends."""

    __slots__ = ("_backends",)


@hashed_once
@dataclass(frozen=True, slots=True)
class OutboundService(CachedBackends):
    """A port of a service, or of a host outside the mesh, that the workload may call.

    `addresses` are the called addresses in transparent interception, `listen` the proxy's own in explicit.
    `port` is the service's port; for a headless service the endpoints' port, because it is not translated.
    The first entry of `table` that fits a request decides; a request without a fitting entry gets 404.
    `retries` come from a Retry of the workload.
    """

    upstream: Upstream
    port: Port
    protocol: Protocol
    table: tuple[RouteEntry, ...]
    addresses: tuple[IpAddress, ...] = ()
    listen: tuple[SocketAddress, ...] = ()
    escaped_slashes: EscapedSlashes = EscapedSlashes.REJECT
    retries: Retries | None = None

    @property
    def fails_over(self) -> bool:
        """True if any entry repeats failed requests farther away."""
        return any(isinstance(entry.action, Forward) and entry.action.fails_over for entry in self.table)

    @property
    def faulty(self) -> bool:
        """True if any entry injects faults."""
        return any(entry.faulty for entry in self.table)

    @property
    def cross_origin(self) -> bool:
        """True if any entry allows cross-origin requests of browsers."""
        return any(entry.treatment is not None and entry.treatment.cors is not None for entry in self.table)

    @property
    def reads_tls(self) -> bool:
        """True if connections have different entries by the server name for which they ask."""
        return not self.protocol.is_http and any(entry.server_names for entry in self.table)

    def backends(self) -> tuple[WeightedBackend, ...]:
        """Return one backend for each place to which any entry leads; those of mirrors are included.

        Collected once, because a proxy may have hundreds of services, of which a change concerns one.
        """
        try:
            return self._backends  # type: ignore[attr-defined, no-any-return]  # a slot, and no field
        except AttributeError:
            backends = tuple({_place(backend): backend for backend in self._every_backend()}.values())
            object.__setattr__(self, "_backends", backends)
            return backends

    def _every_backend(self) -> Iterator[WeightedBackend]:
        # Entries share actions, because an object makes an entry for each of its matches.
        for action in {id(entry.action): entry.action for entry in self.table}.values():
            if isinstance(action, Forward):
                yield from action.backends()


def _place(backend: WeightedBackend) -> tuple[Upstream, str, bool, HttpVersion, PolicyKey | None]:
    """Return all that identifies the destination of a share."""
    return backend.upstream, backend.target_port, backend.as_called, backend.version, backend.tls
