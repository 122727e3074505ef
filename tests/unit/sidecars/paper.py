"""A driver that does nothing, and keeps the contract."""

from catalog.policy.values.proxy import ProxyPolicy
from meshwright.sidecars.contract.contexts import ControllerContext
from meshwright.sidecars.contract.driver import Capability, Credentials, Piece
from meshwright.sidecars.contract.health import HealthProbe, HealthProbes
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.contract.pod import InjectorContext
from meshwright.sidecars.contract.reasons import Reason
from xds.protocol.resources.resource import Reference, Resource, TypeUrl


class Paper:
    """Sends nothing, listens nowhere, leaves pods as they are."""

    name = "paper"
    capabilities = frozenset({Capability.HTTP_ROUTES})
    proxy_server_port = 1
    types: frozenset[TypeUrl] = frozenset()
    ready_type = TypeUrl("paper")

    def pieces(self, policy: ProxyPolicy) -> tuple[Piece, ...]:
        """Send nothing."""
        del policy
        return ()

    def credentials(self, credentials: Credentials) -> tuple[Piece, ...]:
        """Send nothing."""
        del credentials
        return ()

    def reason(self, said: str) -> Reason:
        """Return that it is the content."""
        del said
        return Reason.CONTENT

    def empty(self, reference: Reference) -> Resource | None:
        """Put nothing in its place."""
        del reference
        return None

    async def start(self, context: ControllerContext) -> HealthProbes:
        """Pretend to listen."""
        probe = HealthProbe(context.port or self.proxy_server_port)
        return HealthProbes(probe, probe, probe)

    def patch(self, context: InjectorContext) -> Pod:
        """Return the pod as it is."""
        return context.pod
