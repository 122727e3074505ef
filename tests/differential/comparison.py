"""Expected results of the oracle, seen results, and the counts of both."""

from collections.abc import AsyncIterator
from dataclasses import replace
from random import Random

from catalog.oracle.decide import (
    Answer,
    Decision,
    LocalReply,
    Place,
    Request,
    admitting,
    at_server,
    decide,
)
from catalog.store.view import View
from meshwright.mesh.names import Port
from meshwright.mesh.policies.callers import Outsider
from tests.differential.cases import ROUTED, Case, case
from tests.differential.counts import Counts, Disagreement
from tests.differential.expectations import expectation
from tests.differential.routes.attached import differences
from tests.differential.routes.copies import Watched, copies_of
from tests.differential.routes.effects import RuleEffect, number_of, numbered, plain
from tests.differential.running_mesh import DifferentialMesh
from tests.differential.topology import GRPC, HTTP_A, HTTP_B, PLAIN, SERVERS, TCP, is_http
from tests.differential.wire import Answered

REPEATS = 3
"""How often a request is sent that several workloads may answer."""


def straight_to(asked: Request, number: int) -> tuple[Place, bool]:
    """Return a server to which a request may be sent directly, and whether it is HTTP."""
    port = TCP
    if is_http(asked.port):
        port = GRPC if asked.http2 else (HTTP_A, HTTP_B)[number % 2]
    return Place(SERVERS[number % len(SERVERS)].identity, Port(port)), is_http(asked.port)


def without_certificate(asked: Request, number: int) -> Request:
    """Return a request in the form of a caller outside the mesh."""
    return replace(asked, client=Outsider(PLAIN[number // 2 % len(PLAIN)]))


async def run(
    mesh: DifferentialMesh, seed: int, policies: int, requests: int, routed: float = ROUTED
) -> Counts:
    """Run a number of policies with a number of requests each, from one seed."""
    counts = Counts()
    for number in range(policies):
        random = Random(f"{seed}/{number}")  # noqa: S311 - test data
        await compare(mesh, case(random, requests, routed), counts)
    return counts


async def compare(mesh: DifferentialMesh, made: Case, counts: Counts) -> None:
    """Enforce one policy, send its requests, and count the results."""
    view = await mesh.apply(made.documents)
    counts.count_policy(made)
    watched = Watched(mesh.journal)
    for text in differences(view, made.documents):
        counts.disagreements.append(Disagreement(made, made.requests[0], text, Answered(0), "nobody"))
    for asked in made.requests:
        decision = decide(view, asked)
        counts.count(view, asked, decision)
        several = (
            sum(bool(share.weight) for share in decision.shares) > 1 or decision.answer is Answer.DEPENDS
        )
        for number in range(REPEATS if several else 1):
            if found := await _through_both(mesh, view, numbered(asked, number), decision, watched):
                counts.disagreements.append(Disagreement(made, asked, *found))
                break
        counts.disagreements.extend(
            [disagreement async for disagreement in _directly(mesh, view, made, asked, counts)]
        )
    for stray, others in watched.strays():
        asked = next(item for item in made.requests if stray.startswith(f"{number_of(item)}."))
        text = f"copies at {sorted(others)}, which should not get one"
        counts.disagreements.append(Disagreement(made, asked, text, Answered(0)))
    mesh.journal.arrivals.clear()


async def _through_both(
    mesh: DifferentialMesh, view: View, asked: Request, decision: Decision, watched: Watched
) -> tuple[str, Answered] | None:
    """Send a request through both sidecars; return what was expected and seen if they differ."""
    expected, holds = expectation(view, decision, asked)
    seen = await mesh.send(asked)
    if not holds(seen):
        return expected, seen
    effect = RuleEffect.of(view, asked)
    number = number_of(asked)
    if effect is None or not number:
        return None
    if effect.has_copies and (fault := await watched.arrived(number, copies_of(effect, seen.by), seen.by)):
        return fault, seen
    faults = effect.faults(seen, mesh.journal.of(number), allowed=decision.answer is Answer.ALLOWED)
    return next(((fault, seen) for fault in faults), None)


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
    # No sidecar of the client has changed the request.
    asked = replace(plain(asked), forwarded=True)
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
