"""The steps about what is spoken on a port: what was decided, by what, and whether the workloads agree."""

from collections.abc import Iterator
from typing import Final

from catalog.explain.steps import Step, origin_of_object
from catalog.relations.backing import backing, services_of
from catalog.relations.ports import declared_protocol, served, spoken, target_number
from catalog.store.objects import workload_object
from catalog.store.view import View
from mesh.service import Service, ServiceKey, ServicePort

_BY: Final = {"appProtocol": "by its appProtocol", "name": "by its name", "port": "by its number"}


def spoken_at(view: View, service: Service, port: ServicePort) -> str:
    """Say what a service's port speaks, and who or what says so."""
    behind = backing(view, service.key)
    declared = {
        declared_protocol(number, each.ports)
        for each in behind
        if (number := target_number(port, each.ports)) is not None
    }
    guessed = (
        "as its workloads declare"
        if len(declared - {None}) == 1
        else "by default, for nothing says it (set appProtocol)"
    )
    why = _BY.get(port.protocol_source, guessed)
    return f"Service {service.key} has port {port.port}, which speaks {spoken(port, behind).value}, {why}"


def disputed(view: View, key: ServiceKey, port: ServicePort) -> Iterator[Step]:
    """Yield the workloads whose sidecar speaks something else there than the service's callers (MW2023)."""
    behind = backing(view, key)
    called = spoken(port, behind)
    for workload in behind:
        services = [view.services[each] for each in services_of(view, workload.key)]
        there = {number: protocol for number, protocol, _ in served(services, workload.ports)}
        number = target_number(port, workload.ports)
        taken = there.get(number, called) if number is not None else called
        if taken.is_http != called.is_http:
            named = workload_object(view, workload.key)
            fail = f"so that calls as {called.value} fail (MW2023)"
            text = f"{named} takes its port {number} for {taken.value}, {fail}"
            yield Step(text, origin_of_object(view, named))
