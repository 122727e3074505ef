"""Decoder of traffic reports, with checks of every field."""

import math
import sys
from collections.abc import Iterable
from typing import Final

from meshwright.traffic.statistics import (
    CLASSES,
    TIMES,
    CalledPort,
    Calls,
    Direction,
    Figures,
    Kind,
    Protocol,
    Report,
)
from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire

MOST_COUNTED: Final = 2**31
"""Maximum number of requests or connections between two reports."""
MOST_BYTES: Final = 2**50
MOST_NAME: Final = 253

_DIRECTIONS: Final = {wire.OUTBOUND: Direction.OUTBOUND, wire.INBOUND: Direction.INBOUND}
_PROTOCOLS: Final = {wire.HTTP: Protocol.HTTP, wire.TCP: Protocol.TCP}


class BadReport(ValueError):
    """Error for an invalid report; names the field, the value, and a valid value."""


def report(said: wire.ReportRequest) -> Report:
    """Return a report; raise BadReport for any invalid field, without counting such a report in part."""
    if not 0 < len(said.run) <= MOST_NAME:
        raise BadReport(f"run is {said.run[:MOST_NAME]!r}: must have 1 to {MOST_NAME} characters")
    if not said.number:
        raise BadReport("number is 0: the first report of a run has number 1")
    rows = (*map(_edge, said.edges), *map(_backend, said.backends), *map(_route, said.routes))
    return Report(said.run, said.number, _amount("seconds", said.seconds, MOST_COUNTED), rows)


def _edge(said: wire.Edge) -> tuple[Calls, Figures]:
    calls = Calls(Kind.EDGE, _direction(said.direction), _protocol(said.protocol), _called(said.called))
    return calls, _figures(said.requests, said.connections)


def _backend(said: wire.Backend) -> tuple[Calls, Figures]:
    calls = Calls(Kind.BACKEND, Direction.OUTBOUND, Protocol.HTTP, _called(said.called))
    return calls, _figures(said.requests, said.connections, said.retries)


def _route(said: wire.Route) -> tuple[Calls, Figures]:
    name = _name("the name of a route", said.name)
    calls = Calls(Kind.ROUTE, _direction(said.direction), Protocol.HTTP, _called(said.called), name)
    return calls, _figures(said.requests)


def _figures(
    requests: wire.Requests, connections: wire.Connections | None = None, retries: int = 0
) -> Figures:
    connections = connections or wire.Connections()
    return Figures(
        by_class=_counts("requests.by_class", requests.by_class, CLASSES),
        by_time=_counts("requests.by_time", requests.by_time, TIMES),
        grpc_failed=_count("requests.grpc_failed", requests.grpc_failed),
        retries=_count("retries", retries),
        opened=_count("connections.opened", connections.opened),
        failed=_count("connections.failed", connections.failed),
        tls=_count("connections.tls", connections.tls),
        milliseconds=round(1000 * _amount("requests.seconds", requests.seconds, MOST_BYTES)),
        sent_bytes=_count("connections.sent_bytes", connections.sent_bytes, MOST_BYTES),
        received_bytes=_count("connections.received_bytes", connections.received_bytes, MOST_BYTES),
    )


def _counts(what: str, said: Iterable[int], wanted: int) -> tuple[int, ...]:
    result = tuple(said)
    # Protobuf leaves an empty list out, so a report without requests is short.
    if not result:
        return (0,) * wanted
    if len(result) != wanted:
        raise BadReport(f"{what} has {len(result)} numbers: must have {wanted} or none")
    _count(what, max(result))
    return result


def _count(what: str, said: int, most: int = MOST_COUNTED) -> int:
    if said > most:
        raise BadReport(f"{what} is {said}: must be at most {most}")
    return said


def _amount(what: str, said: float, most: float) -> float:
    if not math.isfinite(said) or not 0 <= said <= most:
        raise BadReport(f"{what} is {said}: must be from 0 to {most}")
    return said


def _called(said: wire.Called) -> CalledPort:
    if said.port >= 65536:
        raise BadReport(f"the port of a called service is {said.port}: must be at most 65535")
    return CalledPort(
        _name("the namespace of a called service", said.namespace),
        _name("the name of a called service", said.service),
        said.port,
        _name("the name of a port", said.port_name),
    )


def _name(what: str, said: str) -> str:
    if len(said) > MOST_NAME or not said.isprintable():
        raise BadReport(
            f"{what} is {said[:MOST_NAME]!r}: must have at most {MOST_NAME} characters, all printable"
        )
    return sys.intern(said)  # the same few names are in every report and are kept for an hour, so share them


def _direction(said: wire.Direction) -> Direction:
    if (direction := _DIRECTIONS.get(said)) is None:
        raise BadReport(f"direction is {said}: must be OUTBOUND (1) or INBOUND (2)")
    return direction


def _protocol(said: wire.Protocol) -> Protocol:
    if (protocol := _PROTOCOLS.get(said)) is None:
        raise BadReport(f"protocol is {said}: must be HTTP (1) or TCP (2)")
    return protocol
