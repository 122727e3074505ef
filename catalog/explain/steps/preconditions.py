"""The steps not about TrafficTargets and splits (`catalog.oracle.preconditions`), and what is in the way."""

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


def scope(view: View, key: ServiceKey, told: Iterable[Visibility]) -> Iterator[Step]:
    """Yield who narrows what the client's sidecars are told of, and whether the service is among it."""
    for each in told:
        if each.by is not None:
            services = ", ".join(map(str, each.scope or ())) or "none"
            outcome = "is among them" if each.yes else "is not: its sidecar does not know the service"
            text = f"{each.by} narrows the services it is told of to {services}; {key} {outcome}"
            yield Step(text, origin_of_object(view, each.by))


def permissive(view: View, namespace: Namespace) -> Iterator[Step]:
    """Yield whether the server's namespace is permissive, and who says so; nothing where nobody does."""
    own = ObjectKey.of_namespace(namespace)
    permissive = oracle.accepts_everyone(view, namespace)
    if permissive != view.config.permissive:
        said = (
            f"namespace {namespace} is permissive: whoever has a certificate of the mesh is admitted"
            if permissive
            else f"the mesh is permissive, and namespace {namespace} is not: policy decides"
        )
        yield Step(said, origin_of_object(view, own))
    elif permissive:
        said = "the mesh is permissive: whoever has a certificate of the mesh is admitted"
        yield Step(said, mesh_configs(view))


def authorized(view: View, place: tuple[Place, bool]) -> Iterator[Step]:
    """Yield who is asked about a request that policy admits; what is answered is not known here."""
    asked, by = oracle.asked(view, place), oracle.counting(view, place)
    origin = mesh_configs(view) if by is None else origin_of(view, EXTERNAL_AUTHORIZATION, by.key)
    if asked is not None:
        said = "" if by is None else f", as ExternalAuthorization {by.key} has it"
        text = f"the authorizer at {asked.server} is asked besides{said}, and may refuse it (403)"
        yield Step(text, origin, depth=1)
    elif by is not None and view.config.authorization is not None:
        text = f"ExternalAuthorization {by.key} is disabled: the mesh's authorizer is not asked"
        yield Step(text, origin, depth=1)


def mesh_configs(view: View) -> Objects:
    """Return the MeshConfigs with their places, sorted."""
    configs = sorted(key for key in view.sourced if key.kind == MESH_CONFIG)
    return tuple(each for key in configs for each in origin_of_object(view, key))


def upstreams(view: View, request: Request, client: ServiceIdentity) -> Iterator[Step]:
    """Yield the client's workloads that have nowhere to call the service: explicit ones without upstream."""
    wanted = (request.service, request.port)
    for each in by_identity(view).found(client):
        if each.uuid is None or not isinstance(each.interception, Explicit):
            continue
        if wanted not in {(known.service, known.service_port) for known in each.interception.upstreams}:
            key = workload_object(view, each.key)
            text = (
                f"{key} has no upstream for {request.service}:{request.port}: its sidecar offers it nowhere"
            )
            yield Step(text, origin_of_object(view, key))


def waiting(
    view: View, request: Request, key: ServiceKey, port: ServicePort, split: TrafficSplit | None
) -> Iterator[Step]:
    """Yield the endpoints behind a service's port that get no traffic yet, and what each waits for."""
    if split is None and oracle.chooses_endpoint(view, request):
        return
    for each in endpoints(view, key, port):
        if why := why_withheld(view, each):
            named = ", ".join(map(str, each.proxies)) or "nobody of the mesh"
            waits = f"is not admitted yet: {why}" if each.health is not Health.UNREADY else "is not ready"
            yield Step(f"{HostPort(each.address, each.port)} ({named}) {waits}")


def _lacking(view: View, key: ServiceKey) -> str:
    """Say what nobody behind a service is, of whom nobody takes calls."""
    found = (each for port in view.services[key].ports for each in endpoints(view, key, port))
    return "admitted yet" if any(each.health is not Health.UNREADY for each in found) else "ready"


def besides(view: View, request: Request) -> Iterator[str]:
    """Yield in clauses what keeps a request from passing, whatever policy says; nothing without a service."""
    arrived = oracle.arriving(view, request)
    if request.identity is None or isinstance(arrived, LocalReply) or not (found := answering(view, arrived)):
        return
    for each in oracle.told(view, request.identity, request.service):
        if not each.yes:
            yield f"{each.by} does not have {request.service} among the services that its sidecar is told of"
    for backend in found:
        if backend.waits:
            yield f"nobody behind Service {backend.service} is {_lacking(view, backend.service)}"
        for place in backend.places:
            down = oracle.at_server(view, arrived, place)
            if isinstance(down, LocalReply):
                yield f"the sidecar of {place[0].identity} turns it down: {down.why}"
