"""The shape of what `/api/v1/stat` answers."""

from typing import Final

from admin.api.shape import MOMENT, NUMBER, TEXT, WHOLE, listed, maybe, noted, one_of, record

_PORT: Final = noted({"type": ["integer", "string"]}, "a number, or the name of a target port")
_END: Final = record({"namespace": TEXT, "service": TEXT})
_CALLED: Final = record({"namespace": TEXT, "service": TEXT, "port": maybe(_PORT)})
_REPORTING: Final = record({"proxies": WHOLE, "connected": WHOLE, "every_seconds": NUMBER})
_ROW: Final = record(
    {
        "source": maybe(_END),
        "destination": maybe(_CALLED),
        "proxy": maybe(TEXT),
        "route": maybe(TEXT),
        "backend": maybe(_CALLED),
        "direction": one_of("outbound", "inbound"),
        "protocol": one_of("http", "tcp"),
        "requests": WHOLE,
        "per_second": NUMBER,
        "success": noted(maybe(NUMBER), "the part that did not fail, 0 to 1; null of none"),
        "failures": WHOLE,
        "by_class": record({f"{number}xx": WHOLE for number in range(1, 6)}),
        "grpc_failed": WHOLE,
        **{f"p{part}_ms": maybe(NUMBER) for part in (50, 95, 99)},
        "retries": WHOLE,
        "connections": WHOLE,
        "connections_failed": WHOLE,
        "sent_bytes": WHOLE,
        "received_bytes": WHOLE,
    }
)
STAT: Final = record(
    {
        "at": MOMENT,
        "window_seconds": noted(NUMBER, "what the rates are over"),
        "reporting": _REPORTING,
        "rows": listed(_ROW),
    }
)
