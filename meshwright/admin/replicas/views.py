"""Views of pages and API over all servers: which view needs which answers of the others."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Final, TypeVar

from aiohttp import web

from meshwright.admin.jsonable import Document
from meshwright.admin.proxy_names import NothingToShow, find
from meshwright.admin.readers import MeshReading
from meshwright.admin.replicas import documents
from meshwright.admin.replicas.facts import UnreadableAnswerError, decode_facts
from meshwright.admin.replicas.members import Members, members_document
from meshwright.admin.replicas.peers import FACTS, PULSE, SERVER, TRAFFIC, PeerAnswers, Peers
from meshwright.admin.replicas.pulse import Pulse, ServerFacts, decode_pulse, decode_server
from meshwright.admin.replicas.reading import ReplicasReading
from meshwright.admin.replicas.traffic import decode_traffic
from meshwright.admin.replicas.view import Query, Scope, View
from meshwright.mesh.identity import ProxyName, is_proxy_name
from meshwright.replicas.membership import Membership

_T = TypeVar("_T")

_OF_PROXIES: Final = ("proxies", "participants")
"""Lists of a document with an entry for each proxy, which has the common name in `cn`."""


@dataclass(frozen=True, slots=True)
class ReplicaViews:
    """Views over all servers of a mesh. `reading` reads this server only, `server` has its own facts.

    `differing` returns the time in seconds for which the inputs of the servers have differed, or None.
    """

    peers: Peers
    membership: Membership
    reading: MeshReading
    server: Callable[[], ServerFacts]
    differing: Callable[[], float | None]
    clock: Callable[[], datetime]
    last_pulses: dict[str, Pulse] = field(default_factory=dict, repr=False)

    async def answer(self, view: View, only: str | None) -> Document:
        """Return a view over all servers, or the view of the server `only`.

        Raises NothingToShow for an unknown server, web.HTTPBadGateway for a server that does not answer, and
        the errors of the view.
        """
        if only is not None:
            return await self._of_one(view, only)
        match view.scope:
            case Scope.OWN:
                return await view.compute(self.reading)
            case Scope.FACTS:
                reading, silent = await self.over_all()
                document = _located(await view.compute(reading), reading)
            case Scope.TRAFFIC:
                reading, silent = await self.over_all(view.seconds)
                document = await view.compute(reading)
            case Scope.PROXY:
                reading, silent = await self.over_all()
                document = await self._of_proxy(view, reading)
            case _:
                document, silent = await self._of_all(view)
        return document | {"partial": documents.partial(silent)}

    async def read(self, seconds: float | None = None) -> tuple[MeshReading, Mapping[str, str]]:
        """Return a reading over all servers, and the reason of each server that is missing."""
        return await self.over_all(seconds)

    async def pulses(self) -> Mapping[str, Pulse]:
        """Return the pulses of the other servers; a silent one keeps its last pulse while it is here."""
        pulses, silent = decoded(await self.peers.ask(PULSE), decode_pulse)
        kept = {name: self.last_pulses[name] for name in silent if name in self.last_pulses}
        self.last_pulses.clear()
        self.last_pulses.update({**kept, **pulses})
        return dict(self.last_pulses)

    async def replicas(self) -> Document:
        """Return the servers of the mesh."""
        answers = await self.peers.ask(SERVER)
        facts, silent = decoded(answers, decode_server)
        membership = self.membership
        every = {**facts, self.peers.replica: self.server()}
        states = {str(name): state for name, state in membership.states.items()}
        return members_document(
            Members(membership.replica, membership.leader, states, every, silent, self.differing())
        )

    async def over_all(self, seconds: float | None = None) -> tuple[ReplicasReading, dict[str, str]]:
        """Return the reading over all servers, and the reason of each server that is missing."""
        questions = [self.peers.ask(FACTS)]
        if seconds is not None:
            questions.append(self.peers.ask(TRAFFIC, (("seconds", f"{seconds:g}"),)))
        facts, *traffic = await asyncio.gather(*questions)
        statuses, now = self.reading.proxies(), self.clock()

        def made() -> tuple[ReplicasReading, dict[str, str]]:
            read, silent = decoded(facts, decode_facts)
            figures, without = decoded(traffic[0] if traffic else PeerAnswers(), decode_traffic)
            reading = ReplicasReading(self.peers.replica, self.reading, statuses, read, now, figures)
            return reading, without | silent

        # In a thread, because the answers of a large mesh are long.
        return await asyncio.to_thread(made)

    async def _of_one(self, view: View, only: str) -> Document:
        if only == self.peers.replica:
            return documents.of_one(only, await view.compute(self.reading))
        if only not in (names := self.peers.names()):
            raise NothingToShow(f"replica {only[:200]!r} does not exist: must be one of {', '.join(names)}")
        return documents.of_one(only, await self._relayed(view.path, view.query, only))

    async def _relayed(self, path: str, query: Query, replica: str) -> Document:
        """Return the answer of another server; raise its error, or web.HTTPBadGateway without an answer."""
        answers = await self.peers.ask(path, query, replica)
        if (answer := answers.answers.get(replica)) is None:
            why = answers.silent.get(replica, "the server is not here any more")
            raise web.HTTPBadGateway(reason=f"server {replica} did not answer: {why}")
        try:
            document = await asyncio.to_thread(_document, answer.content)
        except UnreadableAnswerError as error:
            raise web.HTTPBadGateway(reason=f"server {replica}: {error}") from None
        if answer.is_fine:
            return document
        sentence = str(document.get("error", f"status {answer.status}"))
        if answer.status == HTTPStatus.NOT_FOUND:
            raise NothingToShow(sentence)
        if answer.status == HTTPStatus.BAD_REQUEST:
            raise web.HTTPBadRequest(reason=sentence)
        raise web.HTTPBadGateway(reason=f"server {replica}: {sentence}")

    async def _of_proxy(self, view: View, reading: ReplicasReading) -> Document:
        """Return a view of one proxy from the server that has the proxy."""
        if view.proxy is None:
            return await view.compute(reading)
        name = find(reading, view.proxy).name
        replica = reading.replica_of(name)
        if replica is None or not reading.is_of_another(name):
            return await view.compute(reading) | {"replica": replica}
        path, query = _by_name(view, name)
        return await self._relayed(path, query, replica) | {"replica": replica}

    async def _of_all(self, view: View) -> tuple[Document, dict[str, str]]:
        """Return a view put together from the same view of all servers."""
        reading, silent = await self.over_all()
        path, query = view.path, view.query
        if view.proxy is not None:
            path, query = _by_name(view, find(reading, view.proxy).name)
        own, (others, without) = await asyncio.gather(view.compute(reading), self._documents(path, query))

        def replica_of(name: str) -> str | None:
            return reading.replica_of(ProxyName.parse(name)) if is_proxy_name(name) else None

        replica = self.peers.replica
        match view.scope:
            case Scope.STREAMS:
                # Streams of others have no names of resources in the facts, so their own answers count.
                document = documents.streams(replica, await view.compute(self.reading), others)
            case Scope.PUSHES:
                document = documents.pushes(replica, own, others)
            case Scope.PUBLISHED:
                document = documents.published(replica, own, others, replica_of)
            case _:
                document = documents.connectivity(own, others, replica_of)
        return document, without | silent

    async def _documents(self, path: str, query: Query) -> tuple[dict[str, Document], dict[str, str]]:
        answers = await self.peers.ask(path, query)
        # A server that does not know the proxy yet has nothing to add.
        known = {name: of for name, of in answers.answers.items() if of.status != HTTPStatus.NOT_FOUND}
        return await asyncio.to_thread(decoded, PeerAnswers(known, answers.silent), _document)


def decoded(answers: PeerAnswers, read: Callable[[bytes], _T]) -> tuple[dict[str, _T], dict[str, str]]:
    """Return the read answers, and the reason of each server without a readable one."""
    result, silent = dict[str, _T](), dict(answers.silent)
    for replica in sorted(answers.answers):
        answer = answers.answers[replica]
        if not answer.is_fine:
            silent[replica] = f"answered with status {answer.status}"
            continue
        try:
            result[replica] = read(answer.content)
        except UnreadableAnswerError as error:
            silent[replica] = f"the answer cannot be read, perhaps because the version differs: {error}"
    return result, silent


def _located(document: Document, reading: ReplicasReading) -> Document:
    """Return a document with the field `replica` in each entry about a proxy."""

    def replica_of(name: str) -> str | None:
        return reading.replica_of(ProxyName.parse(name)) if is_proxy_name(name) else None

    return document | {
        name: documents.located(document[name], "cn", replica_of) for name in _OF_PROXIES if name in document
    }


def _by_name(view: View, name: ProxyName) -> tuple[str, Query]:
    """Return path and query of a view of one proxy by its common name, as every server knows the proxy."""
    if view.proxy_path is not None:
        return view.proxy_path(str(name))
    others = [item for item in view.query if item[0] != "proxy"]
    return view.path, (("proxy", str(name)), *others)


def _document(content: bytes) -> Document:
    try:
        document = json.loads(content)
    except ValueError:
        raise UnreadableAnswerError("the content is not JSON") from None
    if not isinstance(document, dict):
        raise UnreadableAnswerError("the content is not a JSON object")
    return document
