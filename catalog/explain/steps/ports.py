"""Steps about the protocol of a port: the decision, its source, and workloads with another protocol."""

from collections.abc import Iterator
from typing import Final

from catalog.explain.steps.step import Step, origin_of_object
from catalog.relations.backends.ports import declared_protocol, spoken
from catalog.relations.backends.targets import served_by, target_numbers
from catalog.relations.backends.workloads import backing
from catalog.store.objects import workload_object
from catalog.store.view import View
from meshwright.mesh.names import Port
from meshwright.mesh.service import Service, ServiceKey, ServicePort
from meshwright.mesh.workload import Workload

_BY: Final = {
    "appProtocol": "as its appProtocol declares",
    "name": "as its name declares",
    "port": "as its number suggests",
}


def spoken_at(view: View, service: Service, port: ServicePort) -> str:
    """Return a sentence about the protocol of a Service's port, and where the protocol is declared."""
    behind = backing(view, service.key)
    declared = {
        declared_protocol(number, workload.ports)
        for workload in behind
        for number in target_numbers(view, workload, service, port)
    }
    guessed = (
        "as its workloads declare"
        if len(declared - {None}) == 1
        else "by default, because a protocol is not declared (set appProtocol)"
    )
    why = _BY.get(port.protocol_source, guessed)
    return f"Service {service.key} has port {port.port}, which speaks {spoken(port, behind).value}, {why}."


def disputed(view: View, key: ServiceKey, port: ServicePort) -> Iterator[Step]:
    """Yield a step for each workload whose sidecar has another protocol than the callers (MW2026)."""
    behind = backing(view, key)
    called = spoken(port, behind)
    for workload in behind:
        there = {number: (protocol, services) for number, protocol, services in served_by(view, workload)}
        for number in target_numbers(view, workload, view.services[key], port):
            taken, services = there.get(number, (called, ()))
            if taken.is_http != called.is_http:
                named = workload_object(view, workload.key)
                others = [str(service.key) for service in services if service.key != key]
                by = f"as {_deciding(workload, number, others)}"
                fail = f"so calls as {called.value} fail (MW2026)"
                text = f"{named} serves its port {number} as {taken.value}, {by}, {fail}."
                yield Step(text, origin_of_object(view, named))


def _deciding(workload: Workload, number: Port, others: list[str]) -> str:
    """Return the clause about the object that declares the protocol of a workload's port."""
    if declared_protocol(number, workload.ports) is not None:
        return "the workload declares"
    return f"{', '.join(others)} declares (of several Services the oldest decides)"
