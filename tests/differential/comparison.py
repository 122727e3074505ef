"""Expected results of the oracle, seen results, and the counts of both."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import yaml

from catalog.oracle.decide import (
    Answer,
    Decision,
    LocalReply,
    Place,
    Request,
    admitting,
    arriving,
    at_server,
    decide,
    places,
)
from catalog.oracle.request.request import path_of
from catalog.store.gateway import ROUTE_KINDS
from catalog.store.view import View
from meshwright.mesh.names import Port
from meshwright.mesh.policies.callers import Outsider
from tests.differential.cases import RE2_PATTERNS, Case, case
from tests.differential.random_routes import forwarded
from tests.differential.running_mesh import DifferentialMesh
from tests.differential.topology import GRPC, HTTP_A, HTTP_B, PLAIN, SERVERS, TCP, is_http
from tests.differential.wire import Answered

REPEATS = 3
"""How often a request is sent that several workloads may answer."""

FLOORS: Final = {
    "allowed": 0.15,
    "denied": 0.15,
    "decided by several objects": 0.15,
    "with a path that sidecars change": 0.1,
    "changed, and allowed": 0.03,
    "turned down by a sidecar": 0.03,
    "policies with expressions of RE2's": 0.5,
    "let in without a certificate": 0.05,
    "kept out without a certificate": 0.3,
    "decided by routes of the Gateway API": 0.05,
}
"""The least share of requests, or of policies, that a run must have of each."""


@dataclass(frozen=True)
class Disagreement:
    """A request with different results of the oracle and the Envoys."""

    case: Case
    asked: Request
    expected: str
    seen: Answered
    directly: str = ""

    def __str__(self) -> str:
        asked, version = self.asked, 2 if self.asked.http2 else 1
        policy = yaml.safe_dump_all(self.case.documents, sort_keys=False)
        way = f"straight to {self.directly}" if self.directly else "through both sidecars"
        return (
            f"{asked.client} to {asked.service}:{asked.port} {asked.method} {asked.path!r} HTTP/{version} "
            f"{asked.headers} {way}: the oracle says {self.expected}, seen was {self.seen}, under\n{policy}"
        )


@dataclass
class Counts:
    """The counts of a run."""

    policies: int = 0
    requests: int = 0
    direct: int = 0
    plain: int = 0
    plain_allowed: int = 0
    answers: dict[Answer, int] = field(default_factory=dict)
    by_several: int = 0
    permissive: int = 0
    changed: int = 0
    changed_and_allowed: int = 0
    turned_down: int = 0
    by_routes: int = 0
    with_re2: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)

    def count(self, view: View, request: Request, decision: Decision) -> None:
        """Count one decision."""
        self.requests += 1
        self.answers[decision.answer] = self.answers.get(decision.answer, 0) + 1
        self.by_routes += any(key.kind in ROUTE_KINDS for key in decision.because)
        self.by_several += len(decision.because) > 1
        self.permissive += view.config.permissive
        arrived = arriving(view, request)
        self.turned_down += isinstance(arrived, LocalReply)
        if not isinstance(arrived, LocalReply) and path_of(arrived) != path_of(request):
            self.changed += 1
            self.changed_and_allowed += decision.allowed

    def count_plain(self, view: View, plain: Request, place: tuple[Place, bool]) -> bool:
        """Count a request without a certificate; return whether it is admitted."""
        yes = admitting(view, plain, place) is not None
        self.plain += 1
        self.plain_allowed += yes
        return yes

    def count_policy(self, made: Case) -> None:
        """Count one policy."""
        self.policies += 1
        self.with_re2 += any(
            match.get("pathRegex") in RE2_PATTERNS
            for document in made.documents
            if document["kind"] == "HTTPRouteGroup"
            for match in document["spec"]["matches"]
        )

    @property
    def shares(self) -> dict[str, float]:
        """Return the shares of requests and policies for which FLOORS has a floor."""
        denied = sum(self.answers.get(item, 0) for item in (Answer.REFUSED, Answer.UNREACHABLE))
        total = max(self.requests, 1)
        return {
            "allowed": self.answers.get(Answer.ALLOWED, 0) / total,
            "denied": denied / total,
            "decided by several objects": self.by_several / total,
            "with a path that sidecars change": self.changed / total,
            "changed, and allowed": self.changed_and_allowed / total,
            "turned down by a sidecar": self.turned_down / total,
            "policies with expressions of RE2's": self.with_re2 / max(self.policies, 1),
            "decided by routes of the Gateway API": self.by_routes / total,
            "let in without a certificate": self.plain_allowed / max(self.plain, 1),
            "kept out without a certificate": 1 - self.plain_allowed / max(self.plain, 1),
        }

    @property
    def too_few(self) -> dict[str, float]:
        """Return the shares that are below their floor."""
        return {name: share for name, share in self.shares.items() if share < FLOORS[name]}


def straight_to(asked: Request, number: int) -> tuple[Place, bool]:
    """Return a server to which a request may be sent directly, and whether it is HTTP."""
    port = TCP
    if is_http(asked.port):
        port = GRPC if asked.http2 else (HTTP_A, HTTP_B)[number % 2]
    return Place(SERVERS[number % len(SERVERS)].identity, Port(port)), is_http(asked.port)


def without_certificate(asked: Request, number: int) -> Request:
    """Return a request in the form of a caller outside the mesh."""
    return replace(asked, client=Outsider(PLAIN[number // 2 % len(PLAIN)]))


def expectation(view: View, decision: Decision, request: Request) -> tuple[str, Callable[[Answered], bool]]:
    """Return the expected result in words and as a predicate."""
    by = {
        identity.service_account for share in decision.shares if share.weight for identity in share.admitted
    }
    refused = refusals(view, request) | _of_shares(view, decision)

    def is_yes(seen: Answered) -> bool:
        return seen.status == 200 and seen.by in by

    match decision.answer:
        case Answer.ALLOWED:
            return f"allowed, by {sorted(by)}", is_yes
        case Answer.REFUSED if decision.turned_down is not None:
            status = decision.turned_down.status
            return f"turned down with {status}", lambda seen: seen == Answered(status)
        case Answer.REFUSED:
            return "refused", lambda seen: seen.status in refused
        case Answer.UNREACHABLE:
            return "unreachable", lambda seen: seen.status in (0, 503)
        case Answer.DEPENDS:
            return f"allowed by {sorted(by)}, or refused", lambda seen: is_yes(seen) or seen.status in refused


def _of_shares(view: View, decision: Decision) -> frozenset[int]:
    """Return the answers of the client's sidecar for single shares of a route: broken, or without anyone."""
    if not any(key.kind in ROUTE_KINDS for key in decision.because):
        return frozenset()
    empty = any(share.weight and not share.admitted and not share.refused for share in decision.shares)
    broken = () if decision.broken is None else (decision.broken,)
    return frozenset({*broken, *((503, 0) if empty else ()), *((0,) if broken else ())})


