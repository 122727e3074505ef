"""The step about the ClientTrafficPolicy of a listener."""

from collections.abc import Iterator

from catalog.explain.steps.step import Step, origin_of
from catalog.relations.gateways.client_traffic import client_traffic
from catalog.relations.gateways.verdicts import ListenerVerdict
from catalog.store.view import View
from meshwright.mesh.kinds import CLIENT_TRAFFIC_POLICY
from meshwright.mesh.policies.client_traffic import ClientSettings, PortSettings
from meshwright.mesh.policies.limits import RateLimit
from meshwright.mesh.policies.smi import PolicyKey


def client_step(view: View, gateway: PolicyKey, answering: ListenerVerdict) -> Iterator[Step]:
    """Yield the step about the policy for the clients of a listener, if there is one."""
    at_port = client_traffic(view, gateway).get(answering.listener.port)
    policy = None if at_port is None else at_port.policy_of(answering)
    if at_port is None or policy is None:
        return
    port = policy.port if at_port.port is None else at_port.port.port
    lines = [*_limits(policy.settings), *_rates(policy.settings), *_address(policy.settings, port)]
    text = f"ClientTrafficPolicy {policy.key} applies to the clients of the listener"
    yield Step(
        f"{text}: {'; '.join(lines)}." if lines else f"{text}.",
        origin_of(view, CLIENT_TRAFFIC_POLICY, policy.key),
    )


def _limits(settings: ClientSettings) -> Iterator[str]:
    if settings.connections is not None:
        yield f"each proxy accepts at most {settings.connections} connections"
    if settings.header_bytes is not None:
        yield f"larger headers than {settings.header_bytes} bytes get 431"
    if settings.header_count is not None:
        yield f"more than {settings.header_count} headers get 431"
    if settings.timeouts.request:
        yield f"a request must arrive within {settings.timeouts.request.total_seconds():g} s"


def _rates(settings: ClientSettings) -> Iterator[str]:
    limits = settings.rates.limits
    if settings.rates.per_client is not None:
        yield f"each client address has {_rate(settings.rates.per_client)}"
    for route in limits.routes:
        if route.limit is not None:
            yield f"path {route.path_regex} has {_rate(route.limit)}"
    if limits.requests is not None:
        yield f"all clients of a proxy have {_rate(limits.requests)}"
    if limits.counted_requests is not None:
        yield f"rate limit service {limits.counted_requests.asked.server} counts requests"


def _rate(limit: RateLimit) -> str:
    burst = f" and {limit.burst} more at once" if limit.burst else ""
    return f"{limit.amount} requests per {limit.unit}{burst}, and further ones get {limit.status}"


def _address(settings: ClientSettings, port: PortSettings) -> Iterator[str]:
    if port.proxy_protocol:
        yield "a connection must begin with a header of the PROXY protocol"
    if settings.trusted_hops:
        yield f"the last {settings.trusted_hops} addresses of X-Forwarded-For are those of trusted proxies"
