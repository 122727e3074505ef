"""Follower of the states of BackendTLSPolicies.

A state depends on routes, gateways, ConfigMaps and other policies too, so it changes without an edit of the
policy.
"""

from catalog.relations.backend_tls.states import PolicyState, policy_state
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.kubernetes.status.followed_values import FollowedValues
from meshwright.mesh.kinds import BACKEND_TLS_POLICY
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey


@derived
def _state(view: View, key: ObjectKey) -> PolicyState | None:
    return policy_state(view, PolicyKey(key.namespace, key.name))


class PolicyStates(FollowedValues[PolicyState | None]):
    """The states of all BackendTLSPolicies of a view."""

    def __init__(self) -> None:
        super().__init__(_state, {BACKEND_TLS_POLICY})

    def state(self, key: ObjectKey) -> PolicyState | None:
        """Return the state of a policy; None if the policy is not in the mesh."""
        return self.value(key)
