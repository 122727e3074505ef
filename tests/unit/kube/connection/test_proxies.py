"""Tests of proxies in the environment, as read by Go programs (golang.org/x/net/http/httpproxy)."""

import pytest

from meshwright.kube.connection.proxies import from_environment
from meshwright.kube.errors import ConfigError

URL = "https://10.96.0.1:6443"
PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("url", "bypassed", "proxied"),
    [
        (URL, "", True),
        (URL, "*", False),
        (URL, "example.com,10.96.0.0/12", False),
        (URL, "10.96.0.0/16, 10.0.0.0/16", False),
        (URL, "10.0.0.0/16", True),
        (URL, "10.96.0.1", False),
        (URL, "10.96.0.1:6443", False),
        (URL, "10.96.0.1:443", True),
        (URL, "nonsense/12", True),
        ("https://k8s.example.com", "example.com", False),
        ("https://k8s.example.com", ".example.com", False),
        ("https://k8s.example.com", "*.example.com", False),
        ("https://example.com", ".example.com", True),
        ("https://example.com", "example.com", False),
        ("https://badexample.com", "example.com", True),
        ("https://example.com", "EXAMPLE.com:443", False),
        ("https://[fd00::1]:6443", "fd00::1", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://[fd00::1]:6443", "10.0.0.0/8", True),
        ("https://localhost:6443", "", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://[::1]:6443", "", False),
    ],
)
def test_servers_in_no_proxy_are_reached_directly(url: str, bypassed: str, proxied: bool) -> None:
    """NO_PROXY may have networks, which Python's own parser does not support.

    Loopback addresses are always direct.
    """
    assert from_environment(url, {"HTTPS_PROXY": PROXY, "NO_PROXY": bypassed}) == (PROXY if proxied else "")


def test_proxy_variables_are_read_in_both_cases_and_by_scheme() -> None:
    """An https URL follows HTTPS_PROXY, and an http URL follows HTTP_PROXY."""
    assert from_environment(URL, {"https_proxy": "proxy:3128"}) == PROXY
    assert from_environment(URL, {"HTTP_PROXY": PROXY}) == ""
    assert from_environment("http://10.0.0.1", {"HTTP_PROXY": PROXY}) == PROXY
    assert from_environment(URL, {"HTTPS_PROXY": PROXY, "no_proxy": "*"}) == ""


@pytest.mark.parametrize(
    "said", ["socks5://me:s3cr3t@proxy:1080", "http://me:s3cr3t@proxy:99999", "me:s3cr3t@:1"]
)
def test_unsupported_proxy_is_an_error_without_its_value(said: str) -> None:
    """The message names the variable only, because its value may have a password."""
    with pytest.raises(
        ConfigError, match="must be a URL with http or https; other kinds of proxies"
    ) as caught:
        from_environment(URL, {"HTTPS_PROXY": said})
    assert str(caught.value).startswith("$HTTPS_PROXY ")
    assert "s3cr3t" not in str(caught.value)
