"""Steps about limits. A step lists the limits, because other requests decide whether one is exceeded."""

from collections.abc import Iterator

from catalog.explain.steps.step import Step, origin_of
from catalog.oracle.request.request import Request, fits
from catalog.oracle.service_policies import setting_at_place, setting_for_callers
from catalog.oracle.targets import Place
from catalog.store.view import View
from meshwright.mesh.kinds import UPSTREAM_TRAFFIC_SETTING
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimit, UpstreamTrafficSetting
from meshwright.mesh.policies.rate_services import RateLimitService
from meshwright.mesh.policies.smi import HTTPMatch
from meshwright.mesh.service import ServiceKey

_AT_ONCE = (
    ("connections", "connections"),
    ("pending_requests", "requests that wait for a connection"),
    ("requests", "requests"),
    ("retries", "retries"),
)


def of_caller(view: View, key: ServiceKey) -> Iterator[Step]:
    """Yield the step about the limit of concurrent calls from the client's sidecar to a Service."""
    setting = setting_for_callers(view, key)
    if setting is None or setting.connections == ConnectionLimits():
        return
    result = [(getattr(setting.connections, name), word) for name, word in _AT_ONCE]
    at_once = ", ".join(f"{limit} {word}" for limit, word in result if limit is not None)
    if at_once:
        text = f"The client's sidecar admits at most {at_once} at once to Service {key}, and refuses more"
        yield _step(view, setting, text)


def of_server(view: View, request: Request, place: tuple[Place, bool]) -> Iterator[Step]:
    """Yield the steps about the rates admitted by the server's sidecar, and about rate limit services."""
    where, is_http = place
    setting = setting_at_place(view, where)
    if setting is None:
        return
    rates = setting.rates
    if rates.connections is not None:
        text = (
            f"The server's sidecar admits {_amount(rates.connections, 'connections')}, and "
            "closes connections above this rate"
        )
        yield _step(view, setting, text, 1)
    if rates.counted_connections is not None:
        yield _step(view, setting, _service_request(rates.counted_connections.asked, "each connection"), 1)
    if is_http:
        yield from _of_requests(view, setting, request)


def _of_requests(view: View, setting: UpstreamTrafficSetting, request: Request) -> Iterator[Step]:
    rates = setting.rates
    fitting = (
        route_rate for route_rate in rates.routes if fits(HTTPMatch("", route_rate.path_regex), request)
    )
    route = next(fitting, None)
    if route is not None and route.limit is not None:
        yield _requests(view, setting, route.limit, f"requests for {route.path_regex}")
    elif rates.requests is not None:
        yield _requests(view, setting, rates.requests, "requests")
    if rates.counted_requests is not None:
        own = route is not None and route.descriptors
        what = f"each request for {route.path_regex}" if route is not None and own else "each request"
        yield _step(view, setting, _service_request(rates.counted_requests.asked, what), 1)


def _service_request(service: RateLimitService, subject: str) -> str:
    silent = "passes" if service.fails_open else "is refused"
    return (
        f"The server's sidecar asks {service.server} about {subject} (domain {service.domain}), and "
        f"the rate limit service may refuse it. Without an answer it {silent}"
    )


def _requests(view: View, setting: UpstreamTrafficSetting, limit: RateLimit, unit: str) -> Step:
    text = (
        f"The server's sidecar admits {_amount(limit, unit)}, and answers {limit.status} to "
        "requests above this rate"
    )
    return _step(view, setting, text, 1)


def _amount(limit: RateLimit, unit: str) -> str:
    burst = f" and {limit.burst} more at once" if limit.burst else ""
    return f"{limit.amount} {unit} a {limit.unit}{burst}"


def _step(view: View, setting: UpstreamTrafficSetting, text: str, depth: int = 0) -> Step:
    message = f"{text} (UpstreamTrafficSetting {setting.key})."
    return Step(message, origin_of(view, UPSTREAM_TRAFFIC_SETTING, setting.key), depth)
