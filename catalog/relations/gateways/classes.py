"""Classes of gateways: a gateway is served here if the class names this controller."""

from collections.abc import Iterable
from typing import Final

from catalog.store.gateway import gateway_classes, gateways
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import CONTROLLER_NAME, Gateway, GatewayClass
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.spelling import did_you_mean

_SUGGESTED: Final = 3
_LISTED: Final = 10
"""Maximum number of similar names, and of all names, in one text."""


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


def reason_unserved(view: View, key: PolicyKey) -> str:
    """Return why a gateway is not served here, for example `does not exist`; empty for a served one."""
    gateway = gateways(view).get(key)
    if gateway is None:
        return f"does not exist{similar_gateway(view, key)}"
    classes, name = gateway_classes(view), gateway.class_name
    found = classes.get(name)
    if found is None:
        near = did_you_mean(name, classes, _SUGGESTED)
        return f"is of GatewayClass {name}, which does not exist{near}; {_there(classes)}"
    if found.controller == CONTROLLER_NAME:
        return ""
    needed = f"a gateway of Meshwright needs {CONTROLLER_NAME}"
    return f"is of GatewayClass {name} with the controllerName {found.controller}: {needed}"


def similar_gateway(view: View, key: PolicyKey) -> str:
    """Return a clause with the similar name of a Gateway of a namespace, else one of this name elsewhere.

    For example, ` (did you mean public?)`; empty without such a Gateway.
    """
    # Reading the whole table ties the reason to all Gateways, which are few.
    everywhere = sorted(gateways(view))
    here = [item.name for item in everywhere if item.namespace == key.namespace]
    elsewhere = [str(item) for item in everywhere if item.name == key.name]
    return did_you_mean(key.name, here, _SUGGESTED) or (
        f" (did you mean {elsewhere[0]}?)" if elsewhere else ""
    )


def _there(classes: Iterable[str]) -> str:
    names = sorted(classes)
    if not names:
        return "there is no GatewayClass"
    more = [f"{len(names) - _LISTED} more"] if len(names) > _LISTED else []
    *before, last = [*names[:_LISTED], *more]
    if not before:
        return f"there is the GatewayClass {last}"
    return f"there are the GatewayClasses {', '.join(before)} and {last}"
