"""Classes of gateways: a gateway is served here if the class names this controller."""

from catalog.store.gateway import gateway_classes, gateways
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import CONTROLLER_NAME, Gateway, GatewayClass
from meshwright.mesh.policies.smi import PolicyKey


def served_gateway(view: View, key: PolicyKey) -> Gateway | None:
    """Return a gateway of Meshwright; None for any other name."""
    gateway = gateways(view).get(key)
    if gateway is None:
        return None
    return None if served_class(view, gateway.class_name) is None else gateway


def served_class(view: View, name: str) -> GatewayClass | None:
    """Return a class whose gateways are served here; None for any other."""
    found = gateway_classes(view).get(name)
    return found if found is not None and found.controller == CONTROLLER_NAME else None
