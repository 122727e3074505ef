"""Decision about one request by the text of SMI: the definition for every translation.

Access is allowed if and only if some TrafficTarget has the workload's identity as destination and the client
among the sources, and the rules admit the request. The targets of a destination unite. The rules of one
target, with P the port at which the workload is called:

- HTTPRouteGroups: the request fits one of the named matches (or any of the group's); nothing on TCP ports.
- TCPRoutes: P is among their ports, or one of them is without ports.
- Both: both must hold; on a TCP port only the second. A target without rules never admits.

A match holds if the path expression fits the whole path without query, the method is in the list, and each
header expression fits one value of the header completely; `host` is the authority. A TrafficSplit selects the
Services to answer instead of the apex, without admitting calls. A route of the Gateway API at the port
decides in place of all TrafficSplits (`catalog.oracle.gateway`). A server in a permissive namespace (by
annotation, or by the MeshConfig) admits every client with a certificate of the mesh; splits still hold.
Clients outside the mesh are admitted by IngressBackends (`catalog.oracle.ingress`), and clients in plain text
by MutualTLS objects (`catalog.oracle.mutual_tls`).

Every sidecar on the way normalises the path (`catalog.oracle.request.paths`), or rejects the request itself.
Splits see the path of the client's sidecar, rules the path of the server's.

Besides policy, three conditions prevent a call:

- The caller's sidecar does not know the service, because of the scope of the workload or namespace.
- All possible endpoints are unready (`catalog.relations.backends.readiness`). A call to the address of a
  headless service's endpoint does not depend on readiness.
- Another Service has the workload's port for another protocol (`speaks_otherwise`).

docs/policy/policy.md explains the interpretation of SMI, and the deviations from the text. No code is shared
with the translation (`catalog.policy`, `relations.permissive`, `relations.scope`); both read the endpoints
and their readiness from `catalog.relations.backends`.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace

from catalog.oracle.authorization import authorizer_at, counting
from catalog.oracle.callers import is_of_the_mesh
from catalog.oracle.gateway import RoutedRequest, routed
from catalog.oracle.ingress import IngressVerdict, called_there, ingress_verdicts, lets_in, seen
from catalog.oracle.mutual_tls import PlainVerdict, lets_plain_in, plain_verdict
from catalog.oracle.preconditions import (
    accepts_everyone,
    chooses_endpoint,
    ready_places,
    speaks_otherwise,
    visibilities,
)
from catalog.oracle.request.paths import LocalReply
from catalog.oracle.request.request import Request, fits
from catalog.oracle.route_answers import may_answer, offered, places
from catalog.oracle.splits import SplitVerdict, backends, judge_split, split_for, ways
from catalog.oracle.targets import Place, Verdict, judge, matches_of, verdicts
from catalog.oracle.transit import at_client, at_server
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
    "at_client",
    "at_server",
    "authorizer_at",
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
    "verdicts",
    "visibilities",
    "ways",
]


Admitting = tuple[TrafficTarget | IngressBackend | MutualTLS, ...]
Admits = Callable[[View, Request, tuple[Place, bool]], Admitting | None]


class Answer(enum.StrEnum):
    """Outcome of a request.

    - REFUSED: the server denies the request (403, or a closed connection), or a sidecar rejects the request
      (400, 404).
    - UNREACHABLE: the client's sidecar does not know any workload to answer.
    - DEPENDS: only some of the possible workloads admit the request and are ready, or only some of the
      client's workloads know the service.
    """

    ALLOWED = "allowed"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    DEPENDS = "depends"


@dataclass(frozen=True, slots=True)
class Share:
    """A service that may answer, with its weight and the identities that admit or refuse the request.

    Without identities all are unready, and calls to the service fail.
    """

    service: ServiceKey
    weight: int
    admitted: tuple[ServiceIdentity, ...]
    refused: tuple[ServiceIdentity, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome, the services that share the call, and the deciding objects (kind and key, sorted).

    `turned_down` is the response of the client's sidecar, if that sidecar answers the request itself, and
    `broken` its status for the shares of backends that do not exist.
    """

    answer: Answer
    shares: tuple[Share, ...] = ()
    because: tuple[ObjectKey, ...] = ()
    turned_down: LocalReply | None = None
    broken: int | None = None

    @property
    def allowed(self) -> bool:
        """True if every possible workload admits the request."""
        return self.answer is Answer.ALLOWED


