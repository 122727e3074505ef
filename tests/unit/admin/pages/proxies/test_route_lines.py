"""Tests of route entries in words."""

import pytest

from catalog.policy.values.route_actions import Answer, AnsweredShare, Forward, RouteAction, WeightedBackend
from catalog.policy.values.route_table import RouteEntry
from meshwright.admin.pages.proxies.route_lines import requests, to
from meshwright.mesh.gateway.filters import Redirect
from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch
from tests.meshes import values as a

ONE = WeightedBackend(a.service_key("one"), "8080", 3)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (Forward((ONE,)), "default/one port 8080"),
        (
            Forward((ONE, AnsweredShare(500, 1))),
            "default/one port 8080 (weight 3), answer 500 (weight 1)",
        ),
        (Redirect(status=301), "redirect with status 301"),
        (Answer(503), "no backend: 503"),
        (Answer(500), "answer 500"),
    ],
)
def test_action_in_words(action: RouteAction, expected: str) -> None:
    """Weights are named if there are several shares."""
    assert to(RouteEntry((), action)) == expected


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (RequestMatch(), "* *"),
        (RequestMatch(Exact("/a"), ("GET",)), "GET /a"),
        (RequestMatch(Prefix("/a")), "* /a/..."),
        (RequestMatch(Prefix("/")), "* /..."),
        (RequestMatch(Regex("/a.*")), "* /a.*"),
        (RequestMatch(GrpcMethod("shop.Cart", "Add")), "* shop.Cart/Add"),
        (RequestMatch(GrpcMethod(None, "Add")), "* */Add"),
        (
            RequestMatch(
                headers=(FieldMatch("x-user", Regex("a.*")),), parameters=(FieldMatch("page", Exact("2")),)
            ),
            "* * x-user=a.* ?page=2",
        ),
    ],
)
def test_requests_in_words(match: RequestMatch, expected: str) -> None:
    """Method and path come first, then headers and query parameters."""
    assert requests(match) == expected
