"""Facts of one server about its own proxies, for the pages and the API of other servers.

Everything else on a page is computed from the same input by each server, and is therefore not sent.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Final

from pydantic import TypeAdapter, ValidationError

from meshwright.admin.readers import MeshReading
from meshwright.delivery.proxies.held_certificates import HeldCertificate
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.delivery.quarantine.exclusions import LeftOut
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.problems.problem import Problems
from xds.protocol.resources.resource import ResourceName, TypeUrl
from xds.stream_status import StreamStatus

NAMED: Final = 20
"""Maximum number of rejected resources with the proxy's error, because each search takes a while."""

AT_A_TIME: Final = 100
"""Number of proxies that are described before other tasks of the event loop run."""


class UnreadableAnswerError(ValueError):
    """Error for an answer of another server that cannot be read; the sentence names the field."""


@dataclass(frozen=True, slots=True)
class RejectedFact:
    """A resource that a proxy has rejected, with the proxy's error, empty if unknown."""

    type_url: TypeUrl
    name: ResourceName
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class ProxyFacts:
    """Facts about one proxy that is or was connected to the server.

    The names of resources are left out of `streams`, because they would be most of the answer.
    """

    status: ProxyStatus
    streams: tuple[StreamStatus, ...] = ()
    rejected: tuple[RejectedFact, ...] = ()
    unreceived: str = ""
    failure: str = ""
    held: HeldCertificate | None = None


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """Facts of one server.

    `problems` are those that only this server can know: rejections by its proxies, and identities shared by
    several of them. `last_seen` is the time of the last use of a certificate at this server, by serial.
    """

    proxies: tuple[ProxyFacts, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    ejected: Mapping[str, tuple[ProxyName, ...]] = field(default_factory=dict)
    problems: Problems = ()
    failures: tuple[tuple[str, str, bool], ...] = ()
    last_seen: Mapping[str, datetime] = field(default_factory=dict)
    answers: int = 0


async def facts_of(reading: MeshReading, own_problems: Problems) -> ReplicaFacts:
    """Return the facts of this server. Other tasks run after every AT_A_TIME proxies."""
    statuses = [status for status in reading.proxies() if status.state is not ProxyState.EXPECTED]
    streams, left = _by_proxy(reading.streams()), iter(range(NAMED))
    proxies = list[ProxyFacts]()
    for status in statuses:
        proxies.append(_proxy_facts(reading, status, streams.get(str(status.name), ()), left))
        if len(proxies) % AT_A_TIME == 0:
            await asyncio.sleep(0)
    # In a thread, because certificates are parsed, and the ledger may be long.
    held, last_seen = await asyncio.to_thread(_certificates, reading, [status.name for status in statuses])
    return ReplicaFacts(
        proxies=tuple(replace(facts, held=held.get(facts.status.name)) for facts in proxies),
        left_out=reading.left_out(),
        ejected=dict(reading.ejected()),
        problems=own_problems,
        failures=reading.failures(),
        last_seen=last_seen,
        answers=reading.answers(),
    )


def _proxy_facts(
    reading: MeshReading, status: ProxyStatus, streams: Iterable[StreamStatus], left: Iterator[object]
) -> ProxyFacts:
    name = status.name
    # `left` is shared by all proxies: only the first NAMED resources of the answer get their error.
    rejected = tuple(
        RejectedFact(
            kind, resource, "" if next(left, None) is None else reading.refusal(name, kind, resource)
        )
        for kind, resource in reading.rejected(name)
    )
    return ProxyFacts(
        status,
        tuple(map(_without_names, streams)),
        rejected,
        reading.unreceived(name),
        reading.failure(name),
    )


def _certificates(
    reading: MeshReading, names: Iterable[ProxyName]
) -> tuple[dict[ProxyName, HeldCertificate], dict[str, datetime]]:
    held = {name: held for name in names if (held := reading.held_certificate(name)) is not None}
    seen = {entry.serial: entry.seen_at for entry in reading.ledger() if entry.seen_at is not None}
    return held, seen


def _by_proxy(statuses: Iterable[StreamStatus]) -> dict[str, list[StreamStatus]]:
    result: dict[str, list[StreamStatus]] = {}
    for status in statuses:
        result.setdefault(status.node_key, []).append(status)
    return result


def _without_names(stream: StreamStatus) -> StreamStatus:
    return replace(stream, types=tuple(replace(status, names=()) for status in stream.types))


def encode_facts(facts: ReplicaFacts) -> bytes:
    """Return facts as JSON."""
    return _adapter().dump_json(facts)


def decode_facts(content: bytes) -> ReplicaFacts:
    """Return the facts in an answer; raise UnreadableAnswerError.

    Unknown fields are ignored, because the other server may have a newer version.
    """
    try:
        return _adapter().validate_json(content)
    except ValidationError as error:
        raise UnreadableAnswerError(first_error(error)) from None


def first_error(error: ValidationError) -> str:
    """Return the first error as a sentence with the field, without the value."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"])) or "answer"
    return f"{where}: {first['msg']}"


@cache
def _adapter() -> TypeAdapter[ReplicaFacts]:
    # Made at first use, because a server without others never needs it.
    return TypeAdapter(ReplicaFacts)
