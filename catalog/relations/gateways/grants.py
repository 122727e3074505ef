"""ReferenceGrants: permissions to refer to objects of another namespace, given by the latter."""

from catalog.store.gateway import grants_by_namespace, reference_grants
from catalog.store.view import View
from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey


def is_granted(view: View, source: Kind, namespace: Namespace, target: ObjectKey) -> bool:
    """Return whether objects of a kind in a namespace may refer to `target`, which need not exist.

    Within a namespace no grant is needed.
    """
    if namespace == target.namespace:
        return True
    wanted = GrantedFrom(source, namespace)
    targets = (GrantedTo(target.kind), GrantedTo(target.kind, target.name))
    grants = (reference_grants(view)[key] for key in grants_by_namespace(view).get(target.namespace, ()))
    return any(wanted in grant.sources and not set(targets).isdisjoint(grant.targets) for grant in grants)
