"""Tests of the HTTP methods that sidecars pass on. Real Envoys: tests/differential/test_paths.py."""

import pytest

from catalog.oracle.request.paths import LocalReply
from catalog.oracle.request.request import Request, passed
from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.service import EscapedSlashes, ServiceKey


def _statuses(method: str, *headers: tuple[str, str]) -> list[int | None]:
    """Return the sidecar's own statuses in HTTP/1.1 and HTTP/2; None if the request passes."""
    key = ServiceKey(Namespace("shop"), ServiceName("web"))
    made = [Request(None, key, Port(80), method, "/", headers, http2=item) for item in (False, True)]
    answers = [passed(request, EscapedSlashes.REJECT) for request in made]
    return [answer.status if isinstance(answer, LocalReply) else None for answer in answers]


@pytest.mark.parametrize(
    ("method", "in_http1", "in_http2"),
    [
        ("GET", None, None),
        ("PURGE", None, None),
        ("PROPFIND", None, None),
        ("BAN", 400, None),
        ("M-SEARCH", 400, None),
        ("get", 400, None),
        ("X" * 90, 400, None),
        ("CONNECT", 404, 404),
    ],
)
def test_unknown_method_is_refused_in_http1_and_connect_in_both(
    method: str, in_http1: int | None, in_http2: int | None
) -> None:
    """Envoy has a fixed list of methods in HTTP/1.1. In HTTP/2 it accepts every method except CONNECT."""
    assert _statuses(method) == [in_http1, in_http2]


def test_query_without_a_content_type_is_refused() -> None:
    """RFC 10008 requires a content type, so Envoy answers 400 without it in both protocols."""
    assert _statuses("QUERY") == [400, 400]
    assert _statuses("QUERY", ("Content-Type", "application/json")) == [None, None]


def test_long_method_is_shortened_in_the_reason() -> None:
    """A client may send a method of 60 KiB, and the reason is shown to people."""
    key = ServiceKey(Namespace("shop"), ServiceName("web"))
    result = passed(Request(None, key, Port(80), "X" * 60_000), EscapedSlashes.REJECT)
    assert isinstance(result, LocalReply)
    assert len(result.why) < 120
