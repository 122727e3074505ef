r"""Normalisation of a request target by a sidecar, before splits and rules see the path, as in Envoy.

Every connection manager on the way, the client's and the server's, does this in this order (Envoy's
HttpConnectionManager with `normalize_path`; `meshwright.sidecars.envoy.listeners.chains`):

- A malformed target is rejected. HTTP/1.1 allows printable ASCII and the absolute form, in which the
  authority replaces `host`; HTTP/2 also allows bytes from 0x80, but not the absolute form.
- A fragment is rejected, in the path or in the query.
- An escaped slash or backslash in the path is rejected, or kept unchanged (`EscapedSlashes`).
- `.;` or `..;` at the start of a segment loses the parameters; segments end only at `/` in this step.
- `\` becomes `/`. Dot segments are resolved (RFC 3986, section 5.2.4), with escaped dots as well. Escaped
  letters, digits and `-_~.` are unescaped, unless this makes a new escape. Characters outside URLs are
  escaped. Double slashes stay, and so does a `%` without an escape. A NUL, escaped or not, is rejected.

For example, `/a/../b%2Dc` becomes `/b-c`. The query is forwarded unchanged.
`tests/differential/test_paths.py` compares this module with a real Envoy.
"""

import re
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.service import EscapedSlashes


@dataclass(frozen=True, slots=True)
class ForwardedTarget:
    """A target in origin form as forwarded by a sidecar, with any authority in the target."""

    target: bytes
    authority: bytes | None = None

    @property
    def path(self) -> bytes:
        """Return the path without query, as seen by rules and splits."""
        return self.target.partition(b"?")[0]


@dataclass(frozen=True, slots=True)
class LocalReply:
    """A sidecar's own answer with this status, independent of policy; 0 closes the connection or stream.

    `why` is a clause.
    """

    status: int
    why: str

    @property
    def is_redirect(self) -> bool:
        """True for a redirect, which is what the author of a route wants, and no refusal."""
        return 300 <= self.status < 400


_PRINTABLE: Final = re.compile(rb"[!-~]+")
_ABSOLUTE: Final = re.compile(
    rb"https?://(?:[^/?#@]*@)?((?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?)([/?].*|)", re.IGNORECASE
)
_ESCAPED_SLASH: Final = re.compile(rb"%(?:2f|5c)", re.IGNORECASE)
_DOT_PARAMETERS: Final = re.compile(rb"(?<=/)(\.\.?);[^/]*")
_ESCAPED_DOT: Final = re.compile(rb"%2e", re.IGNORECASE)
_SLASH: Final = re.compile(rb"[/\\]")
_ESCAPE: Final = re.compile(rb"%[0-9A-Fa-f]{2}")
_UNESCAPED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPED: Final = frozenset(range(0x21)) | frozenset(b'"#<>?^`{|}') | frozenset(range(0x7F, 0x100))

_HIDDEN: Final = LocalReply(400, "some applications read a segment of its path as a dot segment")


def passed_on(
    target: bytes, slashes: EscapedSlashes, *, method: str = "GET", http2: bool = False
) -> ForwardedTarget | LocalReply:
    """Return the target forwarded by one sidecar, or the sidecar's own answer."""
    result = _http2(target) if http2 else _http1(target, method)
    if isinstance(result, LocalReply):
        return result
    if b"#" in result.target:
        return LocalReply(400, "it has a fragment (#); write %23 for the character")
    path, mark, query = result.target.partition(b"?")
    if slashes is EscapedSlashes.REJECT and _ESCAPED_SLASH.search(path):
        return LocalReply(400, "its path has an escaped slash (%2f) or backslash (%5c)")
    canonical = _canonical(_DOT_PARAMETERS.sub(rb"\1", path))
    if canonical is None:
        return LocalReply(400, "its path has an escaped NUL (%00)")
    return ForwardedTarget(canonical + mark + query, result.authority)


def hidden_dots(path: bytes) -> LocalReply | None:
    """Return a server's sidecar's rejection of a normalised path with a hidden dot segment, or `None`.

    A segment is hidden if unescaping slashes, or removing parameters (`;`), makes a dot segment, as in some
    applications. For example, `/books/..;/admin` must not pass a rule for `/books/.*`, because such an
    application reads `/admin`. The check comes after the rules, so a denied client gets 403.
    """
    segments = _SLASH.split(_ESCAPED_SLASH.sub(b"/", path))
    return _HIDDEN if any(segment.partition(b";")[0] in (b".", b"..") for segment in segments) else None


def _http1(target: bytes, method: str) -> ForwardedTarget | LocalReply:
    if _PRINTABLE.fullmatch(target) is None:
        return LocalReply(
            400, "an HTTP/1.1 request target has only printable ASCII characters; escape the others"
        )
    if target.startswith(b"/"):
        return ForwardedTarget(target)
    if target == b"*" and method == "OPTIONS":
        return LocalReply(404, "its target is the whole server (*), and sidecars pass on only paths")
    match = _ABSOLUTE.fullmatch(target)
    if match is None or int(match[2] or 0) > 65535:
        return LocalReply(400, "its target is neither a path that begins with / nor an http or https URL")
    if match[3].startswith(b"?"):
        return LocalReply(404, "its URL has a query but no path")
    return ForwardedTarget(match[3] or b"/", match[1])


def _http2(target: bytes) -> ForwardedTarget | LocalReply:
    if not target.startswith(b"/") or any(byte <= 0x20 or byte == 0x7F for byte in target):
        # Status 0: the connection ends without a response.
        return LocalReply(0, "a path in HTTP/2 begins with /, without spaces and control characters")
    return ForwardedTarget(target)


def _canonical(path: bytes) -> bytes | None:
    """Resolve dot segments and normalise each segment; `None` for a path with a NUL."""
    result: list[bytes] = []
    segments = _SLASH.split(path)[1:]
    for segment in segments:
        dots = _ESCAPED_DOT.sub(b".", segment)
        if dots == b"..":
            del result[-1:]
        elif dots != b".":
            written = _segment(segment)
            if written is None:
                return None
            result.append(written)
    # A final dot segment leaves a slash at the end, as in RFC 3986.
    if _ESCAPED_DOT.sub(b".", segments[-1]) in (b".", b".."):
        result.append(b"")
    return b"/" + b"/".join(result)


def _segment(segment: bytes) -> bytes | None:
    written, bare, position = (
        bytearray(),
        -3,
        0,
    )  # `bare`: position of the last % that is not part of an escape
    while position < len(segment):
        byte, escape = segment[position], _ESCAPE.match(segment, position)
        position += 3 if escape else 1
        if escape:
            byte = int(escape[0][1:], 16)
            if byte == 0:
                return None
            written += bytes((byte,)) if byte in _UNESCAPED else escape[0]
            if byte in _UNESCAPED and len(written) - bare <= 3:
                _guard(written, bare, segment[position : position + 1])
        elif byte in _ESCAPED:
            written += b"%%%02X" % byte
        else:
            if byte == ord("%"):
                bare = len(written)
            written.append(byte)
    return bytes(written)


def _guard(written: bytearray, bare: int, following: bytes) -> None:
    """Escape the `%` at index `bare` if, with the following unescaped characters, it would form an escape."""
    if _ESCAPE.match(bytes(written[bare:]) + following):
        written[bare : bare + 1] = b"%25"
