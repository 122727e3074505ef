"""Retries of requests that reached no application, at another endpoint if there is one."""

from dataclasses import dataclass
from functools import lru_cache

from meshwright.mesh.policies.resilience import RetryOn, RetryPolicy
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.rules.retries import elsewhere
from meshwright.sidecars.layout import UNDELIVERED_HEADER
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2

_RetryPolicy = route_components_pb2.RetryPolicy


@dataclass(frozen=True, slots=True)
class Retries(Feature):
    """The retry policy, if any. The undelivered mark of a host outside of the mesh is not trusted.

    With `farther` a request is retried farther away after a failure near the caller.
    """

    policy: RetryPolicy | None
    to_mesh: bool
    farther: bool = False

    def to_routes(self, routes: route_pb2.RouteConfiguration) -> None:
        """Set the retry policy for all routes."""
        if self.policy is not None:
            routes.virtual_hosts[0].retry_policy.CopyFrom(_message(self.policy, self.to_mesh, self.farther))


@lru_cache(64)
def _message(policy: RetryPolicy, to_mesh: bool, farther: bool) -> _RetryPolicy:
    conditions = [retry_on.value for retry_on in policy.on if retry_on is not RetryOn.UNDELIVERED]
    message = elsewhere(policy.retries, farther=farther)
    if RetryOn.UNDELIVERED in policy.on and to_mesh:
        conditions.append("retriable-headers")
        message.retriable_headers.add(name=UNDELIVERED_HEADER, present_match=True)
    message.retry_on = ",".join(conditions)
    return message