def decide(view: View, request: Request, admits: Admits | None = None) -> Decision:
    """Decide one request. Pure, and slow because written for reading.

    `admits` replaces the decision of policy at a place (`admitting`).
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
    heard = {visibility.yes for visibility in visibilities(view, request.identity, request.service)}
    # None of the client's sidecars knows the service.
    if heard == {False}:
        return Decision(Answer.UNREACHABLE)
    arrived = arriving(view, request)
    if isinstance(arrived, LocalReply):
        # A sidecar without a listener for the service cannot answer by itself.
        known = offered(view, request, port)
        return Decision(Answer.REFUSED, turned_down=arrived) if known else Decision(Answer.UNREACHABLE)
    found = routed(view, arrived, port)
    if found is not None and not offered(view, arrived, port):
        return Decision(Answer.UNREACHABLE)
    decision = _decided(view, arrived, port, found, admits)
    # Only some of the client's sidecars know the service.
    if False in heard and decision.answer is Answer.ALLOWED:
        return replace(decision, answer=Answer.DEPENDS)
    return decision


def _decided(
    view: View, request: Request, port: ServicePort, found: RoutedRequest | None, admits: Admits
) -> Decision:
    """Decide a request of a client whose sidecar knows the service, in the form that the sidecar forwards."""
    split = split_for(view, request, port)
    because = set() if split is None else {ObjectKey.from_name(TRAFFIC_SPLIT, split.key)}
    if found is not None and found.found is not None:
        because.add(found.found.key)
    if found is not None and found.reply is not None:
        return Decision(Answer.REFUSED, (), tuple(sorted(because)), found.reply)
    shares: list[Share] = []
    for way in ways(view, request, port, split):
        there = places(view, way.service, way.port)
        answering = [place for place in there if may_answer(view, way.request, place)]
        ready = ready_places(view, way.request, way.service, way.port, split)
        yes = {
            place: None
            if speaks_otherwise(view, way.service, way.port, place[0])
            else admits(view, way.request, place)
            for place in answering
            if place[0] in ready
        }
        if answering:
            shares.append(_share(way.service, way.weight, yes))
        elif found is not None:
            # A share of a route stays: the client's sidecar answers 403 for those who refuse, else 503.
            shares.append(_share(way.service, way.weight, dict.fromkeys(there)))
        if way.weight > 0:
            because.update(_key(item) for result in yes.values() for item in result or ())
    # Backends with weight 0 get no calls, and do not change the outcome.
    chosen = [share for share in shares if share.weight > 0]
    broken = None if found is None else found.broken
    answer = _answer(chosen, is_broken=broken is not None)
    return Decision(answer, tuple(shares) if chosen else (), tuple(sorted(because)), broken=broken)


def arriving(view: View, request: Request) -> Request | LocalReply:
    """Return a request as the client's sidecar forwards it; unchanged if the port does not exist."""
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    return request if port is None else at_client(view, request, port)


def _from_outside(view: View, request: Request, port: ServicePort, admits: Admits) -> Decision:
    """Decide a request from outside the mesh, which goes to any endpoint of the service, ready or not."""
    asked = {
        place: admits(view, seen(view, request, place[0]), place)
        for place in places(view, request.service, port)
    }
    because = {_key(item) for result in asked.values() for item in result or ()}
    shares = (_share(request.service, 1, asked),)
    return Decision(_answer(list(shares)), shares if asked else (), tuple(sorted(because)))


def admitting(view: View, request: Request, place: tuple[Place, bool]) -> Admitting | None:
    """Return the objects that admit the request at a place; empty in permissive mode, `None` for a denial."""
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
            return ObjectKey.from_name(TRAFFIC_TARGET, key)
        case IngressBackend(key):
            return ObjectKey.from_name(INGRESS_BACKEND, key)
        case MutualTLS(key):
            return ObjectKey.from_name(MUTUAL_TLS, key)


def _share(key: ServiceKey, weight: int, yes: dict[tuple[Place, bool], Admitting | None]) -> Share:
    admitted = {place.identity for (place, _), result in yes.items() if result is not None}
    refused = {place.identity for (place, _), result in yes.items() if result is None}
    return Share(key, weight, tuple(sorted(admitted)), tuple(sorted(refused)))


def _answer(chosen: list[Share], *, is_broken: bool = False) -> Answer:
    admitted = any(share.admitted for share in chosen)
    refused = is_broken or any(share.refused for share in chosen)
    # A share without ready places takes its part of the calls, and these fail.
    waiting = any(not share.admitted and not share.refused for share in chosen)
    if not (admitted or refused):
        return Answer.UNREACHABLE
    if admitted and (refused or waiting):
        return Answer.DEPENDS
    return Answer.ALLOWED if admitted else Answer.REFUSED
