"""Which HTTP requests may become tunnels, and how long a quiet TCP connection lives."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

WEBSOCKET: Final = "websocket"


@dataclass(frozen=True, slots=True)
class LongLived:
    """Settings of the operator for traffic that stays open.

    `upgrades` are the HTTP/1.1 upgrades (values of the header Upgrade) that proxies pass, in lower case and
    sorted. All others are ignored: the request goes on without them (RFC 9110, section 7.8).
    `tcp_idle` is how long a TCP connection lives on which neither side sends a byte; None is without end.
    """

    upgrades: tuple[str, ...] = (WEBSOCKET,)
    tcp_idle: timedelta | None = timedelta(days=7)

    @classmethod
    def of(cls, *, upgrades: tuple[str, ...], tcp_idle_seconds: int) -> "LongLived":
        """Build the value from settings as operators write them; 0 seconds is without end."""
        names = tuple(sorted({each.lower() for each in upgrades}))
        return cls(names, timedelta(seconds=tcp_idle_seconds) if tcp_idle_seconds else None)
