"""Tests of Envoy's matchers of hosts."""

import pytest
import re2

from meshwright.mesh.matching import Exact, FieldMatch, Regex, RequestMatch
from meshwright.sidecars.envoy.rules.matching import header_matchers


def told(name: str, regex: str) -> tuple[str, str]:
    """Return the header name and the expression of the matcher."""
    (header_matcher,) = header_matchers(RequestMatch(headers=(FieldMatch(name, Regex(regex)),)))
    return header_matcher.name, header_matcher.string_match.safe_regex.regex


@pytest.mark.parametrize(
    ("regex", "host", "fits"),
    [
        (r"shop\.default", "shop.default", True),
        (r"shop\.default", "Shop.Default:8080", True),
        (r"Shop\.default$", "shop.default.", True),
        (r"\Qshop.default", "shop.default.:80", True),
        ("a|b", "b:80", True),
        ("shop:81", "shop:81", True),
        ("shop:81", "shop:80", False),
        ("shop", "shopx", False),
        ("shop", "shop..", False),
        ("shop", "shop:x", False),
    ],
)
@pytest.mark.parametrize("name", ["host", "Host", ":authority"])
def test_host_match_ignores_case_port_and_trailing_dot(name: str, regex: str, host: str, fits: bool) -> None:
    """Clients write hosts in these forms. An expression with a port fits only this port."""
    header, expression = told(name, regex)
    assert header == ":authority"
    assert (re2.fullmatch(expression, host) is not None) is fits


def test_match_of_another_header_is_unchanged() -> None:
    """The values of other headers may have any meaning, so case and punctuation count."""
    assert told("X-Shop", "a|b") == ("x-shop", "a|b")


def test_exact_value_is_no_expression() -> None:
    """The dot of a host stands for itself; the value of another header is compared as it is."""
    (host,) = header_matchers(RequestMatch(headers=(FieldMatch("host", Exact("shop.default")),)))
    assert re2.fullmatch(host.string_match.safe_regex.regex, "Shop.default:80") is not None
    assert re2.fullmatch(host.string_match.safe_regex.regex, "shopxdefault") is None
    (other,) = header_matchers(RequestMatch(headers=(FieldMatch("x-shop", Exact("a|b")),)))
    assert other.string_match.exact == "a|b"
