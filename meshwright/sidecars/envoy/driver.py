"""The Envoy driver's implementation of the driver contract."""

from catalog.policy.values.parts import GatewayPorts, IdentityCertificate, Roots
from catalog.policy.values.proxy import ProxyPolicy
from meshwright.sidecars.contract.contexts import ControllerContext
from meshwright.sidecars.contract.driver import Capability, Credentials, Piece, Pieces
from meshwright.sidecars.contract.health import HealthProbes
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.contract.pod import InjectorContext
from meshwright.sidecars.contract.reasons import Reason
from meshwright.sidecars.envoy.empty_resources import empty
from meshwright.sidecars.envoy.pieces import parts
from meshwright.sidecars.envoy.reasons import reason
from meshwright.sidecars.envoy.security.secrets import (
    client_authorities,
    edge_certificate,
    service_certificate,
    trust_root,
)
from meshwright.sidecars.injection import patching
from meshwright.sidecars.injection.sidecar import agent_sidecar
from meshwright.sidecars.layout import ADS_PORT
from xds.protocol.resources.resource import LISTENER, TYPES, Reference, Resource, TypeUrl


class EnvoyDriver:
    """Driver for Envoy 1.40, with this project's ADS server as control plane."""

    @property
    def name(self) -> str:
        """Return `envoy`."""
        return "envoy"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Return every capability."""
        return frozenset(Capability)

    @property
    def proxy_server_port(self) -> int:
        """Return the ADS port."""
        return ADS_PORT

    @property
    def types(self) -> frozenset[TypeUrl]:
        """Return the five types of xDS resources."""
        return frozenset(TYPES)

    @property
    def ready_type(self) -> TypeUrl:
        """Return the type of listeners.

        An accepted response, even an empty one, means that Envoy is configured.
        """
        return LISTENER

    def pieces(self, policy: ProxyPolicy) -> tuple[Piece | Pieces, ...]:
        """Return the pieces for listeners, routes, clusters and endpoints (`sidecars.envoy.pieces`)."""
        return parts(policy)

    def credentials(self, credentials: Credentials) -> tuple[Piece, ...]:
        """Return the pieces of the secrets: service certificate, roots, and the Secrets of a gateway."""
        certificate, domain = credentials.certificate, credentials.trust_domain
        return (
            Piece(service_certificate, (certificate,), IdentityCertificate(certificate.identity)),
            Piece(trust_root, (domain, credentials.trust_bundle), Roots(domain)),
            *(Piece(edge_certificate, (secret,), GatewayPorts()) for secret in credentials.secrets),
            *(Piece(client_authorities, (found,), GatewayPorts()) for found in credentials.authorities),
        )

    def empty(self, reference: Reference) -> Resource | None:
        """Return an empty resource of this type and name (`meshwright.sidecars.envoy.empty_resources`)."""
        return empty(reference)

    def reason(self, said: str) -> Reason:
        """Return the kind of reason in Envoy's rejection message (`meshwright.sidecars.envoy.reasons`)."""
        return reason(said)

    async def start(self, context: ControllerContext) -> HealthProbes:
        """Start to serve ADS, with the debug page `/debug/xds`; return the health probes."""
        from meshwright.sidecars.envoy.control_plane import start  # gRPC is slow to import

        return await start(context)

    def patch(self, context: InjectorContext) -> Pod:
        """Return the pod with the agent and Envoy in a sidecar, and its traffic redirected through Envoy."""
        return patching.patch(context, agent_sidecar(context))
