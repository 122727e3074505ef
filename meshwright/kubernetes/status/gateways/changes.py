"""Follower of the states of gateways and their ListenerSets, and of the progress at their proxies.

A state depends on routes, workloads and classes too, so it changes without an edit of the gateway.
"""

from catalog.relations.gateways.classes import served_class
from catalog.relations.gateways.set_states import SetState, set_state
from catalog.relations.gateways.states import GatewayState, gateway_state
from catalog.store.gateway import gateways
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.kubernetes.status.followed_values import FollowedValues
from meshwright.kubernetes.status.rollouts import ConnectedProxies, Progress, applied
from meshwright.mesh.gateway.gateways import GatewayClass
from meshwright.mesh.kinds import GATEWAY, LISTENER_SET
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from xds.cache import NodeKey


@derived
def _state(view: View, key: ObjectKey) -> GatewayState | SetState | None:
    name = PolicyKey(key.namespace, key.name)
    return set_state(view, name) if key.kind == LISTENER_SET else gateway_state(view, name)


class GatewayStates(FollowedValues[GatewayState | SetState | None]):
    """The states of all gateways and ListenerSets of a view, with the connected proxies of this server."""

    def __init__(self, here: ConnectedProxies) -> None:
        super().__init__(_state, {GATEWAY, LISTENER_SET})
        self._here = here

    def served_class(self, name: str) -> GatewayClass | None:
        """Return a class whose gateways are served here; None for any other."""
        return None if self.view is None else served_class(self.view, name)

    def progress(self, key: ObjectKey) -> Progress | None:
        """Return how many connected proxies of a gateway have acknowledged all that they are served.

        None if the gateway is not served here.
        """
        state = self.value(key)
        if not isinstance(state, GatewayState):
            return None
        # One answer per proxy: None for a proxy that is not connected to this server.
        answers = [applied(self._here, NodeKey(str(name)), None) for name in state.proxies]
        return Progress(answers.count(True), len(answers) - answers.count(None))

    def all_progress(self) -> dict[ObjectKey, Progress]:
        """Return the progress of each gateway that is served here."""
        view = self.view
        keys = () if view is None else (ObjectKey.from_name(GATEWAY, key) for key in gateways(view))
        return {key: progress for key in keys if (progress := self.progress(key)) is not None}
