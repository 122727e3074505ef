"""Namespaces that gateways and their listeners allow, by the words of the specification or by labels."""

from catalog.store.view import View
from meshwright.mesh.gateway.gateways import RoutesFrom
from meshwright.mesh.names import Namespace
from meshwright.mesh.values.label_selector import LabelSelector


def allows_namespace(
    view: View, origin: RoutesFrom, selector: LabelSelector | None, own: Namespace, namespace: Namespace
) -> bool:
    """Return whether objects of a namespace may attach to an object of the namespace `own`."""
    match origin:
        case RoutesFrom.ALL:
            return True
        case RoutesFrom.SAME:
            return namespace == own
        case RoutesFrom.NONE:
            return False
        case RoutesFrom.SELECTOR:
            return selector is not None and selector.fits(_labels(view, namespace))


def _labels(view: View, namespace: Namespace) -> dict[str, str]:
    """Return the labels of a namespace, with its name as every cluster sets it."""
    found = view.namespaces.get(namespace)
    own = {} if found is None else dict(found.labels)
    return {"kubernetes.io/metadata.name": namespace} | own
