"""Retry policies as Envoy messages."""

from functools import lru_cache
from typing import Final

from google.protobuf.wrappers_pb2 import UInt32Value

from meshwright.mesh.gateway.rules import RuleRetry
from meshwright.mesh.policies.resilience import RetryOn, RetryPolicy
from meshwright.mesh.policies.retries import Retries
from meshwright.sidecars.envoy.clusters.outlier_detection import duration
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.layout import UNDELIVERED_HEADER
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
_GATEWAY_TIMEOUT: Final = 504
_Policy = route_components_pb2.RetryPolicy


def policy(retries: Retries, *, farther: bool) -> _Policy:
    """Return the retry policy of a route; `farther` as in `elsewhere`."""
    message = elsewhere(retries.attempts, farther=farther)
    message.retry_on = ",".join(retries.on)
    message.retry_back_off.CopyFrom(
        _Policy.RetryBackOff(base_interval=duration(retries.base), max_interval=duration(MOST * retries.base))
    )
    if retries.per_try is not None:
        message.per_try_timeout.CopyFrom(duration(retries.per_try))
    return message


def of_rule(retry: RuleRetry, *, limited: bool, to_mesh: bool, farther: bool) -> _Policy:
    """Return the retry policy of a Gateway API rule; with `limited` an attempt has a timeout.

    Requests that no application has seen are retried whatever the codes.
    """
    if retry.attempts == 0:
        return _Policy(num_retries=UInt32Value(value=0))
    message = of_mesh(RetryPolicy(retries=retry.attempts), to_mesh=to_mesh, farther=farther)
    if retry.codes:
        message.retry_on += ",retriable-status-codes"
        message.retriable_status_codes.extend(retry.codes)
    if limited and _GATEWAY_TIMEOUT in retry.codes:
        # An attempt that took too long has no answer, so Envoy does not compare its code.
        message.retry_on += ",reset"
    if retry.backoff:
        message.retry_back_off.CopyFrom(
            _Policy.RetryBackOff(
                base_interval=duration(retry.backoff), max_interval=duration(MOST * retry.backoff)
            )
        )
    return message


def of_mesh(retry: RetryPolicy, *, to_mesh: bool, farther: bool) -> _Policy:
    """Return the mesh's retry policy; the undelivered mark of a host outside of the mesh is not trusted."""
    message = _Policy()
    message.CopyFrom(_of_mesh(retry, to_mesh=to_mesh, farther=farther))
    return message


@lru_cache(64)
def _of_mesh(retry: RetryPolicy, *, to_mesh: bool, farther: bool) -> _Policy:
    conditions = [retry_on.value for retry_on in retry.on if retry_on is not RetryOn.UNDELIVERED]
    message = elsewhere(retry.retries, farther=farther)
    if RetryOn.UNDELIVERED in retry.on and to_mesh:
        conditions.append("retriable-headers")
        message.retriable_headers.add(name=UNDELIVERED_HEADER, present_match=True)
    message.retry_on = ",".join(conditions)
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
