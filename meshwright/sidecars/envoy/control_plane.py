"""Control plane of the Envoy driver: the ADS server, with the service for tapped requests."""

import asyncio
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import partial

from meshwright.sidecars.contract.contexts import ControllerContext
from meshwright.sidecars.contract.events import CertificateRevoked, Event
from meshwright.sidecars.contract.health import HealthProbe, HealthProbes
from meshwright.sidecars.envoy.security.acknowledged_secrets import TakenSecrets
from meshwright.sidecars.envoy.tap.access_log_service import METHOD, take_requests
from xds.cache import NodeKey
from xds.server.ads import AdsServer
from xds.server.streams.call import alone


class ClientCheck:
    """Check of clients after events, one check for all events of a turn of the event loop.

    For example, another server may have revoked a thousand certificates since the last news of it, and ten
    thousand clients may be connected. A revocation concerns the clients of one name alone.
    """

    def __init__(self, recheck: Callable[[AbstractSet[NodeKey] | None], None]) -> None:
        self._recheck = recheck
        self._nodes: set[NodeKey] | None = set()
        self._is_due = False

    def on_event(self, event: Event) -> None:
        """Check the clients that an event may affect, before the next turn of the event loop."""
        match event:
            case CertificateRevoked() if self._nodes is not None:
                self._nodes.add(NodeKey(event.common_name))
            case _:
                self._nodes = None
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._check)

    def _check(self) -> None:
        nodes, self._nodes, self._is_due = self._nodes, set(), False
        self._recheck(nodes)


async def start(context: ControllerContext) -> HealthProbes:
    """Start to serve ADS, until the context's lifetime is over; return the health probes.

    Raises ListenError.
    """
    clients, lifetime = context.clients, context.lifetime
    server = AdsServer(
        context.catalog,
        clients.authenticator,
        context.server_certificate,
        observer=clients.observer,
        limits=clients.limits,
        hold_reason=clients.held,
        further={METHOD: alone(partial(take_requests, context.tapped))},
        prepare=clients.prepare,
    )
    port = await server.start(f"{_bracketed(context.host)}:{context.port}")

    check = ClientCheck(server.recheck)
    unsubscribe = context.events.subscribe(check.on_event)

    async def close(grace: float) -> None:
        # Events are followed to the end, because a revocation must end a stream that is served meanwhile.
        try:
            await server.stop(grace, lifetime.spread_seconds)
        finally:
            unsubscribe()

    context.debug.streams(server.statuses)
    context.movable(server)
    context.secrets(TakenSecrets(server.takers, context.catalog.snapshot).all)
    lifetime.spawn("ADS server", lifetime.until_over(close))
    probe = HealthProbe(port, counted=True)
    return HealthProbes(liveness=probe, readiness=probe, startup=probe)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
