"""Pulse of a server: few values, asked every second or so, by which others notice its changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pydantic import TypeAdapter, ValidationError

from meshwright.admin.readers import MeshReading
from meshwright.admin.replicas.facts import UnreadableAnswerError, first_error
from meshwright.delivery.proxies.status import ProxyState
from meshwright.mesh.problems.problem import Problems


@dataclass(frozen=True, slots=True)
class Pulse:
    """Proxies that are connected to a server or have disconnected, and values that change with its proxies.

    `problems` are the problems that only this server can know. `reported` is the time of the last traffic
    report by the server's own clock, so it is compared for equality only: for
    example, a new value means new figures of the traffic.
    """

    connected: tuple[str, ...] = ()
    answers: int = 0
    reported: float | None = None
    problems: Problems = ()
    disconnected: tuple[str, ...] = ()


def pulse_of(reading: MeshReading, own_problems: Problems) -> Pulse:
    """Return the pulse of this server."""
    connected, disconnected = list[str](), list[str]()
    # Expected proxies are left out, because every server knows them from the same input.
    for status in reading.proxies():
        if status.state is ProxyState.CONNECTED:
            connected.append(str(status.name))
        elif status.state is ProxyState.DISCONNECTED:
            disconnected.append(str(status.name))
    newest = reading.traffic().newest
    return Pulse(tuple(connected), reading.answers(), newest, own_problems, tuple(disconnected))


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Facts of a server about itself.

    `store_seconds` is the time since the last answer of the shared store, None if it has never answered.
    `settings` has a digest of the value of each setting that must be the same at all servers.
    """

    store_seconds: float | None = None
    settings: Mapping[str, str] | None = None


def encode_pulse(pulse: Pulse) -> bytes:
    """Return a pulse as JSON."""
    return _pulse().dump_json(pulse)


def decode_pulse(content: bytes) -> Pulse:
    """Return the pulse in an answer; raise UnreadableAnswerError."""
    try:
        return _pulse().validate_json(content)
    except ValidationError as error:
        raise UnreadableAnswerError(first_error(error)) from None


def encode_server(facts: ServerFacts) -> bytes:
    """Return the facts of a server as JSON."""
    return _server().dump_json(facts)


def decode_server(content: bytes) -> ServerFacts:
    """Return the facts of a server in an answer; raise UnreadableAnswerError."""
    try:
        return _server().validate_json(content)
    except ValidationError as error:
        raise UnreadableAnswerError(first_error(error)) from None


@cache
def _pulse() -> TypeAdapter[Pulse]:
    return TypeAdapter(Pulse)


@cache
def _server() -> TypeAdapter[ServerFacts]:
    return TypeAdapter(ServerFacts)
