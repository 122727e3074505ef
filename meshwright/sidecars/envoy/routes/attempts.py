"""Attempts of requests to a called service, as the retry policies of its routes."""

from dataclasses import dataclass
from typing import Self

from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.route_actions import Forward
from meshwright.mesh.policies.resilience import RetryPolicy
from meshwright.mesh.service import ServiceKey
from meshwright.sidecars.envoy.clusters.outlier_detection import duration
from meshwright.sidecars.envoy.rules import retries
from protos.envoy.config.route.v3 import route_components_pb2

_Policy = route_components_pb2.RetryPolicy


@dataclass(frozen=True, slots=True)
class Attempts:
    """Retries of the caller (`own`) and of the mesh; None for none.

    `to_mesh` and `farther` are as in `meshwright.sidecars.envoy.rules.retries`.
    """

    own: _Policy | None = None
    mesh: RetryPolicy | None = None
    to_mesh: bool = True
    farther: bool = False

    @classmethod
    def of_service(cls, service: OutboundService, mesh: RetryPolicy | None) -> Self:
        """Return the attempts of requests to a service."""
        own = None if service.retries is None else retries.policy(service.retries, farther=service.fails_over)
        return cls(own, mesh, isinstance(service.upstream, ServiceKey), service.fails_over)

    def policy(self, forward: Forward) -> _Policy | None:
        """Return the policy of a route; None if that of the virtual host applies, which is the mesh's."""
        limited = forward.per_try is not None
        if forward.retries is not None:
            message = retries.of_rule(
                forward.retries, limited=limited, to_mesh=self.to_mesh, farther=self.farther
            )
        elif not limited:
            return self.own
        else:
            message = self._without_rule()
        if forward.per_try is not None:
            message.per_try_timeout.CopyFrom(duration(forward.per_try))
        return message

    def _without_rule(self) -> _Policy:
        """Return a copy of what applies to routes without retries of their own."""
        message = _Policy()
        if self.own is not None:
            message.CopyFrom(self.own)
        elif self.mesh is not None:
            message.CopyFrom(retries.of_mesh(self.mesh, to_mesh=self.to_mesh, farther=self.farther))
        else:
            message.num_retries.value = 0
        return message
