"""Control plane of the Envoy driver: the ADS server, with the service for tapped requests."""

from functools import partial

from meshwright.sidecars.contract.contexts import ControllerContext
from meshwright.sidecars.contract.events import Event
from meshwright.sidecars.contract.health import HealthProbe, HealthProbes
from meshwright.sidecars.envoy.security.acknowledged_secrets import TakenSecrets
from meshwright.sidecars.envoy.tap.access_log_service import METHOD, take_requests
from xds.server.ads import AdsServer
from xds.server.streams.call import alone


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

    def on_event(event: Event) -> None:
        del event  # every event may affect any client, so all are authenticated again
        server.recheck()

    unsubscribe = context.events.subscribe(on_event)

    async def close(grace: float) -> None:
        # Events are followed to the end, because a revocation must end a stream that is served meanwhile.
        try:
            await server.stop(grace, lifetime.spread_seconds)
        finally:
            unsubscribe()

    context.debug.streams(server.statuses)
    context.secrets(TakenSecrets(server.takers, context.catalog.snapshot).all)
    lifetime.spawn("ADS server", lifetime.until_over(close))
    probe = HealthProbe(port, counted=True)
    return HealthProbes(liveness=probe, readiness=probe, startup=probe)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
