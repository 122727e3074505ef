"""The document driver, as the mesh knows it."""

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
    """For whatever reads JSON and enforces identities by port; the sidecar's image is the user's own."""

    @property
    def name(self) -> str:
        """Return `document`."""
        return "document"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Return the little it can do: admit identities to ports that a proxy binds itself."""
        return frozenset({Capability.EXPLICIT_INTERCEPTION, Capability.TCP_ROUTES})

    @property
    def proxy_server_port(self) -> int:
        """Return the HTTPS port."""
        return PORT

    @property
    def types(self) -> frozenset[TypeUrl]:
        """Return the type of documents, and that of credentials."""
        return frozenset({DOCUMENT, CREDENTIALS})

    @property
    def ready_type(self) -> TypeUrl:
        """Return the documents' type."""
        return DOCUMENT

    def pieces(self, policy: ProxyPolicy) -> tuple[Piece, ...]:
        """Return the document as the one piece; all endpoints are in it."""
        parts = (replace(each, destinations=SharedTuple()) for each in policy.reachable)
        rest = replace(policy, reachable=tuple(parts))
        return (Piece(document, (rest,), destinations=policy.service_destinations),)

    def credentials(self, credentials_: Credentials) -> tuple[Piece, ...]:
        """Return the certificate, key and roots as one piece."""
        return (Piece(credentials, (credentials_,), IdentityCertificate(credentials_.certificate.identity)),)

    def empty(self, reference: Reference) -> Resource | None:
        """Return None: readers of documents confirm a version, or go on with the one before; none rejects."""
        del reference
        return None

    def reason(self, said: str) -> Reason:
        """Return that it is the content: readers say nothing."""
        del said
        return Reason.CONTENT

    async def start(self, context: ControllerContext) -> HealthProbes:
        """Serve documents, with `/debug/documents` beside it."""
        from meshwright.sidecars.document.server import start  # an HTTP server takes its time to import

        return await start(context)

    def patch(self, context: InjectorContext) -> Pod:
        """Return the pod with the user's own sidecar, told where its document and credentials are."""
        told = {
            "MESHWRIGHT_DOCUMENT": f"https://{control_plane(context)}/v1/document",
            "MESHWRIGHT_CREDENTIALS": names.CREDENTIALS_DIRECTORY,
        }
        return patching.patch(context, Sidecar(environment=told))
