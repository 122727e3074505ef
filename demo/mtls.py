"""A sidecar's inbound port, tried by hand: what it must refuse, and what the same port accepts.

Blocking sockets, one attempt per call: run it in a thread. The port is reached as any peer reaches it.
"""

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo.apps import names, wire

_SECONDS: Final = 5.0
_GREETING_SECONDS: Final = 1.0
_NO_ANSWER: Final = "no answer"


@dataclass(frozen=True, slots=True)
class Target:
    """An inbound port: where it is, its certificate's name, and the CA that must have signed that."""

    host: str
    port: int
    server_name: str
    ca: Path


@dataclass(frozen=True, slots=True)
class Credentials:
    """A certificate chain and its key; one file may hold both."""

    chain: Path
    key: Path


def _request(server_name: str, caller: str, token: str) -> bytes:
    lines = [
        f"GET {names.BUY_A_BOOK} HTTP/1.1",
        f"Host: {server_name}",
        f"{names.CALLER_HEADER}: {caller}",
        f"{names.TOKEN_HEADER}: {token}",
        f"User-Agent: {names.USER_AGENT}",
        "Connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def _status(answer: bytes) -> str:
    """Return the status code of an HTTP answer, or that there is none."""
    words = answer.split(b" ", 2)
    return words[1].decode() if len(words) > 2 and words[0].startswith(b"HTTP/1.") else _NO_ANSWER


def plain(target: Target, token: str) -> str:
    """Send an HTTP request without TLS; return the status, or how the connection ended."""
    try:
        with socket.create_connection((target.host, target.port), _SECONDS) as connection:
            connection.settimeout(_SECONDS)
            connection.sendall(_request(target.server_name, "plain", token))
            return _status(connection.recv(4096))
    except TimeoutError:
        return "timeout"
    except OSError as error:
        return type(error).__name__


def tls(target: Target, token: str, caller: str, credentials: Credentials | None) -> str:
    """Send an HTTP request over TLS, with or without a client certificate; return the status or the failure.

    The server's certificate is always checked, against the CA and for its name. In TLS 1.3 a refused
    client learns of it only when it reads.
    """

    def ask(connection: ssl.SSLSocket) -> str:
        connection.sendall(_request(target.server_name, caller, token))
        return _status(connection.recv(4096))

    return _over_tls(target, credentials, ask)


def database(target: Target, token: str, credentials: Credentials) -> str:
    """Talk to a database behind an inbound port: wait for its greeting, then insert.

    Return `greeted, stored`, or what came instead. Whoever may not call must not even see the greeting:
    with a server that speaks first, being let in and being heard are two things.
    """

    def talk(connection: ssl.SSLSocket) -> str:
        connection.settimeout(_GREETING_SECONDS)
        try:
            greeted = wire.GREETING in connection.recv(4096)
        except TimeoutError:
            greeted = False
        connection.settimeout(_SECONDS)
        connection.sendall(wire.packet(0, bytes([wire.COM_QUERY]) + f"INSERT probe {token}".encode()))
        stored = wire.OK_ANSWER in connection.recv(4096)
        return ", ".join(("greeted" if greeted else "not greeted", "stored" if stored else "not stored"))

    return _over_tls(target, credentials, talk)


def _over_tls(target: Target, credentials: Credentials | None, talk: Callable[[ssl.SSLSocket], str]) -> str:
    """Return what `talk` says of a TLS connection, or how that failed."""
    context = ssl.create_default_context(cafile=str(target.ca))
    if credentials is not None:
        context.load_cert_chain(credentials.chain, credentials.key)
    try:
        with (
            socket.create_connection((target.host, target.port), _SECONDS) as plain_connection,
            context.wrap_socket(plain_connection, server_hostname=target.server_name) as connection,
        ):
            return talk(connection)
    except ssl.SSLCertVerificationError as error:
        return f"the server's certificate: {error.verify_message}"
    except ssl.SSLError as error:
        return str(error.reason or "TLS error").lower().replace("_", " ")
    except TimeoutError:
        return "timeout"
    except OSError as error:
        return type(error).__name__


def is_refused(answer: str) -> bool:
    """Say whether a sidecar turned an attempt away: it was reached, and nobody behind it answered.

    A port where nobody listens, a wrong server certificate or a timeout is a fault, not a refusal.
    """
    fault = answer in ("timeout", "ConnectionRefusedError", "gaierror") or answer.startswith("the server's")
    return not fault and not answer.isdigit() and not answer.startswith("greeted")
