"""Which HTTP methods sidecars pass on. Real Envoys: tests/differential/test_paths.py."""

import pytest

from catalog.oracle.request.paths import LocalReply
from catalog.oracle.request.request import Request, passed
from meshwright.mesh.names import Namespace, Port, ServiceName
from meshwright.mesh.service import EscapedSlashes, ServiceKey


def _statuses(method: str, *headers: tuple[str, str]) -> list[int | None]:
    """Return the sidecar's own statuses in HTTP/1.1 and HTTP/2; None where the request passes."""
    key = ServiceKey(Namespace("shop"), ServiceName("web"))
    made = [Request(None, key, Port(80), method, "/", headers, http2=each) for each in (False, True)]
    answers = [passed(each, EscapedSlashes.REJECT) for each in made]
    return [each.status if isinstance(each, LocalReply) else None for each in answers]


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
def test_methods_that_a_sidecar_turns_down(method: str, in_http1: int | None, in_http2: int | None) -> None:
    """Envoy has a fixed list of methods in HTTP/1.1, and takes any in HTTP/2 but tunnels."""
    assert _statuses(method) == [in_http1, in_http2]


def test_a_query_needs_a_content_type() -> None:
    """RFC 10008 wants one, and Envoy answers 400 to a QUERY without it in both protocols."""
    assert _statuses("QUERY") == [400, 400]
    assert _statuses("QUERY", ("Content-Type", "application/json")) == [None, None]


def test_a_method_is_named_in_part() -> None:
    """A client may send one of 60 KiB, and the sentence is shown to people."""
    key = ServiceKey(Namespace("shop"), ServiceName("web"))
    found = passed(Request(None, key, Port(80), "X" * 60_000), EscapedSlashes.REJECT)
    assert isinstance(found, LocalReply)
    assert len(found.why) < 120
