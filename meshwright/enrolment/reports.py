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


def report(request: wire.ReportRequest) -> Report:
    """Return a report; raise BadReport for any invalid field, without counting such a report in part."""
    if not 0 < len(request.run) <= MOST_NAME:
        raise BadReport(f"run is {request.run[:MOST_NAME]!r}: must have 1 to {MOST_NAME} characters")
    if not request.number:
        raise BadReport("number is 0: the first report of a run has number 1")
    rows = (*map(_edge, request.edges), *map(_backend, request.backends), *map(_route, request.routes))
    return Report(request.run, request.number, _amount("seconds", request.seconds, MOST_COUNTED), rows)


def _edge(edge: wire.Edge) -> tuple[Calls, Figures]:
    calls = Calls(Kind.EDGE, _direction(edge.direction), _protocol(edge.protocol), _called(edge.called))
    return calls, _figures(edge.requests, edge.connections)


def _backend(backend: wire.Backend) -> tuple[Calls, Figures]:
    calls = Calls(Kind.BACKEND, Direction.OUTBOUND, Protocol.HTTP, _called(backend.called))
    return calls, _figures(backend.requests, backend.connections, backend.retries)


def _route(route: wire.Route) -> tuple[Calls, Figures]:
    name = _name("the name of a route", route.name)
    calls = Calls(Kind.ROUTE, _direction(route.direction), Protocol.HTTP, _called(route.called), name)
    return calls, _figures(route.requests)


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


def _counts(subject: str, numbers: Iterable[int], wanted: int) -> tuple[int, ...]:
    result = tuple(numbers)
    # Protobuf leaves an empty list out, so a report without requests is short.
    if not result:
        return (0,) * wanted
    if len(result) != wanted:
        raise BadReport(f"{subject} has {len(result)} numbers: must have {wanted} or none")
    _count(subject, max(result))
    return result


def _count(subject: str, number: int, most: int = MOST_COUNTED) -> int:
    if number > most:
        raise BadReport(f"{subject} is {number}: must be at most {most}")
    return number


def _amount(subject: str, amount: float, most: float) -> float:
    if not math.isfinite(amount) or not 0 <= amount <= most:
        raise BadReport(f"{subject} is {amount}: must be from 0 to {most}")
    return amount


def _called(called: wire.Called) -> CalledPort:
    if called.port >= 65536:
        raise BadReport(f"the port of a called service is {called.port}: must be at most 65535")
    return CalledPort(
        _name("the namespace of a called service", called.namespace),
        _name("the name of a called service", called.service),
        called.port,
        _name("the name of a port", called.port_name),
    )


def _name(subject: str, text: str) -> str:
    if len(text) > MOST_NAME or not text.isprintable():
        raise BadReport(
            f"{subject} is {text[:MOST_NAME]!r}: must have at most {MOST_NAME} characters, all printable"
        )
    return sys.intern(text)  # the same few names are in every report and are kept for an hour, so share them


def _direction(wire_direction: wire.Direction) -> Direction:
    if (direction := _DIRECTIONS.get(wire_direction)) is None:
        raise BadReport(f"direction is {wire_direction}: must be OUTBOUND (1) or INBOUND (2)")
    return direction


def _protocol(wire_protocol: wire.Protocol) -> Protocol:
    if (protocol := _PROTOCOLS.get(wire_protocol)) is None:
        raise BadReport(f"protocol is {wire_protocol}: must be HTTP (1) or TCP (2)")
    return protocol
