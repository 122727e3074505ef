"""The oracle: what SMI's text says of one request. It defines what every translation must come to.

Access is allowed if and only if some TrafficTarget has the workload's identity as destination and the
client among its sources, and its rules admit the request. The targets of a destination unite. The rules of
one target, with P the port at which the workload is called:

- HTTPRouteGroups: the request fits one of the matches named (or any of the group's); nothing on TCP ports.
- TCPRoutes: P is among their ports, or one of them names no port.
- both: both must hold; on a TCP port only the second. None: nothing is admitted.

A match holds if its path expression fits the whole path without query, the method is among its methods, and
each header expression fits one value of that header in full; `host` is the authority. A TrafficSplit says
which Services answer instead of its apex; it grants nothing. A server whose namespace is permissive, by its
own annotation or else by the MeshConfig, admits whoever has a certificate of the mesh; splits hold as ever.
From outside, where nobody has such a certificate, IngressBackends admit (`catalog.oracle.ingress`); and
MutualTLS objects admit who calls in plain text (`catalog.oracle.mutual_tls`).

Every sidecar on the way first makes of the path what it passes on (`catalog.oracle.request.paths`), or turns
the request down by itself: splits judge the path as the client's has it, rules as the server's does.

Besides policy, three things prevent a call:

- The caller's sidecar does not know the service, because its workload or namespace narrows what it gets.
- No endpoint that may answer is ready (`catalog.relations.backends.readiness`). A call to an endpoint of a
  headless service by its address does not depend on that.
- Another Service has the workload's port for another protocol (`speaks_otherwise`).

What this makes of the SMI text, and where it departs from it, is told in docs/policy.md. It shares no code
with the translation (`catalog.policy`, `relations.permissive`, `relations.scope`); both ask
`relations.endpoints` who is where, and `relations.readiness` who is ready.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass

from catalog.oracle.authorization import asked, counting
from catalog.oracle.callers import is_of_the_mesh
from catalog.oracle.ingress import IngressVerdict, called_there, ingress_verdicts, lets_in, seen
from catalog.oracle.mutual_tls import PlainVerdict, lets_plain_in, plain_verdict
from catalog.oracle.preconditions import (
    accepts_everyone,
    chooses_endpoint,
    ready_places,
    speaks_otherwise,
    told,
)
from catalog.oracle.request.paths import LocalReply
from catalog.oracle.request.request import Request, fits
from catalog.oracle.splits import SplitVerdict, backends, in_force, judge_split, split_for
from catalog.oracle.targets import Place, Verdict, judge, matches_of, verdicts
from catalog.oracle.transit import at_client, at_server
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.workloads import backing
from catalog.store.smi import splits_by_apex
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import INGRESS_BACKEND, MUTUAL_TLS, TRAFFIC_SPLIT, TRAFFIC_TARGET
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.callers import Outsider
from meshwright.mesh.policies.ingress import IngressBackend
from meshwright.mesh.policies.mutual_tls import MutualTLS
from meshwright.mesh.policies.smi import TrafficTarget
from meshwright.mesh.service import ServiceKey, ServicePort

__all__ = [
    "Answer",
    "Decision",
    "IngressVerdict",
    "LocalReply",
    "Place",
    "PlainVerdict",
    "Request",
    "Share",
    "SplitVerdict",
    "Verdict",
    "accepts_everyone",
    "admitting",
    "arriving",
    "asked",
    "at_client",
    "at_server",
    "backends",
    "called_there",
    "chooses_endpoint",
    "counting",
    "decide",
    "fits",
    "ingress_verdicts",
    "judge",
    "judge_split",
    "lets_in",
    "lets_plain_in",
    "matches_of",
    "may_answer",
    "offered",
    "places",
    "plain_verdict",
    "ready_places",
    "seen",
    "split_for",
    "told",
    "verdicts",
]


Admitting = tuple[TrafficTarget | IngressBackend | MutualTLS, ...]
Admits = Callable[[View, Request, tuple[Place, bool]], Admitting | None]


class Answer(enum.StrEnum):
    """What becomes of a request.

    REFUSED: the server says no (403, or a closed connection), or a sidecar turns it down by itself (400,
    404). UNREACHABLE: the client's sidecar knows nobody who might answer. DEPENDS: some of the workloads that
    may be chosen admit it and some do not, or are not ready; or some of the client's workloads are told of
    the service and some are not.
    """

    ALLOWED = "allowed"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    DEPENDS = "depends"


@dataclass(frozen=True, slots=True)
class Share:
    """A service that may answer, with its weight: whose workloads admit the request, and whose do not.

    Without either there is none that is ready: calls to it fail.
    """

    service: ServiceKey
    weight: int
    admitted: tuple[ServiceIdentity, ...]
    refused: tuple[ServiceIdentity, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, the services that share the call, and the objects that decided (kind and key, sorted).

    `turned_down` says that the client's sidecar answers by itself, and how.
    """

    answer: Answer
    shares: tuple[Share, ...] = ()
    because: tuple[ObjectKey, ...] = ()
    turned_down: LocalReply | None = None

    @property
    def allowed(self) -> bool:
        """Say whether every workload that may be chosen admits the request."""
        return self.answer is Answer.ALLOWED


