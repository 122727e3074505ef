"""Last steps of the explanation of a request to a gateway: an answer of its own, or those of the backends."""

from http import HTTPStatus
from typing import Final

from catalog.explain.explanation import answering_steps
from catalog.explain.gateways.account import (
    CLOSED,
    CLOSED_IN_HANDSHAKE,
    IN_HANDSHAKE,
    Account,
    EdgeExplanation,
)
from catalog.explain.gateways.backend_tls import protected
from catalog.explain.remedy import Manifest, admitting_manifests
from catalog.explain.steps.step import Step
from catalog.oracle import decide as oracle
from catalog.oracle.decide import Answer, LocalReply, Place
from catalog.oracle.edge import as_call, calls_of, has_requests, has_server_name
from catalog.oracle.gateway import RoutedRequest, Way
from catalog.oracle.request.request import Request
from catalog.relations.backends.endpoints import endpoints
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import Listener
from meshwright.mesh.identity import ServiceIdentity

_UNREADY: Final = frozenset({HTTPStatus.SERVICE_UNAVAILABLE})


def own_answer(account: Account, listener: Listener, reply: LocalReply) -> EdgeExplanation:
    """End an explanation with an answer of the gateway."""
    if not reply.status:
        why = f"{reply.why[:1].upper()}{reply.why[1:]}."
        if has_server_name(listener):
            return account.ended(Answer.REFUSED, IN_HANDSHAKE, f"{why} {CLOSED_IN_HANDSHAKE}")
        return account.ended(Answer.REFUSED, CLOSED, f"{why} The gateway closes the connection.")
    is_redirect = reply.status < HTTPStatus.BAD_REQUEST
    answer = Answer.ALLOWED if is_redirect else Answer.REFUSED
    headline = f"{'redirected' if is_redirect else 'refused'}: {reply.status}"
    return account.ended(answer, headline, f"The gateway answers {reply.status}: {reply.why}.")


def at_backends(
    account: Account, listener: Listener, routed: RoutedRequest, client: ServiceIdentity
) -> EdgeExplanation:
    """Explain the shares of the backends, which the gateway calls as `client`."""
    view = account.view
    text = f"The gateway calls its backends as ServiceAccount {client}."
    account.steps.append(Step(text))
    statuses: list[int] = [] if routed.broken is None else [routed.broken]
    refused: list[_Refused] = []
    denied = "requests are answered with 403" if has_requests(listener) else "connections are closed"
    for way in calls_of(routed, client):
        account.steps += answering_steps(view, way, f" (weight {way.weight})", f"so its {denied}")
        account.steps += protected(view, way)
        status, there = _called(view, way)
        statuses.append(status)
        refused += there
    manifests = tuple(admitting_manifests(view, as_call(account.asked, client), refused))
    end = _of_request if has_requests(listener) else _of_connection
    return end(account, frozenset(statuses), manifests)


def _of_request(account: Account, statuses: frozenset[int], missing: tuple[Manifest, ...]) -> EdgeExplanation:
    """End an explanation with the statuses of the shares."""
    if statuses == {HTTPStatus.OK}:
        return account.ended(Answer.ALLOWED, "allowed", "The request is allowed.")
    listed = " or ".join(str(int(status)) for status in sorted(statuses))
    if HTTPStatus.OK in statuses:
        text = f"The answer depends on the backend: {listed}."
        return account.ended(Answer.DEPENDS, "depends", text, missing)
    answer = Answer.UNREACHABLE if statuses == _UNREADY else Answer.REFUSED
    return account.ended(answer, f"{answer.value}: {listed}", f"The gateway answers {listed}.", missing)


def _of_connection(
    account: Account, statuses: frozenset[int], missing: tuple[Manifest, ...]
) -> EdgeExplanation:
    """End an explanation of a connection, which has no status: each share is forwarded or closed."""
    if statuses == {HTTPStatus.OK}:
        return account.ended(Answer.ALLOWED, "allowed", "The connection is allowed.")
    if HTTPStatus.OK in statuses:
        text = "The answer depends on the backend: the connection is forwarded, or closed without an answer."
        return account.ended(Answer.DEPENDS, "depends", text, missing)
    if statuses == _UNREADY:
        text = "No endpoint of the backends is ready. The gateway closes the connection."
        return account.ended(Answer.UNREACHABLE, "unreachable: the connection is closed", text)
    text = "The connection is closed without an answer."
    return account.ended(Answer.REFUSED, CLOSED, text, missing)


_Refused = tuple[Place, bool, Request]
"""A place with a refusal, True for HTTP, and the request in the form at the place."""


def _called(view: View, way: Way) -> tuple[int, list[_Refused]]:
    """Return the status of a gateway's call to a backend, and the refusing places."""
    call = way.request
    places = oracle.places(view, way.service, way.port)
    if not places:
        # Workloads without a sidecar admit all callers.
        plain = endpoints(view, way.service, way.port)
        return (HTTPStatus.OK if plain else HTTPStatus.SERVICE_UNAVAILABLE), []
    refused = [place for place in places if oracle.admitting(view, call, place) is None]
    if len(refused) == len(places):
        return HTTPStatus.FORBIDDEN, [(place, is_http, call) for place, is_http in refused]
    ready = oracle.ready_places(view, call, way.service, way.port, None)
    admitted = {place[0] for place in places if place not in refused}
    return (HTTPStatus.OK if admitted & ready else HTTPStatus.SERVICE_UNAVAILABLE), []
