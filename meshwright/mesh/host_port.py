"""Listening addresses in the notation of settings."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, order=True)
class HostPort:
    """A host and a TCP port; for a listener, port 0 lets the system choose."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, example: int = 9092) -> Self:
        """Parse `HOST:PORT`, with an IPv6 host in brackets. Raises ValueError with `example` as the port."""
        host, _, port = text.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            host = ""  # ambiguous: an IPv6 address needs brackets
        if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
            raise ValueError(f"must be HOST:PORT, for example 127.0.0.1:{example} or [::1]:{example}")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
