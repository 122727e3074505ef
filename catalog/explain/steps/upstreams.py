"""Steps about UpstreamPolicies (choice of endpoints, ejection, health checks) and about retries."""

from collections.abc import Iterator

from catalog.explain.steps.step import Step, origin_of
from catalog.oracle.service_policies import reaching, tried_again
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import RETRY, UPSTREAM_POLICY
from meshwright.mesh.policies.upstreams import (
    BalancingAlgorithm,
    HashKey,
    HealthCheck,
    KeyKind,
    LocalityPreference,
    OutlierDetectionOverride,
)
from meshwright.mesh.service import ServiceKey

_CHOSEN = {
    BalancingAlgorithm.ROUND_ROBIN: "one endpoint after the other",
    BalancingAlgorithm.LEAST_REQUEST: "the one of two random endpoints with fewer open requests",
    BalancingAlgorithm.RANDOM: "any endpoint",
}
_NAMED = {KeyKind.HEADER: "header", KeyKind.COOKIE: "cookie", KeyKind.QUERY: "query parameter"}


def of_caller(view: View, key: ServiceKey) -> Iterator[Step]:
    """Yield the step about the UpstreamPolicy that applies to calls to a Service."""
    policy = reaching(view, key)
    if policy is None:
        return
    lines = [f"the client's sidecar sends a request to {_chosen(policy.load.balancing, policy.load.key)}"]
    if policy.ejecting is not None:
        lines.append(_left_alone(policy.ejecting))
    if policy.checking is not None:
        lines.append(_health_request(policy.checking))
    if policy.nearest is not None:
        lines.append(_preferred(policy.nearest))
    text = f"UpstreamPolicy {policy.key} applies to calls to Service {key}: {'; '.join(lines)}."
    yield Step(text, origin_of(view, UPSTREAM_POLICY, policy.key))


def of_retries(view: View, client: ServiceIdentity, key: ServiceKey) -> Iterator[Step]:
    """Yield the step about the Retry that applies to a client's calls to a Service."""
    retry = tried_again(view, client, key)
    if retry is None:
        return
    times = "once" if retry.retries.attempts == 1 else f"{retry.retries.attempts} times"
    on = ", ".join(retry.retries.on) or "nothing"
    text = (
        f"Retry {retry.key} makes the client's sidecar retry requests that fail with {on}, at most {times}."
    )
    yield Step(text, origin_of(view, RETRY, retry.key))


def _chosen(balancing: BalancingAlgorithm, key: HashKey | None) -> str:
    if key is None:
        return _CHOSEN[balancing]
    return (
        f"the endpoint chosen by its {_NAMED[key.kind]} {key.name}, or any endpoint if the request has none"
    )


def _left_alone(ejecting: OutlierDetectionOverride) -> str:
    if ejecting.failures == 0:
        return "endpoints are not ejected when they fail"
    return "endpoints that fail are ejected by the rules of this policy"


def _health_request(check: HealthCheck) -> str:
    how = "by a connection"
    if check.request is not None:
        spoken = "HTTP" if check.grpc is None else "gRPC"
        how = f"by {' '.join(check.request)}, at ports of {spoken},"
    every, counts = check.interval.total_seconds(), check.unhealthy
    return (
        f"the sidecar checks each endpoint {how} every {every:g} s, and leaves an endpoint out "
        f"after {counts} failures in a row"
    )


def _preferred(nearest: LocalityPreference) -> str:
    near = f"endpoints in the client's {nearest.within.lower()}"
    return f"{near} are preferred" if nearest.fails_over else f"only {near} are called"
