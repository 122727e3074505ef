"""Problems of ListenerSets; one of another controller's Gateway has none here."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.gateway import listeners, serving, unknown_parents
from catalog.lint.lint import Lint
from catalog.lint.wording import Place
from catalog.relations.gateways.classes import served_gateway
from catalog.relations.gateways.listener_sets import allows_set
from catalog.relations.gateways.listeners import listeners_of_set
from meshwright.mesh.gateway.gateways import ListenerSet
from meshwright.mesh.kinds import LISTENER_SET
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem


def of_set(lint: Lint, found: ListenerSet) -> Iterator[Problem]:
    """Yield the problems of a ListenerSet."""
    view, key = lint.view, found.gateway
    place = Place(view, ObjectKey.from_name(LISTENER_SET, found.key))
    if key is None:
        wanted = (
            "A ListenerSet attaches to a Gateway alone, so its listeners are not in force. Name a Gateway."
        )
        yield place.warning(Code.SET_NOT_ATTACHED, "spec.parentRef", found.parent.kind.full, wanted)
        return
    yield from unknown_parents.missing(place, "spec.parentRef", key, "the listeners are not in force")
    gateway = served_gateway(view, key)
    # Another controller may support what Meshwright does not.
    if gateway is None:
        return
    if not allows_set(view, gateway, found):
        wanted = (
            f"The Gateway does not allow ListenerSets of namespace {found.key.namespace} (NotAllowed), so "
            "the listeners are not in force. Allow the namespace in spec.allowedListeners of the Gateway."
        )
        yield place.error(Code.SET_NOT_ATTACHED, "spec.parentRef", str(key), wanted)
        return
    for field in found.unused:
        wanted = "Meshwright does not support this field, so the field has no effect. Delete the field."
        yield place.warning(Code.GATEWAY_FIELD_NOT_USED, field, "", wanted)
    yield from serving.agent_port(place, found.listeners)
    yield from listeners.problems(lint, place, listeners_of_set(view, key, found.key))
