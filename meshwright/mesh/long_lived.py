"""Settings for HTTP upgrades to tunnels, and for idle TCP connections."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

WEBSOCKET: Final = "websocket"


@dataclass(frozen=True, slots=True)
class LongLived:
    """Operator's settings for long-lived traffic.

    - `upgrades`: HTTP/1.1 upgrades (values of the header Upgrade) allowed by proxies, in lower case and
      sorted, for example `websocket`. Others are ignored, and the request continues without them (RFC 9110,
      section 7.8).
    - `tcp_idle`: time after which a TCP connection without traffic is closed; None for never.
    """

    upgrades: tuple[str, ...] = (WEBSOCKET,)
    tcp_idle: timedelta | None = timedelta(days=7)

    @classmethod
    def from_settings(cls, *, upgrades: tuple[str, ...], tcp_idle_seconds: int) -> "LongLived":
        """Build the value from an operator's settings; 0 seconds means that idle connections stay open."""
        names = tuple(sorted({upgrade.lower() for upgrade in upgrades}))
        return cls(names, timedelta(seconds=tcp_idle_seconds) if tcp_idle_seconds else None)
