"""The document driver's implementation of the driver contract."""

from dataclasses import replace
from typing import Final

from catalog.policy.values.parts import IdentityCertificate
from catalog.policy.values.proxy import ProxyPolicy
from meshwright.mesh.values.cached_hash import SharedTuple
from meshwright.sidecars.contract.contexts import ControllerContext
from meshwright.sidecars.contract.driver import Capability, Credentials, Piece
from meshwright.sidecars.contract.health import HealthProbes
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.contract.pod import InjectorContext
from meshwright.sidecars.contract.reasons import Reason
from meshwright.sidecars.document.translate import CREDENTIALS, DOCUMENT, credentials, document
from meshwright.sidecars.injection import names, patching
from meshwright.sidecars.injection.sidecar import Sidecar, control_plane
from xds.protocol.resources.resource import Reference, Resource, TypeUrl

PORT: Final = 15129


class DocumentDriver:
    """Driver for proxies that read JSON and enforce identities by port.

    The user supplies the sidecar's image.
    """

    @property
    def name(self) -> str:
        """Return `document`."""
        return "document"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Return the two capabilities: explicit interception, and identities admitted per port."""
        return frozenset({Capability.EXPLICIT_INTERCEPTION, Capability.TCP_ROUTES})

    @property
    def proxy_server_port(self) -> int:
        """Return the HTTPS port of the document server."""
        return PORT

    @property
    def types(self) -> frozenset[TypeUrl]:
        """Return the types of documents and credentials."""
        return frozenset({DOCUMENT, CREDENTIALS})

    @property
    def ready_type(self) -> TypeUrl:
        """Return the type of documents."""
        return DOCUMENT

    def pieces(self, policy: ProxyPolicy) -> tuple[Piece, ...]:
        """Return the document of a policy as one piece, with all endpoints."""
        parts = (replace(services, destinations=SharedTuple()) for services in policy.reachable)
        rest = replace(policy, reachable=tuple(parts))
        return (Piece(document, (rest,), destinations=policy.service_destinations),)

    def credentials(self, credentials_: Credentials) -> tuple[Piece, ...]:
        """Return certificate, key and roots as one piece."""
        return (Piece(credentials, (credentials_,), IdentityCertificate(credentials_.certificate.identity)),)

    def empty(self, reference: Reference) -> Resource | None:
        """Return None, because readers never reject a document: they confirm it or keep the earlier one."""
        del reference
        return None

    def reason(self, said: str) -> Reason:
        """Return CONTENT, because readers never send error messages."""
        del said
        return Reason.CONTENT

    async def start(self, context: ControllerContext) -> HealthProbes:
        """Start to serve documents, with the debug page `/debug/documents`; return the health probes."""
        from meshwright.sidecars.document.server import start  # the import of an HTTP server is slow

        return await start(context)

    def patch(self, context: InjectorContext) -> Pod:
        """Return the pod with the user's own sidecar; variables name the document and the credentials."""
        fields = {
            "MESHWRIGHT_DOCUMENT": f"https://{control_plane(context)}/v1/document",
            "MESHWRIGHT_CREDENTIALS": names.CREDENTIALS_DIRECTORY,
        }
        return patching.patch(context, Sidecar(environment=fields))
