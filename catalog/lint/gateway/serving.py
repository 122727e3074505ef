"""Problems of the places at which a Gateway is served: its workloads, addresses and ports."""

from collections.abc import Iterable, Iterator

from catalog.lint.codes import Code
from catalog.lint.wording import Place, listed
from catalog.relations.gateways.states import addresses_of, gateway_state
from catalog.store.gateway import workloads_by_gateway
from catalog.store.objects import origin_of, workload_object
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import AGENT_PORT, IP_ADDRESS, Gateway, Listener
from meshwright.mesh.kinds import WORKLOAD
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity


def problems(place: Place, gateway: Gateway) -> Iterator[Problem]:
    """Yield the problems of a Gateway of Meshwright."""
    yield from _addresses(place, gateway)
    yield from agent_port(place, gateway.listeners)
    if not workloads_by_gateway(place.view).get(gateway.key) and not _is_in_cluster(place, gateway):
        name = gateway.key.name
        wanted = (
            "No workload serves this Gateway, so it answers nothing. On a machine, create a Workload with "
            f"`gateway: {name}` in namespace {gateway.key.namespace}. In a cluster, the control plane "
            "creates the proxies (value gateways.enabled of the chart)."
        )
        severity = Severity.WARNING if _has_machines(place.view) else Severity.INFO
        yield place.problem(Code.UNSERVED_GATEWAY, severity, "metadata.name", name, wanted)


def _addresses(place: Place, gateway: Gateway) -> Iterator[Problem]:
    """Yield the requested addresses that the Gateway does not get."""
    state = gateway_state(place.view, gateway.key)
    is_served = bool(workloads_by_gateway(place.view).get(gateway.key))
    for index, address in enumerate(gateway.addresses):
        field = f"spec.addresses[{index}]"
        if address.type != IP_ADDRESS:
            wanted = (
                "Addresses of this type are not supported (UnsupportedAddress), so the address has no "
                f"effect. The type must be {IP_ADDRESS}."
            )
            yield place.error(Code.UNSUPPORTED_ADDRESS, f"{field}.type", address.type, wanted)
        elif state is not None and is_served and address.value in state.unusable:
            there = [item.value for item in addresses_of(place.view, gateway.key)]
            wanted = (
                "No workload that serves the Gateway, and no Service of one, has this address "
                f"(AddressNotUsable), so the Gateway is not served there, but at {listed(there)}. Correct or "
                "delete the address."
            )
            yield place.warning(Code.ADDRESS_NOT_USABLE, f"{field}.value", address.value, wanted)


def agent_port(place: Place, listeners: Iterable[Listener]) -> Iterator[Problem]:
    """Yield the listeners of a Gateway or ListenerSet at the port of the agent."""
    for index, listener in enumerate(listeners):
        if listener.port == AGENT_PORT:
            wanted = (
                "The agent of the proxy answers probes and metrics at this port of all addresses, so the "
                "proxy cannot listen there. Choose another port."
            )
            field = f"spec.listeners[{index}].port"
            yield place.warning(Code.PORT_OF_AGENT, field, str(listener.port), wanted)


def _is_in_cluster(place: Place, gateway: Gateway) -> bool:
    """Return whether a Gateway is of a cluster, or is tried in one, where the control plane runs it."""
    objects = (place.key, ObjectKey.of_namespace(gateway.key.namespace))
    return any(isinstance(origin_of(place.view, key), InCluster) for key in objects)


def _has_machines(view: View) -> bool:
    return any(workload_object(view, key).kind == WORKLOAD for key in view.workloads)
