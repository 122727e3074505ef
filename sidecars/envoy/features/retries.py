"""What is tried again, and where: what has reached no application, at another endpoint if there is one."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from google.protobuf.wrappers_pb2 import UInt32Value

from mesh.calling import RetryOn, RetryPolicy
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.retry.host.previous_hosts.v3 import previous_hosts_pb2
from sidecars.envoy.features.feature import Feature
from sidecars.envoy.typed import packed
from sidecars.layout import UNDELIVERED_HEADER

_HOSTS_TRIED: Final = 5
"""How often Envoy chooses anew when it has chosen an endpoint that was tried; then that is tried again."""

_PREVIOUS: Final = "envoy.retry_host_predicates.previous_hosts"
_RetryPolicy = route_components_pb2.RetryPolicy


@dataclass(frozen=True, slots=True)
class Retries(Feature):
    """A policy, if there is one; what a host outside the mesh says of delivery is not believed."""

    policy: RetryPolicy | None
    to_mesh: bool

    def to_routes(self, routes: route_pb2.RouteConfiguration) -> None:
        """Set it for all routes."""
        if self.policy is not None:
            routes.virtual_hosts[0].retry_policy.CopyFrom(_message(self.policy, self.to_mesh))


@lru_cache(64)
def _message(policy: RetryPolicy, to_mesh: bool) -> _RetryPolicy:
    conditions = [each.value for each in policy.on if each is not RetryOn.UNDELIVERED]
    message = _RetryPolicy(
        num_retries=UInt32Value(value=policy.retries), host_selection_retry_max_attempts=_HOSTS_TRIED
    )
    message.retry_host_predicate.add(
        name=_PREVIOUS, typed_config=packed(previous_hosts_pb2.PreviousHostsPredicate())
    )
    if RetryOn.UNDELIVERED in policy.on and to_mesh:
        conditions.append("retriable-headers")
        message.retriable_headers.add(name=UNDELIVERED_HEADER, present_match=True)
    message.retry_on = ",".join(conditions)
    return message
