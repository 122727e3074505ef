"""Classes of gateways: a gateway is served here if its class names this controller."""

from catalog.store.gateway import gateway_classes, gateways
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import CONTROLLER_NAME, Gateway
from meshwright.mesh.policies.smi import PolicyKey


def served_gateway(view: View, key: PolicyKey) -> Gateway | None:
    """Return a gateway that is served here; None if it does not exist, or is of another controller."""
    gateway = gateways(view).get(key)
    if gateway is None:
        return None
    found = gateway_classes(view).get(gateway.class_name)
    return gateway if found is not None and found.controller == CONTROLLER_NAME else None
