"""The steps of an explanation that are not about TrafficTargets and splits (`catalog.standing`)."""

from collections.abc import Iterable, Iterator

from catalog import decide as oracle
from catalog.admission import WAITS_FOR, takes_traffic
from catalog.endpoints import endpoints
from catalog.explain_steps import Step, origin_of_object
from catalog.standing import Told
from catalog.view import View
from mesh.names import Namespace
from mesh.objects import ObjectKey
from mesh.service import ServiceKey, ServicePort


def narrowing(view: View, key: ServiceKey, told: Iterable[Told]) -> Iterator[Step]:
    """Yield who narrows what the client's sidecars are told of, and whether the service is among it."""
    for each in told:
        if each.by is not None:
            services = ", ".join(map(str, each.egress or ())) or "none"
            outcome = "is among them" if each.yes else "is not: its sidecar does not know the service"
            text = f"{each.by} narrows the services it is told of to {services}; {key} {outcome}"
            yield Step(text, origin_of_object(view, each.by))


def openness(view: View, namespace: Namespace) -> Iterator[Step]:
    """Yield whether the server's namespace is permissive, and who says so; nothing where nobody does."""
    own = ObjectKey("Namespace", Namespace(""), namespace)
    permissive = oracle.accepts_everyone(view, namespace)
    if permissive != view.config.permissive:
        said = (
            f"namespace {namespace} is permissive: whoever has a certificate of the mesh is admitted"
            if permissive
            else f"the mesh is permissive, and namespace {namespace} is not: policy decides"
        )
        yield Step(said, origin_of_object(view, own))
    elif permissive:
        configs = sorted(key for key in view.sourced if key.kind == "MeshConfig")
        where = tuple(each for key in configs for each in origin_of_object(view, key))
        yield Step("the mesh is permissive: whoever has a certificate of the mesh is admitted", where)


def waiting(view: View, key: ServiceKey, port: ServicePort) -> Iterator[Step]:
    """Yield the endpoints behind a service's port that get no traffic yet, and what each waits for."""
    reason = WAITS_FOR[view.settings.endpoint_admission]
    for each in endpoints(view, key, port):
        if not takes_traffic(view, each):
            named = ", ".join(map(str, each.proxies))
            yield Step(f"{each.address}:{each.port} ({named}) is not admitted yet: {reason}")
