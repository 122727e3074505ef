"""The explanation of one request: its steps in order, the missing policy, and other obstacles."""

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.explain import names
from catalog.explain.remedy import Manifest, remedy
from catalog.explain.steps import limits, ports, preconditions, routing, upstreams
from catalog.explain.steps.conclusion import conclusion
from catalog.explain.steps.gateway import of_routes
from catalog.explain.steps.ingress import from_outside, lacking
from catalog.explain.steps.splits import of_splits
from catalog.explain.steps.step import Step, origin_of
from catalog.explain.steps.targets import of_place
from catalog.explain.steps.transit import of_client, of_server, of_upgrade
from catalog.oracle import decide as oracle
from catalog.oracle.decide import Decision, LocalReply
from catalog.oracle.gateway import Way, routed
from catalog.oracle.request.request import Request
from catalog.store.view import View
from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.policies.callers import Outsider
from meshwright.mesh.policies.smi import TrafficSplit
from meshwright.mesh.service import ServicePort


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision with its steps, the missing manifests, and other obstacles.

    If `missing` is applied and `besides` is empty, the request is allowed. `missing` is empty if policy
    allows the request, and if policy is not the cause; the last step explains the case. `besides` are
    clauses, for example `no workload of Service shop/books is ready`.
    """

    request: Request
    decision: Decision
    steps: tuple[Step, ...]
    missing: tuple[Manifest, ...]
    besides: tuple[str, ...] = ()


def explain(view: View, request: Request) -> Explanation:
    """Return the explanation of one request. The function is pure."""
    decision = oracle.decide(view, request)
    client = request.client
    missing = lacking(view, request, client) if isinstance(client, Outsider) else remedy(view, request)
    besides = () if decision.allowed else tuple(preconditions.besides(view, request))
    last = conclusion(view, request, decision, besides, missing=bool(missing))
    return Explanation(request, decision, (*_steps(view, request), last), missing, besides)


def _steps(view: View, request: Request) -> Iterator[Step]:
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    if service is None or port is None:
        yield (
            names.unknown_service(view, request)
            if service is None
            else names.unknown_port(view, request, service)
        )
        return
    yield Step(ports.spoken_at(view, service, port), origin_of(view, SERVICE, service.key))
    if isinstance(request.client, Outsider):
        yield from from_outside(view, request, request.client, port)
        return
    if (client := request.identity) is None:
        yield Step(
            "The caller lacks a certificate of the mesh, so all sidecars refuse its connection, even in "
            "permissive mode."
        )
        return
    yield from names.client(view, client)
    yield from preconditions.upstreams(view, request, client)
    yield from preconditions.scope(view, request.service, oracle.visibilities(view, client, request.service))
    yield from preconditions.permissive(view, request.service.namespace)
    yield from upstreams.of_retries(view, client, request.service)
    arrived = oracle.arriving(view, request)
    yield from of_client(request, arrived)
    yield from of_upgrade(view, request, port)
    if not isinstance(arrived, LocalReply):
        yield from routing.of_request(view, arrived, port)
        yield from of_routes(view, arrived, port)
        split = oracle.split_for(view, arrived, port)
        yield from of_splits(view, arrived, port, split)
        yield from _backends(view, arrived, port, split)


def _backends(view: View, request: Request, port: ServicePort, split: TrafficSplit | None) -> Iterator[Step]:
    found = routed(view, request, port)
    if found is not None and found.reply is not None:
        return
    # A share of a route stays, while a split leaves out what the client may not call.
    left_out = "so it is left out" if found is None else "so its requests are answered with 403"
    for way in oracle.ways(view, request, port, split):
        share = f" (weight {way.weight})" if split is not None or found is not None else ""
        yield from preconditions.waiting(view, way.request, way.service, way.port, split)
        yield from limits.of_caller(view, way.service)
        yield from upstreams.of_caller(view, way.service)
        yield from answering_steps(view, way, share, left_out)


def answering_steps(view: View, way: Way, share: str, left_out: str) -> Iterator[Step]:
    """Yield the steps about the workloads behind a backend, and the policies that admit a request there.

    `left_out` is the clause about the share of workloads without any permission for the client.
    """
    request, key, port = way.request, way.service, way.port
    yield from ports.disputed(view, key, port)
    result, origin = oracle.places(view, key, port), origin_of(view, SERVICE, key)
    if not result:
        yield Step(f"No workload with a sidecar belongs to Service {key}{share}.", origin)
    for place in result:
        asked = oracle.may_answer(view, request, place)
        none = "" if asked else f". The client may not send anything there, {left_out}"
        who = f"ServiceAccount {place[0].identity} at port {place[0].port}"
        yield Step(f"Service {key}{share} is served by {who}{none}.", origin)
        at_server = oracle.at_server(view, request, place)
        yield from of_server(request, at_server)
        if asked and not isinstance(at_server, LocalReply):
            yield from limits.of_server(view, at_server, place)
        permissive = oracle.accepts_everyone(view, place[0].identity.namespace)
        if not permissive and not isinstance(at_server, LocalReply):
            yield from of_place(view, at_server, place)
        if oracle.admitting(view, request, place) is not None and place[1]:
            yield from preconditions.authorized(view, place)