def decide(view: View, request: Request, admits: Admits | None = None) -> Decision:
    """Decide one request; pure, and slow enough to be read.

    `admits` says what is admitted at a place, in the stead of policy (`admitting`).
    """
    admits = admits or admitting
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    if port is None:
        return Decision(Answer.UNREACHABLE)
    if isinstance(request.client, Outsider):
        return _from_outside(view, request, port, admits)
    if request.identity is None:
        # No certificate, no call: also in permissive mode.
        return Decision(Answer.REFUSED)
    heard = {each.yes for each in told(view, request.identity, request.service)}
    if heard == {False}:
        return Decision(Answer.UNREACHABLE)
    arrived = arriving(view, request)
    if isinstance(arrived, LocalReply):
        known = offered(view, request, port)
        return Decision(Answer.REFUSED, turned_down=arrived) if known else Decision(Answer.UNREACHABLE)
    request = arrived
    split = split_for(view, request, port)
    because = set() if split is None else {ObjectKey.of(TRAFFIC_SPLIT, split.key)}
    shares: list[Share] = []
    for key, their_port, weight in backends(view, request, port, split):
        answering = [place for place in places(view, key, their_port) if may_answer(view, request, place)]
        ready = ready_places(view, request, key, their_port, split)
        yes = {
            place: None if speaks_otherwise(view, key, their_port, place[0]) else admits(view, request, place)
            for place in answering
            if place[0] in ready
        }
        if answering:
            shares.append(_share(key, weight, yes))
        if weight > 0:
            because.update(_key(each) for found in yes.values() for each in found or ())
    chosen = [share for share in shares if share.weight > 0]
    answer = Answer.DEPENDS if False in heard and _answer(chosen) is Answer.ALLOWED else _answer(chosen)
    return Decision(answer, tuple(shares) if chosen else (), tuple(sorted(because)))


def places(view: View, key: ServiceKey, port: ServicePort) -> tuple[tuple[Place, bool], ...]:
    """Return who may answer at a service's port, each with whether HTTP is spoken there; sorted.

    Endpoints outside the mesh are not among them: they cannot do mTLS.
    """
    is_http = spoken(port, backing(view, key)).is_http
    found = {Place(each.identity, each.port) for each in endpoints(view, key, port) if each.identity}
    return tuple((place, is_http) for place in sorted(found))


def arriving(view: View, request: Request) -> Request | LocalReply:
    """Return a request as the client's sidecar passes it on; as it is where there is no such port."""
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    return request if port is None else at_client(view, request, port)


def offered(view: View, request: Request, port: ServicePort) -> bool:
    """Say whether the client's sidecar takes calls to a service's port: somebody might answer some."""
    rivals = splits_by_apex(view).found(request.service)
    splits = [each for each in rivals if in_force(view, each, request, port)]
    ways = [way for split in splits for way in backends(view, request, port, split)]
    if all(split.matches for split in splits):  # it answers what they do not divert
        if accepts_everyone(view, request.service.namespace):
            return True
        ways.append((request.service, port, 1))
    asked = ((key, their_port) for key, their_port, weight in ways if weight > 0)
    return any(may_answer(view, request, place) for each in asked for place in places(view, *each))


def may_answer(view: View, request: Request, place: tuple[Place, bool]) -> bool:
    """Say whether the client may send anything at all to a place."""
    return accepts_everyone(view, place[0].identity.namespace) or any(
        verdict in (Verdict.ADMITS, Verdict.OTHER_REQUESTS) for _, verdict in verdicts(view, request, place)
    )


def _from_outside(view: View, request: Request, port: ServicePort, admits: Admits) -> Decision:
    """Decide a request from outside the mesh: it calls whoever is behind the service, ready or not."""
    asked = {
        place: admits(view, seen(view, request, place[0]), place)
        for place in places(view, request.service, port)
    }
    because = {_key(each) for found in asked.values() for each in found or ()}
    shares = (_share(request.service, 1, asked),)
    return Decision(_answer(list(shares)), shares if asked else (), tuple(sorted(because)))


def admitting(view: View, request: Request, place: tuple[Place, bool]) -> Admitting | None:
    """Return the objects that admit the request at a place; none where all are; None where it is no."""
    arrived = at_server(view, request, place)
    if isinstance(arrived, LocalReply):
        return None
    if is_of_the_mesh(request.client, view.settings.trust_domain) and accepts_everyone(
        view, place[0].identity.namespace
    ):
        return ()
    targets = [target for target, verdict in verdicts(view, arrived, place) if verdict is Verdict.ADMITS]
    return (*targets, *lets_in(view, arrived, place), *lets_plain_in(view, arrived, place)) or None


def _key(admits: TrafficTarget | IngressBackend | MutualTLS) -> ObjectKey:
    match admits:
        case TrafficTarget(key):
            return ObjectKey.of(TRAFFIC_TARGET, key)
        case IngressBackend(key):
            return ObjectKey.of(INGRESS_BACKEND, key)
        case MutualTLS(key):
            return ObjectKey.of(MUTUAL_TLS, key)


def _share(key: ServiceKey, weight: int, yes: dict[tuple[Place, bool], Admitting | None]) -> Share:
    admitted = {place.identity for (place, _), found in yes.items() if found is not None}
    refused = {place.identity for (place, _), found in yes.items() if found is None}
    return Share(key, weight, tuple(sorted(admitted)), tuple(sorted(refused)))


def _answer(chosen: list[Share]) -> Answer:
    admitted = any(share.admitted for share in chosen)
    refused = any(share.refused for share in chosen)
    waiting = any(not share.admitted and not share.refused for share in chosen)
    if not (admitted or refused):
        return Answer.UNREACHABLE
    if admitted and (refused or waiting):
        return Answer.DEPENDS
    return Answer.ALLOWED if admitted else Answer.REFUSED
