"""Retry policies as Envoy messages."""

from typing import Final

from google.protobuf.wrappers_pb2 import UInt32Value

from meshwright.mesh.policies.retries import Retries
from meshwright.sidecars.envoy.clusters.outlier_detection import duration
from meshwright.sidecars.envoy.common_messages import packed
from protos.envoy.config.route.v3 import route_components_pb2
from protos.envoy.extensions.retry.host.previous_hosts.v3 import previous_hosts_pb2
from protos.envoy.extensions.retry.priority.previous_priorities.v3 import previous_priorities_config_pb2

MOST: Final = 10
"""Longest time between two tries, as a multiple of the base.

Open Service Mesh's value and Envoy's default.
"""

_HOSTS_TRIED: Final = 5
"""Attempts to choose an untried endpoint; after these a tried one is used again."""

_PREVIOUS: Final = "previous_hosts"
"""Name of the predicate, for people only: Envoy finds the predicate by type.

Every route contains the name.
"""

_PREVIOUS_HOSTS: Final = packed(previous_hosts_pb2.PreviousHostsPredicate())

_FARTHER: Final = "envoy.retry_priorities.previous_priorities"
_PREVIOUS_PRIORITIES: Final = packed(
    previous_priorities_config_pb2.PreviousPrioritiesConfig(update_frequency=1)
)
_Policy = route_components_pb2.RetryPolicy


def policy(retries: Retries, *, farther: bool) -> _Policy:
    """Return the retry policy of a route; `farther` as in `elsewhere`."""
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
    """Return a policy that retries at another endpoint if there is one.

    By default Envoy stays in the chosen priority: if all near endpoints are dead, farther ones are not tried
    until the near ones are ejected. With `farther` each retry uses an untried priority.
    """
    message = _Policy(num_retries=UInt32Value(value=times), host_selection_retry_max_attempts=_HOSTS_TRIED)
    message.retry_host_predicate.add(name=_PREVIOUS, typed_config=_PREVIOUS_HOSTS)
    if farther:
        message.retry_priority.name = _FARTHER
        message.retry_priority.typed_config.CopyFrom(_PREVIOUS_PRIORITIES)
    return message