def refusals(view: View, request: Request) -> frozenset[int]:
    """Return the forms in which the called sidecars may refuse: by their rules, or in any case."""
    if not is_http(request.port):
        return frozenset({0})
    arrived = arriving(view, request)
    if isinstance(arrived, LocalReply):
        return frozenset()
    keys = view.services
    there = {place for key in keys for port in view.services[key].ports for place in places(view, key, port)}
    down = [at_server(view, arrived, place) for place in there]
    return frozenset({403, *(item.status for item in down if isinstance(item, LocalReply))})


async def run(mesh: DifferentialMesh, seed: int, policies: int, requests: int) -> Counts:
    """Run a number of policies with a number of requests each, from one seed."""
    counts = Counts()
    for number in range(policies):
        random = Random(f"{seed}/{number}")  # noqa: S311 - test data
        await compare(mesh, case(random, requests), counts)
    return counts


async def compare(mesh: DifferentialMesh, made: Case, counts: Counts) -> None:
    """Enforce one policy, send its requests, and count the results."""
    view = await mesh.apply(made.documents)
    counts.count_policy(made)
    for asked in made.requests:
        decision = decide(view, asked)
        counts.count(view, asked, decision)
        expected, holds = expectation(view, decision, asked)
        several = (
            sum(bool(share.weight) for share in decision.shares) > 1 or decision.answer is Answer.DEPENDS
        )
        for _ in range(REPEATS if several else 1):
            seen = await mesh.send(asked)
            if not holds(seen):
                counts.disagreements.append(Disagreement(made, asked, expected, seen))
                break
        counts.disagreements.extend(
            [disagreement async for disagreement in _directly(mesh, view, made, asked, counts)]
        )


async def shrunk(mesh: DifferentialMesh, disagreement: Disagreement) -> Disagreement:
    """Remove everything from a disagreement's policy that it does not need."""
    kept = disagreement
    for document in disagreement.case.documents:
        fewer = tuple(item for item in kept.case.documents if item is not document)
        counts = Counts()
        await compare(mesh, Case(fewer, (disagreement.asked,) * REPEATS), counts)
        if counts.disagreements:
            kept = counts.disagreements[0]
    return kept


async def _directly(
    mesh: DifferentialMesh, view: View, made: Case, asked: Request, counts: Counts
) -> AsyncIterator[Disagreement]:
    """Send the request directly to one server that may be concerned."""
    asked = forwarded(asked)
    place = straight_to(asked, counts.requests)
    server = next(runs for runs in SERVERS if runs.identity == place[0].identity)
    port = place[0].port
    yes = admitting(view, asked, place) is not None
    seen = await mesh.send_directly(asked, server, port)
    counts.direct += 1
    if place[1]:
        async for disagreement in _in_plain_text(mesh, view, made, asked, counts):
            yield disagreement
    wanted = {(200, server.account)} if yes else {(403 if place[1] else 0, "")}
    arrived = at_server(view, asked, place)
    if isinstance(arrived, LocalReply):
        # Rules come before what else turns a request down, once there is one.
        wanted = {(arrived.status, "")} | ({(403, "")} if arrived.status else set())
    if (seen.status, seen.by) not in wanted:
        yield Disagreement(made, asked, str(wanted), seen, f"{server.identity}:{port}")


async def _in_plain_text(
    mesh: DifferentialMesh, view: View, made: Case, asked: Request, counts: Counts
) -> AsyncIterator[Disagreement]:
    """Send the request without a certificate, from either of two addresses."""
    place = straight_to(asked, counts.requests)
    server = next(runs for runs in SERVERS if runs.identity == place[0].identity)
    plain = without_certificate(asked, counts.requests)
    yes = counts.count_plain(view, plain, place)
    seen = await mesh.send_plain(plain, server, place[0].port)
    arrived = at_server(view, plain, place)
    # Who may send nothing at all is cut off before anything is read.
    wanted = {(200, server.account)} if yes else {(403, ""), (0, "")}
    if isinstance(arrived, LocalReply):
        wanted |= {(arrived.status, "")}
    if (seen.status, seen.by) not in wanted:
        directly = f"{server.identity}:{place[0].port} in plain text"
        yield Disagreement(made, plain, str(wanted), seen, directly)
