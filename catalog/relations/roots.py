"""Which MeshRootCertificates are in use: of this trust domain, not inactive, and the two oldest at most.

`metadata.creationTimestamp` settles it (those without one come last), then the namespace and the name.
"""

from typing import Final

from catalog.store.osm import root_certificates
from catalog.store.view import View
from meshwright.mesh.policies.roots import MeshRootCertificate, Role
from meshwright.mesh.policies.smi import PolicyKey

MOST: Final = 2
"""How many roots a mesh can trust at once: one that comes, and one that goes."""


def precedence(root: MeshRootCertificate) -> tuple[bool, str, PolicyKey]:
    """Return the sort key of a MeshRootCertificate among all."""
    return (not root.created, root.created, root.key)


def is_of_mesh(view: View, root: MeshRootCertificate) -> bool:
    """Say whether it is for the mesh's trust domain, or names none."""
    return root.trust_domain in ("", view.settings.trust_domain)


def wanted(view: View) -> tuple[MeshRootCertificate, ...]:
    """Return those that ask to be used, the oldest first: the first two are."""
    found = (root for root in root_certificates(view).values() if is_of_mesh(view, root))
    return tuple(sorted((root for root in found if root.role is not Role.INACTIVE), key=precedence))


def in_use(view: View) -> tuple[MeshRootCertificate, ...]:
    """Return those that are used, the oldest first; none where none of them is active."""
    found = wanted(view)[:MOST]
    return found if any(root.role is Role.ACTIVE for root in found) else ()
