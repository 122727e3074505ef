"""MeshRootCertificates in use: of this trust domain, not inactive, and the two oldest at most.

The order is by `metadata.creationTimestamp` (those without one come last), then namespace and name.
"""

from typing import Final

from catalog.store.osm import root_certificates
from catalog.store.view import View
from meshwright.mesh.policies.roots import MeshRootCertificate, Role
from meshwright.mesh.policies.smi import PolicyKey

MOST: Final = 2
"""Maximum number of CAs that a mesh trusts at once: the old one and the new one."""


def precedence(root: MeshRootCertificate) -> tuple[bool, str, PolicyKey]:
    """Return the sort key of a MeshRootCertificate."""
    return (not root.created, root.created, root.key)


def is_of_mesh(view: View, root: MeshRootCertificate) -> bool:
    """Return whether a MeshRootCertificate is for the mesh's trust domain, or for any."""
    return root.trust_domain in ("", view.settings.trust_domain)


def wanted(view: View) -> tuple[MeshRootCertificate, ...]:
    """Return the mesh's active and passive MeshRootCertificates, oldest first; the first two are used."""
    result = (root for root in root_certificates(view).values() if is_of_mesh(view, root))
    return tuple(sorted((root for root in result if root.role is not Role.INACTIVE), key=precedence))


def in_use(view: View) -> tuple[MeshRootCertificate, ...]:
    """Return the MeshRootCertificates in use, oldest first; empty if none of them is active."""
    roots = wanted(view)[:MOST]
    return roots if any(root.role is Role.ACTIVE for root in roots) else ()
