"""Problems of Gateways, and of workloads for Gateways."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.gateway import listeners, serving
from catalog.lint.gateway.classes import missing_class, remedy
from catalog.lint.gateway.clients import certificate, validation
from catalog.lint.lint import Lint
from catalog.lint.wording import Place, listed
from catalog.relations.gateways.classes import reason_unserved, served_gateway
from catalog.relations.gateways.listeners import listener_verdicts, listeners_of_set
from catalog.store.inventory import by_address
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import Gateway
from meshwright.mesh.kinds import GATEWAY
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.workload import Edge, Workload


def of_gateway(lint: Lint, gateway: Gateway) -> Iterator[Problem]:
    """Yield the problems of a Gateway; one of another controller has none here."""
    view = lint.view
    place = Place(view, ObjectKey.from_name(GATEWAY, gateway.key))
    yield from missing_class(place, gateway)
    if served_gateway(view, gateway.key) is not None:
        for field in gateway.unused:
            wanted = "Meshwright does not support this field, so the field has no effect. Delete the field."
            yield place.warning(Code.GATEWAY_FIELD_NOT_USED, field, "", wanted)
        yield from serving.problems(place, gateway)
        yield from certificate.problems(lint, place, gateway.key)
        yield from validation.problems(place, gateway)
    yield from listeners.problems(lint, place, listeners_of_set(view, gateway.key, None))


def of_workload(place: Place, workload: Workload) -> Iterator[Problem]:
    """Yield the problems of a workload for a gateway."""
    if not isinstance(workload.interception, Edge):
        return
    view, key = place.view, _served(workload, workload.interception)
    if why := reason_unserved(view, key):
        wanted = f"Gateway {key} {why}, so this workload serves nothing. {remedy(view, key)}"
        yield place.error(Code.UNKNOWN_GATEWAY, "spec.gateway", key.name, wanted)
        return
    # Only gateways in force have ports.
    yield from _shared_ports(place, workload, key)


def _shared_ports(place: Place, workload: Workload, key: PolicyKey) -> Iterator[Problem]:
    view, own = place.view, _ports(place.view, key)
    for address in workload.addresses:
        for other in by_address(view).lookup(address):
            if other.key == workload.key or not isinstance(other.interception, Edge):
                continue
            there = _served(other, other.interception)
            if common := sorted(own & _ports(view, there)):
                wanted = (
                    f"Workload {other.key} serves Gateway {there} at the same address and port "
                    f"{listed([*map(str, common)])}. Both proxies listen, and on one machine the kernel "
                    "shares the connections between them. Choose another address, or other ports."
                )
                yield place.error(Code.SHARED_GATEWAY_PORT, "spec.address", address, wanted)


def _served(workload: Workload, edge: Edge) -> PolicyKey:
    return PolicyKey(workload.key.namespace, edge.gateway)


def _ports(view: View, key: PolicyKey) -> set[Port]:
    """Return the ports at which the proxies of a gateway listen, for example 80 and 443."""
    # Listeners out of force open no port.
    return {verdict.listener.port for verdict in listener_verdicts(view, key) if verdict.in_force}
