"""The steps about which endpoint of a service is chosen, which are left alone, and what is tried again."""

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
    BalancingAlgorithm.LEAST_REQUEST: "of two endpoints the one with fewer requests under way",
    BalancingAlgorithm.RANDOM: "any endpoint",
}
_NAMED = {KeyKind.HEADER: "header", KeyKind.COOKIE: "cookie", KeyKind.QUERY: "parameter of the query"}


def of_caller(view: View, key: ServiceKey) -> Iterator[Step]:
    """Yield what an UpstreamPolicy has the client's sidecar do about the endpoints of a service."""
    policy = reaching(view, key)
    if policy is None:
        return
    said = [f"it is sent to {_chosen(policy.load.balancing, policy.load.key)}"]
    if policy.ejecting is not None:
        said.append(_left_alone(policy.ejecting))
    if policy.checking is not None:
        said.append(_asked(policy.checking))
    if policy.nearest is not None:
        said.append(_preferred(policy.nearest))
    text = f"UpstreamPolicy {policy.key} is for Service {key}: {'; '.join(said)}"
    yield Step(text, origin_of(view, UPSTREAM_POLICY, policy.key))


def of_retries(view: View, client: ServiceIdentity, key: ServiceKey) -> Iterator[Step]:
    """Yield what is tried again of calls to a service, where a Retry says that."""
    retry = tried_again(view, client, key)
    if retry is None:
        return
    times = "once" if retry.retries.attempts == 1 else f"{retry.retries.attempts} times"
    on = ", ".join(retry.retries.on) or "nothing"
    text = f"Retry {retry.key} has the client's sidecar try again, at most {times}, what fails with {on}"
    yield Step(text, origin_of(view, RETRY, retry.key))


def _chosen(balancing: BalancingAlgorithm, key: HashKey | None) -> str:
    if key is None:
        return _CHOSEN[balancing]
    return f"the endpoint that is its {_NAMED[key.kind]} {key.name}'s, or any without it"


def _left_alone(ejecting: OutlierDetectionOverride) -> str:
    if ejecting.failures == 0:
        return "no endpoint is left alone because it fails"
    return "endpoints that fail are left alone in its own way"


def _asked(check: HealthCheck) -> str:
    how = "by a connection"
    if check.request is not None:
        spoken = "HTTP" if check.grpc is None else "gRPC"
        how = f"by {' '.join(check.request)}, at ports of {spoken},"
    every, counts = check.interval.total_seconds(), check.unhealthy
    return f"endpoints are asked {how} every {every:g} s, and left alone after {counts} failures in a row"


def _preferred(nearest: LocalityPreference) -> str:
    near = f"those of the client's {nearest.within.lower()}"
    return (
        f"of endpoints {near} come first" if nearest.fails_over else f"of endpoints {near} alone are called"
    )
