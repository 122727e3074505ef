"""What the oracle expects to be seen, what was seen, and the count of both."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from random import Random

import yaml

from catalog.decide import Answer, Decision, Place, Request, admitting, decide
from catalog.view import View
from mesh.names import Port
from tests.differential.asking import SERVERS
from tests.differential.cases import Case, case
from tests.differential.running import DifferentialMesh
from tests.differential.topology import GRPC, HTTP_A, HTTP_B, TCP, is_http
from tests.differential.wire import Answered, Asked

REPEATS = 3
"""How often a request is sent that several workloads may answer."""


@dataclass(frozen=True)
class Disagreement:
    """A request of which the oracle and the Envoys think differently."""

    case: Case
    asked: Asked
    expected: str
    seen: Answered
    directly: str = ""

    def __str__(self) -> str:
        asked, version = self.asked.request, 2 if self.asked.http2 else 1
        policy = yaml.safe_dump_all(self.case.documents, sort_keys=False)
        way = f"straight to {self.directly}" if self.directly else "through both sidecars"
        return (
            f"{asked.client} to {asked.service}:{asked.port} {asked.method} {self.asked.path} HTTP/{version} "
            f"{asked.headers} {way}: the oracle says {self.expected}, seen was {self.seen}, under\n{policy}"
        )


@dataclass
class Counts:
    """What a run came to."""

    policies: int = 0
    requests: int = 0
    direct: int = 0
    answers: dict[Answer, int] = field(default_factory=dict)
    by_several: int = 0
    permissive: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)

    def count(self, view: View, decision: Decision) -> None:
        """Count one decision."""
        self.requests += 1
        self.answers[decision.answer] = self.answers.get(decision.answer, 0) + 1
        self.by_several += len(decision.because) > 1
        self.permissive += view.config.permissive

    @property
    def shares(self) -> dict[str, float]:
        """Return the shares of requests allowed, denied, and decided by more than one object."""
        denied = sum(self.answers.get(each, 0) for each in (Answer.REFUSED, Answer.UNREACHABLE))
        total = max(self.requests, 1)
        return {
            "allowed": self.answers.get(Answer.ALLOWED, 0) / total,
            "denied": denied / total,
            "decided by several objects": self.by_several / total,
        }


def expectation(decision: Decision, request: Request) -> tuple[str, Callable[[Answered], bool]]:
    """Return in words and as a function what must be seen."""
    by = {each.service_account for share in decision.shares if share.weight for each in share.admitted}
    refused = 403 if is_http(request.port) else 0

    def is_yes(seen: Answered) -> bool:
        return seen.status == 200 and seen.by in by

    match decision.answer:
        case Answer.ALLOWED:
            return f"allowed, by {sorted(by)}", is_yes
        case Answer.REFUSED:
            return "refused", lambda seen: seen.status == refused
        case Answer.UNREACHABLE:
            return "unreachable", lambda seen: seen.status in (0, 503)
        case Answer.DEPENDS:
            return f"allowed by {sorted(by)}, or refused", lambda seen: is_yes(seen) or seen.status == refused


async def run(mesh: DifferentialMesh, seed: int, policies: int, requests: int) -> Counts:
    """Run so many policies with so many requests each, all from one seed."""
    counts = Counts()
    for number in range(policies):
        random = Random(f"{seed}/{number}")  # noqa: S311 - test data
        await compare(mesh, case(random, requests), counts)
    return counts


async def compare(mesh: DifferentialMesh, made: Case, counts: Counts) -> None:
    """Put one policy in force, send its requests, and count what they come to."""
    view = await mesh.apply(made.documents)
    counts.policies += 1
    for asked in made.requests:
        request = asked.request
        decision = decide(view, request)
        counts.count(view, decision)
        expected, holds = expectation(decision, request)
        several = (
            sum(bool(share.weight) for share in decision.shares) > 1 or decision.answer is Answer.DEPENDS
        )
        for _ in range(REPEATS if several else 1):
            seen = await mesh.send(asked)
            if not holds(seen):
                counts.disagreements.append(Disagreement(made, asked, expected, seen))
                break
        counts.disagreements.extend([found async for found in _directly(mesh, view, made, asked, counts)])


async def shrunk(mesh: DifferentialMesh, found: Disagreement) -> Disagreement:
    """Leave out of a disagreement's policy whatever it does not need."""
    kept = found
    for document in found.case.documents:
        fewer = tuple(each for each in kept.case.documents if each is not document)
        counts = Counts()
        await compare(mesh, Case(fewer, (found.asked,) * REPEATS), counts)
        if counts.disagreements:
            kept = counts.disagreements[0]
    return kept


async def _directly(
    mesh: DifferentialMesh, view: View, made: Case, asked: Asked, counts: Counts
) -> AsyncIterator[Disagreement]:
    """Send the request past the client's sidecar, to one server that may have to do with it."""
    server, request = SERVERS[counts.requests % len(SERVERS)], asked.request
    port = TCP
    if is_http(request.port):
        port = GRPC if asked.http2 else (HTTP_A, HTTP_B)[counts.requests % 2]
    place = Place(server.identity, Port(port)), is_http(request.port)
    yes = admitting(view, request, place) is not None
    seen = await mesh.send_directly(asked, server, port)
    counts.direct += 1
    wanted = Answered(200, server.account) if yes else Answered(403 if is_http(request.port) else 0)
    if seen != wanted:
        yield Disagreement(made, asked, str(wanted), seen, f"{server.identity}:{port}")
