"""The step of an explanation about the ClientTrafficPolicy of a listener."""

from datetime import timedelta

from catalog.explain.gateways.client_traffic import client_step
from catalog.relations.gateways.listeners import listener_verdicts
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.policies.client_traffic import (
    ClientRates,
    ClientTarget,
    ClientTimeouts,
    ClientTrafficPolicy,
    PortSettings,
)
from meshwright.mesh.policies.limits import RateLimit, RateLimits, RateUnit, RouteRate
from meshwright.mesh.policies.rate_services import CountedRequests, RateLimitService
from tests.meshes import gateway as g
from tests.meshes import values as a


def step(policy: ClientTrafficPolicy) -> list[str]:
    """Return the texts of the step at the one listener of gateway edge."""
    view, key = g.view(g.CLASS, g.gateway("edge"), policy), a.policy_key("edge")
    (verdict,) = listener_verdicts(view, key)
    return [step.text for step in client_step(view, key, verdict)]


def test_listener_without_a_policy_has_no_step() -> None:
    """The defaults are not named."""
    assert step(g.client_policy("other", ClientTarget("other"))) == []


def test_settings_with_an_effect_on_requests_are_named() -> None:
    """In the order in which a proxy looks at them: the connection, the request, the rates, the address."""
    asked = RateLimitService(HostPort("limiter.example", 8081), "edge")
    minute = RateLimit(60, RateUnit.MINUTE, 5)
    limits = RateLimits(
        requests=minute,
        routes=(RouteRate("/dear/.*", RateLimit(1, RateUnit.HOUR, status=503)), RouteRate("/free", None)),
        counted_requests=CountedRequests(asked, ()),
    )
    policy = g.client_policy(
        "all",
        port=PortSettings(proxy_protocol=True),
        connections=3,
        header_bytes=2048,
        header_count=20,
        timeouts=ClientTimeouts(request=timedelta(milliseconds=1500)),
        rates=ClientRates(limits, minute),
        trusted_hops=2,
    )
    assert step(policy) == [
        (
            "ClientTrafficPolicy default/all applies to the clients of the listener: "
            "each proxy accepts at most 3 connections; larger headers than 2048 bytes get 431; "
            "more than 20 headers get 431; a request must arrive within 1.5 s; "
            "each client address has 60 requests per minute and 5 more at once, and further ones get 429; "
            "path /dear/.* has 1 requests per hour, and further ones get 503; "
            "all clients of a proxy have 60 requests per minute and 5 more at once, "
            "and further ones get 429; "
            "rate limit service limiter.example:8081 counts requests; "
            "a connection must begin with a header of the PROXY protocol; "
            "the last 2 addresses of X-Forwarded-For are those of trusted proxies"
            "."
        )
    ]


def test_policy_without_such_settings_is_named_alone() -> None:
    """Other settings have no effect on the answer."""
    assert step(g.client_policy("quiet", merge_slashes=False)) == [
        "ClientTrafficPolicy default/quiet applies to the clients of the listener."
    ]
