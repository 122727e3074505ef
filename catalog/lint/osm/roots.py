"""Problems of MeshRootCertificates: another trust domain, a third root, or no active root."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.wording import Place
from catalog.relations.roots import MOST, is_of_mesh, wanted
from catalog.store.view import View
from meshwright.mesh.kinds import MESH_ROOT_CERTIFICATE
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.roots import MeshRootCertificate, Role
from meshwright.mesh.problems.problem import Problem


def problems(view: View, root: MeshRootCertificate) -> Iterator[Problem]:
    """Yield the problems of an active or passive MeshRootCertificate."""
    place = Place(view, ObjectKey.from_name(MESH_ROOT_CERTIFICATE, root.key))
    if root.role is Role.INACTIVE:
        return
    if not is_of_mesh(view, root):
        own = view.settings.trust_domain
        text = (
            f"The trust domain of the mesh is {own} (setting trust_domain), so this "
            "MeshRootCertificate is not in force. Correct the field."
        )
        yield place.error(Code.FOREIGN_TRUST_DOMAIN, "spec.trustDomain", root.trust_domain, text)
        return
    asking = wanted(view)
    used = asking[:MOST]
    if root not in used:
        text = (
            "Only two root certificates can be in use at once, and "
            f"{' and '.join(f'{item.key.namespace}/{item.key.name}' for item in used)} take precedence, "
            "because they are older or first by name. This one is not in force until one of them is deleted "
            "or inactive."
        )
        yield place.error(Code.THIRD_ROOT, "metadata.name", root.key.name, text)
    elif not any(certificate.role is Role.ACTIVE for certificate in used):
        text = (
            "The root certificates in use are all inactive, so they cannot sign certificates: the "
            "current CA stays in force. Set the role of one of them to active."
        )
        yield place.warning(Code.NO_ACTIVE_ROOT, "spec.role", root.role, text)
