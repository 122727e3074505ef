"""Tests of the request targets that sidecars pass on, from Envoy's documentation and RFC 3986.

Real Envoys: tests/differential/test_paths.py.
"""

import pytest

from catalog.oracle.request.paths import ForwardedTarget, LocalReply, hidden_dots, passed_on
from meshwright.mesh.service import EscapedSlashes

REJECT, KEEP = EscapedSlashes.REJECT, EscapedSlashes.KEEP


@pytest.mark.parametrize(
    ("written", "passed"),
    [
        (b"/", b"/"),
        (b"/books/1?x=%2f/../y", b"/books/1?x=%2f/../y"),
        (b"/a/b/c/./../../g", b"/a/g"),  # RFC 3986, section 5.2.4
        (b"/mid/content=5/../6", b"/mid/6"),
        (b"/..", b"/"),
        (b"/a/..", b"/"),
        (b"/a/.", b"/a/"),
        (b"/a/%2e%2E/b", b"/b"),
        (b"/a//../b", b"/a/b"),
        (b"//a", b"//a"),
        (b"/a\\..\\b", b"/b"),
        (b"/a/..;x=1/b", b"/b"),
        (b"/a/.;/b", b"/a/b"),
        (b"/a;x=1/b", b"/a;x=1/b"),
        (b"/%62%6F%6fks%2d%5F%7e%2E", b"/books-_~."),
        (b"/%C3%a9%20%2b", b"/%C3%a9%20%2b"),
        (b'/{"a"}|^`<>', b"/%7B%22a%22%7D%7C%5E%60%3C%3E"),
        (b"/%zz%", b"/%zz%"),
        (b"/a/%2%65%2%65/b", b"/a/%252e%252e/b"),  # normalisation creates no new escape
        (b"/%%32e", b"/%252e"),
        (b"/%252e%252e/a", b"/%252e%252e/a"),
    ],
)
def test_target_is_normalised_once_in_both_protocols(written: bytes, passed: bytes) -> None:
    """HTTP/1.1 and HTTP/2 give the same target, and a second normalisation changes nothing."""
    assert [passed_on(written, REJECT, http2=item) for item in (False, True)] == [ForwardedTarget(passed)] * 2
    assert passed_on(passed, REJECT) == ForwardedTarget(passed)


@pytest.mark.parametrize("slash", [b"%2f", b"%2F", b"%5c", b"%5C"])
def test_escaped_slash_in_a_path_is_refused_unless_kept(slash: bytes) -> None:
    """A path with an escaped slash gets 400 unless the setting keeps it; a query may have one."""
    assert _status(passed_on(b"/a" + slash + b"b", REJECT)) == 400
    assert passed_on(b"/a" + slash + b"b", KEEP) == ForwardedTarget(b"/a" + slash + b"b")
    assert passed_on(b"/a?b" + slash, REJECT) == ForwardedTarget(b"/a?b" + slash)


@pytest.mark.parametrize(
    ("written", "statuses"),
    [
        (b"/a#b", (400, 400)),
        (b"/a?b#c", (400, 400)),
        (b"/%00", (400, 400)),
        (b"", (400, 0)),
        (b"a", (400, 0)),
        (b"/a b", (400, 0)),
        (b"/\x00", (400, 0)),
        (b"http://y?q", (404, 0)),
        (b"ftp://y/", (400, 0)),
        (b"http://y_/", (400, 0)),
        (b"http://y:65536/", (400, 0)),
        (b"*", (400, 0)),
    ],
)
def test_invalid_target_is_refused_with_a_status_by_protocol(
    written: bytes, statuses: tuple[int, int]
) -> None:
    """HTTP/1.1 has a status. In HTTP/2, Envoy may end the stream or connection earlier (0)."""
    assert tuple(_status(passed_on(written, REJECT, http2=item)) for item in (False, True)) == statuses


def test_target_forms_of_one_protocol_are_accepted_in_that_protocol_only() -> None:
    """HTTP/2 accepts bytes beyond ASCII.

    HTTP/1.1 has the absolute form, and `*` for the whole server gets 404.
    """
    assert _status(passed_on("/café".encode(), REJECT)) == 400
    assert passed_on("/café".encode(), REJECT, http2=True) == ForwardedTarget(b"/caf%C3%A9")
    assert passed_on(b"HTTP://u:p@y:80/a/../b?c", REJECT) == ForwardedTarget(b"/b?c", b"y:80")
    assert passed_on(b"http://[::1]", REJECT) == ForwardedTarget(b"/", b"[::1]")
    assert _status(passed_on(b"*", REJECT, method="OPTIONS")) == 404


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        (b"/a/..;/b", True),
        (b"/.;x", True),
        (b"/a/..%2fb", True),
        (b"/a%5C..", True),
        (b"/a%2f.;x%2fb", True),
        (b"/a%2fb", False),
        (b"/a/...;/b", False),
        (b"/a;../b", False),
        (b"/a..%2fb", False),
    ],
)
def test_dot_segments_hidden_from_sidecars_are_detected(path: bytes, hidden: bool) -> None:
    """Some applications see dot segments after unescaping slashes and removing parameters."""
    assert (hidden_dots(path) is not None) is hidden


def _status(result: ForwardedTarget | LocalReply) -> int | None:
    return result.status if isinstance(result, LocalReply) else None
