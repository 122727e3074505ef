"""ListenerSets of gateways: which a gateway allows, and their order of precedence."""

from catalog.relations.gateways.classes import served_gateway
from catalog.relations.gateways.namespaces import allows_namespace
from catalog.store.gateway import listener_sets, sets_by_gateway
from catalog.store.precedence import age
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.gateways import Gateway, ListenerSet
from meshwright.mesh.kinds import GATEWAY, LISTENER_SET
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey


@derived
def allowed_sets(view: View, key: PolicyKey) -> tuple[ListenerSet, ...]:
    """Return the sets that a gateway allows: the older ones first, and sets of one age by their names."""
    gateway = served_gateway(view, key)
    if gateway is None:
        return ()
    found = (listener_sets(view)[item] for item in sets_by_gateway(view).get(key, ()))
    return tuple(sorted((item for item in found if allows_set(view, gateway, item)), key=_precedence))


def served_parent(view: View, parent: ObjectKey) -> Gateway | None:
    """Return the gateway of a Gateway or ListenerSet, if the gateway is served here."""
    key = PolicyKey(parent.namespace, parent.name)
    if parent.kind == GATEWAY:
        return served_gateway(view, key)
    # A ListenerSet may have a parent of any kind, and only a Gateway takes listeners.
    found = listener_sets(view).get(key) if parent.kind == LISTENER_SET else None
    return None if found is None or found.gateway is None else served_gateway(view, found.gateway)


def allows_set(view: View, gateway: Gateway, found: ListenerSet) -> bool:
    """Return whether a gateway allows the namespace of a set."""
    allowed = gateway.allowed_sets
    own, namespace = gateway.key.namespace, found.key.namespace
    return allows_namespace(view, allowed.namespaces, allowed.selector, own, namespace)


def _precedence(found: ListenerSet) -> tuple[bool, str, str]:
    return (*age(found.created), str(found.key))
