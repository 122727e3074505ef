"""JSON shapes of the answers of `/api/v1/stat` and `/api/v1/topology`."""

from typing import Final

from meshwright.admin.api.shape import (
    FLAG,
    MOMENT,
    NUMBER,
    PORT,
    TEXT,
    WHOLE,
    listed,
    maybe,
    noted,
    one_of,
    record,
)

_END: Final = record({"namespace": TEXT, "service": TEXT})
_CALLED: Final = record({"namespace": TEXT, "service": TEXT, "port": maybe(PORT)})
_REPORTING: Final = record({"proxies": WHOLE, "connected": WHOLE, "every_seconds": NUMBER})
FIGURES: Final = {
    "requests": WHOLE,
    "per_second": NUMBER,
    "success": noted(maybe(NUMBER), "fraction of requests that did not fail, 0 to 1; null without requests"),
    "failures": WHOLE,
    "by_class": record({f"{number}xx": WHOLE for number in range(1, 6)}),
    "grpc_failed": WHOLE,
    **{f"p{part}_ms": maybe(NUMBER) for part in (50, 95, 99)},
    "retries": WHOLE,
    "connections": WHOLE,
    "connections_failed": WHOLE,
    "tls_handshakes": noted(WHOLE, "TLS handshakes with backends"),
    "sent_bytes": WHOLE,
    "received_bytes": WHOLE,
}
_ROW: Final = record(
    {
        "source": maybe(_END),
        "destination": maybe(_CALLED),
        "proxy": maybe(TEXT),
        "route": maybe(TEXT),
        "backend": maybe(_CALLED),
        "direction": one_of("outbound", "inbound"),
        "protocol": one_of("http", "tcp"),
        **FIGURES,
    }
)
_NODE: Final = record(
    {
        "id": noted(TEXT, "a service, for example shop/cart, a namespace, or a host outside the mesh"),
        "namespace": maybe(TEXT),
        "name": TEXT,
        "kind": one_of("service", "namespace", "outside"),
        "proxies": record({"known": WHOLE, "connected": WHOLE, "in_step": WHOLE}),
        "verdict": one_of("ok", "info", "warning", "failed"),
    }
)
_SHARE: Final = noted(maybe(NUMBER), "fraction of the requests that the backend received, 0 to 1")
_EDGE: Final = record(
    {
        "source": TEXT,
        "destination": TEXT,
        "allowed": noted(
            maybe(FLAG),
            "some object allows the edge; null outside the mesh and for backends of a TrafficSplit or route",
        ),
        "by": noted(listed(TEXT), "objects that allow the edge"),
        "configured": noted(FLAG, "the edge is allowed, and a sidecar of the source is in step"),
        "verified": noted(
            FLAG, "policy allows all observed traffic; false: only the caller reports some of the traffic"
        ),
        "seen": noted(maybe(record(FIGURES)), "statistics reported by the callers; null without requests"),
        "mtls": noted(maybe(FLAG), "a connection of the last hour used mTLS; null without connections"),
        "weights": noted(
            listed(
                record(
                    {
                        "split": noted(maybe(TEXT), "the TrafficSplit; null for a route"),
                        "by": noted(TEXT, "the TrafficSplit or route, with its kind"),
                        "rule": noted(maybe(TEXT), "the rule of a route, such as spec.rules[0]"),
                        "part": NUMBER,
                    }
                )
            ),
            "configured fractions of a TrafficSplit, or of the rules of routes, for an edge to a backend",
        ),
        "share": _SHARE,
    }
)
TOPOLOGY: Final = record(
    {
        "at": MOMENT,
        "window_seconds": noted(NUMBER, "length of the window of the rates"),
        "by": one_of("service", "namespace"),
        "services": noted(WHOLE, "number of services in the mesh"),
        "edges_in_all": noted(WHOLE, "number of edges without limit and offset"),
        "nodes": listed(_NODE),
        "edges": listed(_EDGE),
    }
)
STAT: Final = record(
    {
        "at": MOMENT,
        "window_seconds": noted(NUMBER, "length of the window of the rates"),
        "reporting": _REPORTING,
        "rows_in_all": noted(WHOLE, "number of rows without limit and offset"),
        "rows": listed(_ROW),
    }
)
