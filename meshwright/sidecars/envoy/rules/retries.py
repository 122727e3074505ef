"""Retry policies in Envoy's words."""

from typing import Final

from google.protobuf.wrappers_pb2 import UInt32Value

from meshwright.mesh.policies.retries import Retries
from meshwright.sidecars.envoy.clusters.outlier_detection import duration
from meshwright.sidecars.envoy.common_messages import packed
from protos.envoy.config.route.v3 import route_components_pb2
from protos.envoy.extensions.retry.host.previous_hosts.v3 import previous_hosts_pb2
from protos.envoy.extensions.retry.priority.previous_priorities.v3 import previous_priorities_config_pb2

MOST: Final = 10
"""How many times the base is the longest time between two tries: Open Service Mesh's, and Envoy's default."""

_HOSTS_TRIED: Final = 5
"""How often Envoy chooses anew when it has chosen an endpoint that was tried; then that is tried again."""

_PREVIOUS: Final = "previous_hosts"
"""Envoy finds the predicate by its type; the name is for who reads, and stands in every route."""

_PREVIOUS_HOSTS: Final = packed(previous_hosts_pb2.PreviousHostsPredicate())

_FARTHER: Final = "envoy.retry_priorities.previous_priorities"
_PREVIOUS_PRIORITIES: Final = packed(
    previous_priorities_config_pb2.PreviousPrioritiesConfig(update_frequency=1)
)
_Policy = route_components_pb2.RetryPolicy


def policy(retries: Retries, *, farther: bool) -> _Policy:
    """Return the retry policy of a route; `farther` as `elsewhere` has it."""
    back_off = _Policy.RetryBackOff(
        base_interval=duration(retries.base), max_interval=duration(MOST * retries.base)
    )
    message = elsewhere(retries.attempts, farther=farther)
    message.retry_on = ",".join(retries.on)
    message.retry_back_off.CopyFrom(back_off)
    if retries.per_try is not None:
        message.per_try_timeout.CopyFrom(duration(retries.per_try))
    return message


def elsewhere(times: int, *, farther: bool) -> _Policy:
    """Return that a request is tried so many times more, at another endpoint where there is one.

    By itself Envoy looks for it in the priority that it has chosen: where those are near that are all dead,
    nothing else is tried until they are ejected. `farther`: each try is in a priority that was not tried.
    """
    message = _Policy(num_retries=UInt32Value(value=times), host_selection_retry_max_attempts=_HOSTS_TRIED)
    message.retry_host_predicate.add(name=_PREVIOUS, typed_config=_PREVIOUS_HOSTS)
    if farther:
        message.retry_priority.name = _FARTHER
        message.retry_priority.typed_config.CopyFrom(_PREVIOUS_PRIORITIES)
    return message
