"""Attempts at a sidecar's inbound port: plain HTTP, and TLS with and without client certificates.

All functions block, so call them in a thread. The port is reached in the same way as by other workloads.
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
    """An inbound port: address, name in the server's certificate, and the CA that must have signed it."""

    host: str
    port: int
    server_name: str
    ca: Path


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files of a certificate chain and the private key; both may be one file."""

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
    """Return the status code of an HTTP response, or `no answer`."""
    words = answer.split(b" ", 2)
    return words[1].decode() if len(words) > 2 and words[0].startswith(b"HTTP/1.") else _NO_ANSWER


def plain(target: Target, token: str) -> str:
    """Send an HTTP request without TLS; return the status, or the error of the connection."""
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
    """Send an HTTP request over TLS, with or without a client certificate; return the status or the error.

    The server's certificate is always verified: the CA and the name. With TLS 1.3 a refused client gets the
    error only when it reads.
    """

    def ask(connection: ssl.SSLSocket) -> str:
        connection.sendall(_request(target.server_name, caller, token))
        return _status(connection.recv(4096))

    return _over_tls(target, credentials, ask)


def database(target: Target, token: str, credentials: Credentials) -> str:
    """Wait for the greeting of a database behind an inbound port, then insert.

    Return `greeted, stored` on success, or the result instead, for example `not greeted, not stored`. A
    denied client must not even see the greeting: with a server that speaks first, a proxy could forward the
    greeting although it blocks the commands of the client.
    """

    def talk(connection: ssl.SSLSocket) -> str:
        # The greeting has its own, shorter timeout, because the insert must be tried without a greeting too.
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
    """Return the result of `talk` on a TLS connection to the target, or the error of the connection."""
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
    """Return whether a sidecar refused an attempt: the sidecar was reached, and the program did not answer.

    A closed port, a wrong server certificate or a timeout is a fault and no refusal.
    """
    fault = answer in ("timeout", "ConnectionRefusedError", "gaierror") or answer.startswith("the server's")
    return not fault and not answer.isdigit() and not answer.startswith("greeted")
