"""HTTP over a Unix socket, with the interface of http.client."""

import http.client
import socket
from pathlib import Path


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the socket at `path`; the host name is used only for the Host header."""

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path
        self._seconds = seconds

    def connect(self) -> None:
        """Connect to the Unix socket at `path`."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self._seconds)
        self.sock.connect(str(self._path))
