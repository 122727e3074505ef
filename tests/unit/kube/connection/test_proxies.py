"""Proxies as Go's programs read them from the environment (golang.org/x/net/http/httpproxy)."""

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
def test_which_servers_are_reached_directly(url: str, bypassed: str, proxied: bool) -> None:
    """Networks are understood, which Python's own reading of NO_PROXY does not."""
    assert from_environment(url, {"HTTPS_PROXY": PROXY, "NO_PROXY": bypassed}) == (PROXY if proxied else "")


def test_names() -> None:
    """Either case counts, and each scheme has its own."""
    assert from_environment(URL, {"https_proxy": "proxy:3128"}) == PROXY
    assert from_environment(URL, {"HTTP_PROXY": PROXY}) == ""
    assert from_environment("http://10.0.0.1", {"HTTP_PROXY": PROXY}) == PROXY
    assert from_environment(URL, {"HTTPS_PROXY": PROXY, "no_proxy": "*"}) == ""


@pytest.mark.parametrize(
    "said", ["socks5://me:s3cr3t@proxy:1080", "http://me:s3cr3t@proxy:99999", "me:s3cr3t@:1"]
)
def test_no_proxy_of_ours(said: str) -> None:
    """The variable is named, and not what it holds: that may be a password."""
    with pytest.raises(
        ConfigError, match="must be a URL with http or https; other kinds of proxies"
    ) as caught:
        from_environment(URL, {"HTTPS_PROXY": said})
    assert str(caught.value).startswith("$HTTPS_PROXY ")
    assert "s3cr3t" not in str(caught.value)
