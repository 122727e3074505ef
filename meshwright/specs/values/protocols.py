"""What is spoken on a service's port: decided from appProtocol, then the port's name, then its number."""

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
"""appProtocol values. What is encrypted by the application is TCP to a sidecar."""

PREFIXES = ("tcp-server-first", "https", "http", "grpc", "tcp", "tls")
"""Words that a port's name may be, or begin with before a hyphen; the longest of two stands first."""

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
"""Well-known numbers whose protocol is not HTTP, however little else is said."""


def decide(app_protocol: str | None, name: str, port: Port) -> tuple[Protocol, str]:
    """Return the protocol and what it was decided from: `appProtocol`, `name`, `port` or `default`.

    An appProtocol that is not known is TCP: whatever it is, it is not said to be HTTP.
    """
    if app_protocol:
        return BY_NAME.get(app_protocol.lower(), Protocol.TCP), "appProtocol"
    for word in PREFIXES:
        if name == word or name.startswith(word + "-"):
            return BY_NAME[word], "name"
    if port in BY_PORT:
        return BY_PORT[port], "port"
    return Protocol.HTTP, "default"
