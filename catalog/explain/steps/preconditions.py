"""Steps about preconditions of a call (`catalog.oracle.preconditions`), and obstacles as clauses."""

from collections.abc import Iterable, Iterator

from catalog.explain.backends import answering
from catalog.explain.steps.step import Objects, Step, origin_of, origin_of_object
from catalog.oracle import decide as oracle
from catalog.oracle.decide import LocalReply, Place
from catalog.oracle.preconditions import Visibility
from catalog.oracle.request.request import Request
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.readiness import why_withheld
from catalog.store.inventory import by_identity
from catalog.store.objects import workload_object
from catalog.store.view import View
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import EXTERNAL_AUTHORIZATION, MESH_CONFIG
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import TrafficSplit
from meshwright.mesh.service import ServiceKey, ServicePort
from meshwright.mesh.workload import Explicit, Health


def scope(view: View, key: ServiceKey, visibilities: Iterable[Visibility]) -> Iterator[Step]:
    """Yield a step for each object that limits the Services known to a client's sidecar."""
    for item in visibilities:
        if item.by is not None:
            services = ", ".join(map(str, item.scope or ())) or "none"
            outcome = (
                "is one of them"
                if item.yes
                else "is not one of them, so its sidecar does not know the Service"
            )
            text = f"{item.by} limits the Services that its sidecar knows to {services}; {key} {outcome}."
            yield Step(text, origin_of_object(view, item.by))


def permissive(view: View, namespace: Namespace) -> Iterator[Step]:
    """Yield a step if the mesh or the server's namespace is permissive, or both are."""
    own = ObjectKey.of_namespace(namespace)
    permissive = oracle.accepts_everyone(view, namespace)
    if permissive != view.config.permissive:
        text = (
            f"Namespace {namespace} is permissive: every caller with a certificate of the mesh is admitted."
            if permissive
            else f"The mesh is permissive, but namespace {namespace} is not, so policy decides."
        )
        yield Step(text, origin_of_object(view, own))
    elif permissive:
        text = "The mesh is permissive: every caller with a certificate of the mesh is admitted."
        yield Step(text, mesh_configs(view))


def authorized(view: View, place: tuple[Place, bool]) -> Iterator[Step]:
    """Yield the step about the external authorizer of an admitted request, with the answer unknown here."""
    authorizer, by = oracle.authorizer_at(view, place), oracle.counting(view, place)
    origin = mesh_configs(view) if by is None else origin_of(view, EXTERNAL_AUTHORIZATION, by.key)
    if authorizer is not None:
        message = "" if by is None else f", because of ExternalAuthorization {by.key}"
        text = (
            f"The server's sidecar also asks the authorizer at {authorizer.server}{message}, and the "
            "authorizer may refuse the request (403)."
        )
        yield Step(text, origin, depth=1)
    elif by is not None and view.config.authorization is not None:
        text = (
            f"ExternalAuthorization {by.key} is disabled, so the sidecar does not ask the mesh's authorizer."
        )
        yield Step(text, origin, depth=1)


def mesh_configs(view: View) -> Objects:
    """Return the MeshConfigs with their origins, sorted."""
    configs = sorted(key for key in view.sourced if key.kind == MESH_CONFIG)
    return tuple(item for key in configs for item in origin_of_object(view, key))


def upstreams(view: View, request: Request, client: ServiceIdentity) -> Iterator[Step]:
    """Yield a step for each client workload with explicit interception and no upstream for the Service."""
    wanted = (request.service, request.port)
    for workload in by_identity(view).lookup(client):
        if workload.uuid is None or not isinstance(workload.interception, Explicit):
            continue
        if wanted not in {(known.service, known.service_port) for known in workload.interception.upstreams}:
            key = workload_object(view, workload.key)
            text = (
                f"{key} has no upstream for {request.service}:{request.port}, so its sidecar does "
                "not offer the Service."
            )
            yield Step(text, origin_of_object(view, key))


def waiting(
    view: View, request: Request, key: ServiceKey, port: ServicePort, split: TrafficSplit | None
) -> Iterator[Step]:
    """Yield a step for each endpoint of a port still waiting for traffic, with the reason."""
    # A call to the address of an endpoint goes to this endpoint, whether ready or not.
    if split is None and oracle.chooses_endpoint(view, request):
        return
    for endpoint in endpoints(view, key, port):
        if why := why_withheld(view, endpoint):
            named = ", ".join(map(str, endpoint.proxies)) or "no workload of the mesh"
            waits = f"is not admitted yet: {why}" if endpoint.health is not Health.UNREADY else "is not ready"
            yield Step(f"{HostPort(endpoint.address, endpoint.port)} ({named}) {waits}.")


def _lacking(view: View, key: ServiceKey) -> str:
    """Return the state that no workload of a Service has reached: `ready` or `admitted yet`."""
    result = (endpoint for port in view.services[key].ports for endpoint in endpoints(view, key, port))
    return "admitted yet" if any(endpoint.health is not Health.UNREADY for endpoint in result) else "ready"


def besides(view: View, request: Request) -> Iterator[str]:
    """Yield the obstacles of a request apart from policy, as clauses; none for an unknown Service."""
    arrived = oracle.arriving(view, request)
    if (
        request.identity is None
        or isinstance(arrived, LocalReply)
        or not (readinesses := answering(view, arrived))
    ):
        return
    for visibility in oracle.visibilities(view, request.identity, request.service):
        if not visibility.yes:
            yield (
                f"{visibility.by} limits the Services that its sidecar knows, and {request.service} is not "
                "one of them"
            )
    for backend in readinesses:
        if backend.waits:
            yield f"no workload of Service {backend.service} is {_lacking(view, backend.service)}"
        for place in backend.places:
            down = oracle.at_server(view, backend.request, place)
            if isinstance(down, LocalReply):
                yield f"the sidecar of {place[0].identity} refuses the request: {down.why}"
