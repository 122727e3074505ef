"""Hosts in matches, as Envoy is told them."""

import pytest
import re2

from meshwright.mesh.policies.smi import HeaderMatch, HTTPMatch
from meshwright.sidecars.envoy.rules.matching import header_matchers


def told(name: str, regex: str) -> tuple[str, str]:
    """Return the header and the expression that Envoy gets."""
    (found,) = header_matchers(HTTPMatch("m", headers=(HeaderMatch(name, regex),)))
    return found.name, found.string_match.safe_regex.regex


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
def test_hosts_are_compared_as_clients_write_them(name: str, regex: str, host: str, fits: bool) -> None:
    """In any case, with any port, with the root's dot."""
    header, expression = told(name, regex)
    assert header == ":authority"
    assert (re2.fullmatch(expression, host) is not None) is fits


def test_other_headers_are_compared_as_they_are() -> None:
    """Their values may mean anything."""
    assert told("X-Shop", "a|b") == ("x-shop", "a|b")
