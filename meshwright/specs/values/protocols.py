"""Protocol of a service's port: from appProtocol, else the port's name, else its number."""

from typing import Final

from meshwright.mesh.names import Port
from meshwright.mesh.service import Protocol

BY_NAME = {
    "http": Protocol.HTTP,
    "http2": Protocol.HTTP,
    "h2c": Protocol.HTTP,
    "ws": Protocol.HTTP,
    "kubernetes.io/h2c": Protocol.HTTP,
    "kubernetes.io/ws": Protocol.HTTP,
    "grpc": Protocol.GRPC,
    "grpc-web": Protocol.GRPC,
    "tcp": Protocol.TCP,
    "https": Protocol.TCP,
    "tls": Protocol.TCP,
    "kubernetes.io/wss": Protocol.TCP,
    "mongo": Protocol.TCP,
    "postgres": Protocol.TCP,
    "postgresql": Protocol.TCP,
    "redis": Protocol.TCP,
    "tcp-server-first": Protocol.TCP_SERVER_FIRST,
    "mysql": Protocol.TCP_SERVER_FIRST,
    "smtp": Protocol.TCP_SERVER_FIRST,
}
"""Protocols by appProtocol. A protocol that the application encrypts is TCP for a sidecar."""

PREFIXES = ("tcp-server-first", "https", "http", "grpc", "tcp", "tls")
"""Names of a port, alone or before a hyphen; https precedes http, so that the longer word is found first."""

BY_PORT = {
    21: Protocol.TCP_SERVER_FIRST,  # FTP
    22: Protocol.TCP_SERVER_FIRST,  # SSH
    25: Protocol.TCP_SERVER_FIRST,  # SMTP
    110: Protocol.TCP_SERVER_FIRST,  # POP3
    143: Protocol.TCP_SERVER_FIRST,  # IMAP
    443: Protocol.TCP,  # HTTPS, encrypted by the application
    587: Protocol.TCP_SERVER_FIRST,  # SMTP submission
    3306: Protocol.TCP_SERVER_FIRST,  # MySQL
    5432: Protocol.TCP,  # PostgreSQL
    6379: Protocol.TCP,  # Redis
    27017: Protocol.TCP,  # MongoDB
}
"""Well-known ports with a protocol other than HTTP."""


_HTTP2: Final = ("http2", "h2c", "kubernetes.io/h2c")


def declares_http2(app_protocol: str | None, name: str) -> bool:
    """Return whether a port declares HTTP/2 in plain text, by appProtocol or else by the port's name."""
    if app_protocol:
        return app_protocol.lower() in _HTTP2
    return name.split("-", 1)[0] in _HTTP2


def declares_https(app_protocol: str | None) -> bool:
    """Return whether a port declares HTTP with TLS of the application, by appProtocol."""
    return (app_protocol or "").lower() in ("https", "kubernetes.io/wss")


def decide(app_protocol: str | None, name: str, port: Port) -> tuple[Protocol, str]:
    """Return the protocol and its origin: `appProtocol`, `name`, `port` or `default`.

    An unknown appProtocol means TCP, because parsing another protocol as HTTP would break its connections.
    """
    if app_protocol:
        return BY_NAME.get(app_protocol.lower(), Protocol.TCP), "appProtocol"
    # A port's name may have a suffix after the protocol, as in Istio: `http-web`.
    for word in PREFIXES:
        if name == word or name.startswith(word + "-"):
            return BY_NAME[word], "name"
    if port in BY_PORT:
        return BY_PORT[port], "port"
    return Protocol.HTTP, "default"
