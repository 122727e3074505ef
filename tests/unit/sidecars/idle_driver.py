"""Driver for tests that does nothing but implements the contract."""

from catalog.policy.values.proxy import ProxyPolicy
from meshwright.sidecars.contract.contexts import ControllerContext
from meshwright.sidecars.contract.driver import Capability, Credentials, Piece
from meshwright.sidecars.contract.health import HealthProbe, HealthProbes
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.contract.pod import InjectorContext
from meshwright.sidecars.contract.reasons import Reason
from xds.protocol.resources.resource import Reference, Resource, TypeUrl


class IdleDriver:
    """Driver that sends nothing, listens nowhere and leaves pods unchanged."""

    name = "idle"
    capabilities = frozenset({Capability.HTTP_ROUTES})
    proxy_server_port = 1
    types: frozenset[TypeUrl] = frozenset()
    ready_type = TypeUrl("idle")

    def pieces(self, policy: ProxyPolicy) -> tuple[Piece, ...]:
        """Return no pieces."""
        del policy
        return ()

    def credentials(self, credentials: Credentials) -> tuple[Piece, ...]:
        """Return no pieces."""
        del credentials
        return ()

    def reason(self, said: str) -> Reason:
        """Return `CONTENT` for every rejection."""
        del said
        return Reason.CONTENT

    def empty(self, reference: Reference) -> Resource | None:
        """Return no replacement."""
        del reference
        return None

    async def start(self, context: ControllerContext) -> HealthProbes:
        """Return probes of a port without listening there."""
        probe = HealthProbe(context.port or self.proxy_server_port)
        return HealthProbes(probe, probe, probe)

    def patch(self, context: InjectorContext) -> Pod:
        """Return the pod unchanged."""
        return context.pod
