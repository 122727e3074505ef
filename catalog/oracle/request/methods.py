"""HTTP methods forwarded by sidecars.

Envoy's parser of HTTP/1 has a fixed list, and answers any other method with 400 before routes and rules.
HTTP/2 is without such a list. Envoy 1.40 also forwards QUERY (RFC 10008), and answers 400 in both protocols
to a QUERY without Content-Type.

Envoy's field `allow_custom_methods` would remove the list, but Envoy marks the field as work in progress and
outside the threat model, so sidecars do not set the field.
"""

from collections.abc import Iterable
from typing import Final

from catalog.oracle.request.paths import LocalReply

IN_HTTP1: Final = frozenset(
    {
        *("ACL", "BIND", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "MERGE"),
        *("MKACTIVITY", "MKCALENDAR", "MKCOL", "MOVE", "MSEARCH", "NOTIFY", "OPTIONS", "PATCH", "POST"),
        *("PROPFIND", "PROPPATCH", "PURGE", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "SOURCE"),
        *("SUBSCRIBE", "TRACE", "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE"),
    }
)
"""Methods known to Envoy's parser of HTTP/1, in capitals as required."""


def turned_down(method: str, headers: Iterable[tuple[str, str]], *, http2: bool) -> LocalReply | None:
    """Return a sidecar's own answer to a refused method, for example BAN in HTTP/1.1."""
    if method == "CONNECT":
        return LocalReply(404, "sidecars do not open tunnels (CONNECT)")
    if not http2 and method not in IN_HTTP1:
        return LocalReply(
            400, f"Envoy does not know the method {method[:40]} in HTTP/1.1; HTTP/2 admits every method"
        )
    if method == "QUERY" and not any(name.lower() == "content-type" for name, _ in headers):
        return LocalReply(400, "a QUERY needs a Content-Type (RFC 10008)")
    return None
