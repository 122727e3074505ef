"""Steps about unknown names of Services, ports, callers and proxies, with similar names."""

from collections.abc import Iterable, Iterator
from typing import Final

from catalog.explain.steps.step import Step, origin_of, origin_of_object
from catalog.oracle.request.request import Request
from catalog.store.inventory import by_identity, by_sidecar, claimant_of
from catalog.store.objects import workload_object
from catalog.store.view import View
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.names import ProxyUuid
from meshwright.mesh.problems.spelling import COMPARED, alike, did_you_mean
from meshwright.mesh.service import Service
from meshwright.mesh.workload import Workload, WorkloadKey

_SHOWN: Final = 3


def unknown_service(view: View, request: Request) -> Step:
    """Return the step about an unknown Service, with Services of the same or a similar name."""
    wanted = request.service
    elsewhere = [str(key) for key in view.services if key.name == wanted.name]
    there = {str(key.name): str(key) for key in view.services if key.namespace == wanted.namespace}
    near = [there[name] for name in alike(wanted.name, there, _SHOWN)]
    return Step(f"Service {wanted} does not exist{_but([*sorted(elsewhere)[:_SHOWN], *near])}.")


def unknown_port(view: View, request: Request, service: Service) -> Step:
    """Return the step about an unknown port with the ports of the Service; target ports are not ports."""
    has = ", ".join(str(port.port) for port in service.ports) or "none"
    behind = [str(port.port) for port in service.ports if port.target_port == request.port]
    meant = f"; {request.port} is the target port of its port {behind[0]}" if behind else ""
    text = f"Service {service.key} has no port {request.port}. Its ports: {has}{meant}."
    return Step(text, origin_of(view, SERVICE, service.key))


def client(view: View, identity: ServiceIdentity) -> Iterator[Step]:
    """Yield a step, with similar names, if the caller's identity belongs to no workload."""
    if identity in by_identity(view):
        return
    text, day = (
        f"No workload has the ServiceAccount {identity}",
        ". The next steps describe a workload that has this account.",
    )
    same = view.workloads.get(WorkloadKey(identity.namespace, identity.service_account))
    if same is not None:
        origin = origin_of_object(view, workload_object(view, same.key))
        yield Step(f"{text}: the workload {same.key} has {same.identity}{day}", origin)
        return
    known = list(by_identity(view))
    elsewhere = [str(item) for item in known if item.service_account == identity.service_account]
    there = {str(item.service_account): str(item) for item in known if item.namespace == identity.namespace}
    near = [there[name] for name in alike(identity.service_account, there, _SHOWN)]
    yield Step(f"{text}{_but([*elsewhere[:_SHOWN], *near])}{day}")


def reason_for_unknown(view: View, name: ProxyName) -> str:
    """Return why a proxy name is unknown, with a similar name; empty for a known proxy."""
    holder = claimant_of(view, name.sidecar) or _elsewhere(view, name.uuid)
    if holder is None:
        return f"no workload has the UUID {name.uuid}{_meant(view, name)}"
    if holder.proxy_name == name:
        return ""
    return f"workload {holder.key} has the UUID {name.uuid}, and its proxy is {holder.proxy_name}"


def _but(names: Iterable[str]) -> str:
    result = ", ".join(names)
    return f" (similar names: {result})" if result else ""


def _elsewhere(view: View, uuid: ProxyUuid) -> Workload | None:
    """Return the first workload of any namespace with this UUID of a proxy, possibly the intended one."""
    first = min((sidecar for sidecar in by_sidecar(view) if sidecar.uuid == uuid), default=None)
    return None if first is None else claimant_of(view, first)


def _meant(view: View, name: ProxyName) -> str:
    holders = (claimant_of(view, sidecar) for sidecar in by_sidecar(view))
    there = [holder.proxy_name for holder in holders if holder is not None and holder.proxy_name is not None]
    if len(there) > COMPARED:
        # UUIDs cannot be searched by a prefix, but the other parts of the name can.
        there = [
            proxy_name
            for proxy_name in there
            if (proxy_name.service, proxy_name.namespace) == (name.service, name.namespace)
        ]
    return did_you_mean(str(name), map(str, there))
