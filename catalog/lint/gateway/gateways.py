"""Problems of gateways of our classes; another controller reports those of its own."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.wording import Place
from catalog.relations.gateways.classes import served_gateway
from catalog.store.view import View
from meshwright.mesh.kinds import GATEWAY
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem


def problems(view: View, key: PolicyKey) -> Iterator[Problem]:
    """Yield the problems of a gateway, for example a field without effect."""
    gateway = served_gateway(view, key)
    if gateway is None:
        return
    place = Place(view, ObjectKey.from_name(GATEWAY, key))
    for field in gateway.unused:
        wanted = "Meshwright does not support this field, so the field has no effect. Delete the field."
        yield place.warning(Code.GATEWAY_FIELD_NOT_USED, field, "", wanted)
