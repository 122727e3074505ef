"""Problems of GatewayClasses, and of Gateways and workloads because of their class."""

from collections.abc import Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.wording import Place, meant
from catalog.store.gateway import gateway_classes, gateways
from catalog.store.objects import origin_of
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import CONTROLLER_NAME, Gateway, GatewayClass
from meshwright.mesh.kinds import GATEWAY_CLASS
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InCluster
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.problems.spelling import nearest

_LIKE: Final = 0.8
"""Smallest similarity of a misspelt domain; `istio.io` and others are far from it."""


def of_class(view: View, gateway_class: GatewayClass) -> Iterator[Problem]:
    """Yield a problem if the controllerName is a misspelling of Meshwright's.

    The domain is compared, because controllers of several projects are named `<domain>/gateway-controller`.
    """
    name = gateway_class.controller
    domains = (item.partition("/")[0] for item in (name, CONTROLLER_NAME))
    if name == CONTROLLER_NAME or nearest(next(domains), domains, _LIKE) is None:
        return
    place = Place(view, ObjectKey(GATEWAY_CLASS, Namespace(""), gateway_class.name))
    wanted = (
        f"Meshwright does not serve the Gateways of this class (did you mean {CONTROLLER_NAME}?). "
        "Correct the controllerName."
    )
    yield place.warning(Code.MISSPELT_CONTROLLER, "spec.controllerName", name, wanted)


def missing_class(place: Place, gateway: Gateway) -> Iterator[Problem]:
    """Yield a problem if the class is missing; in a cluster another controller may have the class."""
    classes = gateway_classes(place.view)
    if gateway.class_name in classes or isinstance(origin_of(place.view, place.key), InCluster):
        return
    near = meant([gateway.class_name], [*classes])
    remedy = (
        "Correct the name" if near else f"Create a GatewayClass with the controllerName `{CONTROLLER_NAME}`"
    )
    wanted = f"This GatewayClass does not exist, so the Gateway is not served{near}. {remedy}."
    yield place.error(Code.UNKNOWN_GATEWAY_CLASS, "spec.gatewayClassName", gateway.class_name, wanted)


def remedy(view: View, key: PolicyKey) -> str:
    """Return how a Gateway that is not served can be served, in a sentence."""
    gateway = gateways(view).get(key)
    if gateway is None:
        return "A workload serves a Gateway of its own namespace: correct the name, or create the Gateway."
    if gateway.class_name in gateway_classes(view):
        return "Correct spec.controllerName of the GatewayClass, or spec.gatewayClassName of the Gateway."
    return "Correct spec.gatewayClassName of the Gateway, or create the GatewayClass."
