"""Problems of MeshRootCertificates: another trust domain, one too many, none that is to sign."""

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
    """Yield the problems of a MeshRootCertificate; of one that is inactive there are none."""
    place = Place(view, ObjectKey.of(MESH_ROOT_CERTIFICATE, root.key))
    if root.role is Role.INACTIVE:
        return
    if not is_of_mesh(view, root):
        own = view.settings.trust_domain
        said = f"the mesh's is {own}, by the setting trust_domain: it is not in force"
        yield place.error(Code.FOREIGN_TRUST_DOMAIN, "spec.trustDomain", root.trust_domain, said)
        return
    asking = wanted(view)
    used = asking[:MOST]
    if root not in used:
        said = (
            f"{' and '.join(f'{each.key.namespace}/{each.key.name}' for each in used)} are older or first by "
            "name, and no more than two roots are used at once: it is not in force until one of them is gone "
            "or inactive"
        )
        yield place.error(Code.THIRD_ROOT, "metadata.name", root.key.name, said)
    elif not any(each.role is Role.ACTIVE for each in used):
        said = "none that is used is active, so that nobody would sign: the CA in force stays"
        yield place.warning(Code.NO_ACTIVE_ROOT, "spec.role", root.role, said)
