"""Methods that a sidecar takes in HTTP/1: those of Envoy's parser, which answers 400 to others.

In HTTP/2 a sidecar takes any method. Envoy's setting that would let others pass in HTTP/1
(`allow_custom_methods`) is no stable one.
"""

from typing import Final

IN_HTTP1: Final = frozenset(
    {
        *("ACL", "BIND", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK"),
        *("MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MOVE", "MSEARCH", "NOTIFY", "OPTIONS", "PATCH"),
        *("POST", "PROPFIND", "PROPPATCH", "PURGE", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "SOURCE"),
        *("SUBSCRIBE", "TRACE", "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE"),
    }
)
