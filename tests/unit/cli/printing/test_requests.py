"""Requests that are watched, as a terminal shows them."""

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
def test_a_request_is_a_line(other: dict[str, Any], line: str) -> None:
    """When, from whom, to whom, what, how it was answered, and who admitted it, or why not."""
    assert request_line(REQUEST | other) == line


def test_nothing_that_a_caller_writes_is_a_command_of_the_terminal() -> None:
    """Neither a path nor a host; who shows no certificate is known by the address."""
    written = {"path": "/\x1b[2J\r\n", "authority": "\x07h\u202e", "caller": None}
    found = request_line(REQUEST | written)
    assert "10.0.0.7 (no certificate)  →" in found
    assert r"GET \x07h\u202e/\x1b[2J\x0d\x0a  200" in found
    assert found.isprintable()


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
def test_what_is_said_besides_is_a_sentence(line: dict[str, Any], words: str) -> None:
    """Also what only a newer server says."""
    assert remark(line) == words
