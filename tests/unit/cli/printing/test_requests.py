"""Tests of the text of watched requests in a terminal."""

from typing import Any

import pytest

from meshwright.cli.printing.requests import remark, request_line

REQUEST: dict[str, Any] = {
    "at": "2026-01-02T03:04:05.678901Z",
    "proxy": "0123456789ab.cart.shop",
    "caller": "shop/alice",
    "address": "10.0.0.7",
    "port": 8080,
    "method": "GET",
    "authority": "cart.shop",
    "path": "/books",
    "status": 200,
    "grpc_status": None,
    "flags": [],
    "details": "via_upstream",
    "policy": "shop/books",
    "milliseconds": 2.5,
    "received_bytes": 0,
    "sent_bytes": 3,
}
BEGINS = "03:04:05.678  shop/alice  →  shop/cart (01234567):8080  GET cart.shop/books  "


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({}, BEGINS + "200  2.5ms  by shop/books"),
        ({"policy": "permissive"}, BEGINS + "200  2.5ms  by permissive"),
        (
            {"status": 403, "policy": "", "details": "rbac_access_denied_matched_policy[none]"},
            BEGINS + "403  2.5ms  rbac_access_denied_matched_policy[none]",
        ),
        (
            {"status": 503, "details": "reset", "flags": ["upstream_connection_failure", "x"]},
            BEGINS + "503  2.5ms  reset (upstream_connection_failure, x)",
        ),
        ({"status": 0, "details": "gone"}, BEGINS + "no answer  2.5ms  gone"),
        ({"grpc_status": 14}, BEGINS + "200 grpc 14  2.5ms  by shop/books"),
        ({"at": "2026-01-02T03:04:05Z"}, BEGINS.replace(".678", "") + "200  2.5ms  by shop/books"),
    ],
)
def test_request_is_shown_in_one_line(other: dict[str, Any], line: str) -> None:
    """The line has the time, caller, called workload, request, answer, and the policy or the reason."""
    assert request_line(REQUEST | other) == line


def test_control_characters_of_a_request_are_escaped() -> None:
    """Path and host are escaped; a caller without a certificate is shown by its address."""
    written = {"path": "/\x1b[2J\r\n", "authority": "\x07h\u202e", "caller": None}
    result = request_line(REQUEST | written)
    assert "10.0.0.7 (no certificate)  →" in result
    assert r"GET \x07h\u202e/\x1b[2J\x0d\x0a  200" in result
    assert result.isprintable()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"watching": {"service": "a/b", "proxies": 1}}, "watching requests to a/b at 1 sidecar"),
        ({"watching": {"service": "a/b", "proxies": 2}}, "watching requests to a/b at 2 sidecars"),
        (
            {"watching": {"service": "a/b", "proxies": 0}},
            "waiting, because no sidecar of a/b is connected",
        ),
        (
            {"watching": {"service": "a/b", "proxies": 1, "routes": ["HTTPRoute a/r"], "backends": ["a/c"]}},
            (
                "watching requests to a/b at 1 sidecar; HTTPRoute a/r may lead calls of a/b to other "
                "Services, so tap these too: a/c"
            ),
        ),
        (
            {"lost": 3},
            (
                "3 requests are not shown, because there were too many: "
                "select fewer with --from, --method or --path"
            ),
        ),
        ({"ended": "the server is shutting down"}, "ended: the server is shutting down"),
        ({"new\n": 1}, "{'new\\n': 1}"),
    ],
)
def test_remark_of_the_server_is_one_sentence(line: dict[str, Any], words: str) -> None:
    """An unknown remark of a newer server is printed as it is."""
    assert remark(line) == words
