"""Retries of requests that reached no application, at another endpoint if there is one."""

from dataclasses import dataclass

from meshwright.mesh.policies.resilience import RetryPolicy
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.rules.retries import of_mesh
from protos.envoy.config.route.v3 import route_pb2


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
            message = of_mesh(self.policy, to_mesh=self.to_mesh, farther=self.farther)
            for host in routes.virtual_hosts:
                host.retry_policy.CopyFrom(message)
