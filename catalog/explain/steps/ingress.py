"""Steps about a call from outside the mesh, admitted by IngressBackends and MutualTLS."""

from collections.abc import Iterator
from itertools import count

from catalog.explain.remedy import Manifest
from catalog.explain.steps.step import Step, origin_of
from catalog.explain.steps.transit import of_server
from catalog.oracle import decide as oracle
from catalog.oracle.decide import LocalReply, Place
from catalog.oracle.request.request import Request
from catalog.store.view import View
from meshwright.mesh.kinds import INGRESS_BACKEND, MUTUAL_TLS, SERVICE
from meshwright.mesh.policies.callers import Outsider
from meshwright.mesh.service import ServicePort


def from_outside(view: View, request: Request, client: Outsider, port: ServicePort) -> Iterator[Step]:
    """Yield the places that may answer an Outsider's request, with the verdicts on the request there."""
    deciding = "IngressBackends" if client.is_encrypted else "IngressBackends and MutualTLS"
    yield Step(f"{client} is outside the mesh, so {deciding} decide, also in permissive mode.")
    result, origin = oracle.places(view, request.service, port), origin_of(view, SERVICE, request.service)
    if not result:
        yield Step(f"No workload with a sidecar belongs to Service {request.service}.", origin)
    for place in result:
        where = place[0]
        yield Step(f"ServiceAccount {where.identity} answers at its port {where.port}.", origin)
        at_server = oracle.at_server(view, oracle.seen(view, request, where), place)
        yield from of_server(request, at_server)
        if not isinstance(at_server, LocalReply):
            yield from _ingress_steps(view, at_server, place)


def _ingress_steps(view: View, request: Request, place: tuple[Place, bool]) -> Iterator[Step]:
    where, is_http = place
    services = {
        key for service_keys in oracle.called_there(view, request.service, where) for key in service_keys
    }
    is_named = False
    for key in sorted(services):
        for ingress_backend, backend, verdict in oracle.ingress_verdicts(
            view, request, key, where.port, is_http=is_http
        ):
            is_named = True
            text = f"IngressBackend {ingress_backend.key}, for {backend.proof.value}, {verdict.value}."
            yield Step(text, origin_of(view, INGRESS_BACKEND, ingress_backend.key), depth=1)
    if not is_named:
        named = ", ".join(map(str, sorted(services)))
        yield Step(f"No IngressBackend is for target port {where.port} of Service {named}.", depth=1)
    if (answer := oracle.plain_verdict(view, request, place)) is not None:
        mutual_tls, plain = answer
        origin = origin_of(view, MUTUAL_TLS, mutual_tls.key)
        yield Step(f"MutualTLS {mutual_tls.key}, {mutual_tls.mode.value}, {plain.value}.", origin, depth=1)


def lacking(view: View, request: Request, client: Outsider) -> tuple[Manifest, ...]:
    """Return an IngressBackend to admit a client outside the mesh.

    The result is empty if an IngressBackend already decides.
    """
    service = view.services.get(request.service)
    port = service.port(request.port) if service is not None else None
    if port is None or oracle.decide(view, request).allowed:
        return ()
    numbers = {
        where.port
        for where, is_http in oracle.places(view, request.service, port)
        if is_http
        and not isinstance(oracle.at_server(view, request, (where, is_http)), LocalReply)
        and not any(oracle.ingress_verdicts(view, request, request.service, where.port, is_http=is_http))
    }
    if not numbers:
        return ()
    source: Manifest = {"kind": "AuthenticatedPrincipal", "name": client.name}
    if not client.name:
        length = 128 if ":" in client.address else 32
        source = {"kind": "IPRange", "name": f"{client.address}/{length}"}
    tls: Manifest = {"tls": {"skipClientCertValidation": True}} if client.tls and not client.name else {}
    protocol = "https" if client.is_encrypted else "http"
    backends = [
        {"name": str(request.service.name), "port": {"number": number, "protocol": protocol}, **tls}
        for number in sorted(numbers)
    ]
    taken = {key.name for key in view.sourced if key.kind == INGRESS_BACKEND}
    names = (f"{request.service.name}{f'-{number}' if number else ''}" for number in count())
    return (
        {
            "apiVersion": f"{INGRESS_BACKEND.group}/v1alpha1",
            "kind": INGRESS_BACKEND.name,
            "metadata": {
                "name": next(name for name in names if name not in taken),
                "namespace": str(request.service.namespace),
            },
            "spec": {"backends": backends, "sources": [source]},
        },
    )
