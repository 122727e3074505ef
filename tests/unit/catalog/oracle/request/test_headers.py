"""Tests of the request headers that a rule sees. Real Envoys: tests/differential/test_differential.py."""

import pytest

from catalog.oracle.request.request import Request, fits, passed
from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.policies.smi import HeaderMatch, HTTPMatch
from meshwright.mesh.service import EscapedSlashes, ServiceKey

UPGRADE = (("Connection", "keep-alive, Upgrade"), ("Upgrade", "websocket"))


def _seen(name: str, regex: str, *headers: tuple[str, str]) -> bool:
    """Return whether a match on a header fits a request with these headers, behind a sidecar."""
    key = ServiceKey(Namespace("shop"), ServiceName("web"))
    result = passed(Request(None, key, Port(80), "GET", "/", headers), EscapedSlashes.REJECT, ("websocket",))
    assert isinstance(result, Request)
    return fits(HTTPMatch("m", headers=(HeaderMatch(name, regex),)), result)


@pytest.mark.parametrize(
    ("name", "regex", "headers", "seen"),
    [
        ("te", "trailers", (("te", "trailers"),), True),
        ("te", "trailers", (("TE", "gzip;q=0.5, trailers"),), True),
        ("te", ".*", (("te", "Trailers"),), False),
        ("te", ".*", (("te", "gzip"),), False),
        ("upgrade", "websocket", UPGRADE, True),
        ("upgrade", "websocket", (("Connection", "upgrade"), ("Upgrade", "h2c, websocket")), True),
        ("connection", "keep-alive, Upgrade", UPGRADE, True),
        ("connection", ".*", (("Connection", "keep-alive"),), False),
        ("upgrade", ".*", (("Connection", "Upgrade"), ("Upgrade", "h2c")), False),
        ("upgrade", ".*", (("Upgrade", "websocket"),), False),
        ("http2-settings", ".*", (("Connection", "HTTP2-Settings"), ("HTTP2-Settings", "AA")), False),
        ("x-a", "1", (("Connection", "close, X-A"), ("x-a", "1")), False),
        ("x-a", "1", (("Connection", "close"), ("x-a", "1")), True),
        ("x-envoy-max-retries", ".*", (("x-envoy-max-retries", "3"),), False),
        ("x-envoy-upstream-rq-timeout-ms", ".*", (("x-envoy-upstream-rq-timeout-ms", "9"),), False),
        ("x-envoy-original-path", "/a", (("x-envoy-original-path", "/a"),), True),
    ],
)
def test_rule_sees_only_headers_that_envoy_passes(
    name: str, regex: str, headers: tuple[tuple[str, str], ...], seen: bool
) -> None:
    """Envoy removes headers of one connection and headers that direct Envoy, and passes the others."""
    assert _seen(name, regex, *headers) is seen
