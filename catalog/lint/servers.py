"""Problems of servers behind sidecars, for example authorizers, which sidecars call in plain text."""

from collections.abc import Iterable, Iterator

from catalog.lint.codes import Code
from catalog.lint.wording import problem_of
from catalog.relations.backends.workloads import backing
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.service import ServiceKey


def problems(view: View, key: ObjectKey, config: MeshConfig) -> Iterator[Problem]:
    """Yield a problem for each server of a MeshConfig behind a sidecar, which refuses plain text."""
    yield from behind_sidecars(view, key, _named(config))


def behind_sidecars(view: View, key: ObjectKey, named: Iterable[tuple[str, HostPort]]) -> Iterator[Problem]:
    """Yield a problem for each of these servers that is behind a sidecar, with the object's field."""
    for field, server in named:
        service = _service(server.host)
        if (
            service is not None
            and service in view.services
            and any(workload.uuid is not None for workload in backing(view, service))
        ):
            wanted = (
                f"Sidecars call this server in plain text, but Service {service} has workloads "
                "with sidecars, which refuse plain text. Keep the server out of the mesh, or "
                "exclude its port from interception."
            )
            yield problem_of(view, key, Code.PLAIN_TEXT_SERVER, Severity.WARNING, field, str(server), wanted)


def _named(config: MeshConfig) -> Iterator[tuple[str, HostPort]]:
    if config.authorization is not None:
        yield "spec.traffic.inboundExternalAuthorization.address", config.authorization.server
    if config.tracing is not None:
        yield "spec.observability.tracing.address", config.tracing.collector


def _service(host: str) -> ServiceKey | None:
    """Return the Service of a DNS name, or None. For example `opa.opa.svc` is Service opa/opa."""
    name, _, rest = host.partition(".")
    namespace, _, rest = rest.partition(".")
    if not namespace or rest.partition(".")[0] not in ("", "svc"):
        return None
    return ServiceKey(Namespace(namespace), ServiceName(name))
