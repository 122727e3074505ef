"""Groups of proxies with the same configuration, which is computed and encoded once per group."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from catalog.relations.backends.localities import locality_of
from catalog.relations.backends.ports import GivenPorts
from catalog.relations.backends.targets import slice_ports
from catalog.relations.backends.workloads import services_of
from catalog.relations.telemetry import telling
from catalog.store.inventory import claimant_of
from catalog.store.view import IN_VIEW, View, namespaces, workloads
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import IpAddress, Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import Scope, ServiceKey
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once
from meshwright.mesh.workload import (
    DRIVER_ANNOTATION,
    Edge,
    Explicit,
    Interception,
    Workload,
    WorkloadKey,
    WorkloadPort,
)


@hashed_once
@dataclass(frozen=True, slots=True)
class ProxyGroup(CachedHash):
    """Properties of a proxy on which its configuration depends.

    - `workload` and `address` are only set for proxies that bind their own addresses: in explicit
      interception, and of gateways.
    - `ports` are included because a service may name its target port, and a workload its protocol.
    - `scope` is the workload's own scope; `None` leaves the scope to its namespace.
    - `driver` is the sidecar driver named by the workload, else by its namespace, else empty.
    - `telemetry` are the Telemetry objects in force for the workload.
    - `locality` is only set if a policy needs it.
    - `given_ports` are the ports in slices of Services without selector.
    """

    identity: ServiceIdentity
    primary: ServiceKey
    services: tuple[ServiceKey, ...]
    ports: tuple[WorkloadPort, ...]
    interception: Interception
    workload: WorkloadKey | None = None
    address: IpAddress | None = None
    scope: Scope = None
    driver: str = ""
    telemetry: tuple[PolicyKey, ...] = ()
    locality: str = ""
    given_ports: GivenPorts = ()


def _driver(namespace: NamespaceObject) -> str | None:
    return dict(namespace.annotations).get(DRIVER_ANNOTATION)


_drivers: Final = IN_VIEW.column(namespaces, _driver)


def group_of(view: View, workload: Workload) -> ProxyGroup:
    """Return the group to which the proxy of a workload belongs."""
    binding = isinstance(workload.interception, Explicit | Edge)
    return ProxyGroup(
        identity=workload.identity,
        primary=ServiceKey(workload.key.namespace, workload.service),
        services=services_of(view, workload.key),
        # Sorted, so workloads with the same ports in another order belong to one group.
        ports=tuple(sorted(workload.ports, key=_port_order)),
        interception=workload.interception,
        workload=workload.key if binding else None,
        address=workload.address if binding else None,
        scope=workload.scope,
        driver=driver_of(view, workload),
        telemetry=telling(view, workload),
        locality=locality_of(view, workload),
        given_ports=slice_ports(view, workload.key),
    )


def driver_of(view: View, workload: Workload) -> str:
    """Return the sidecar driver named by a workload, else by its namespace, else an empty text."""
    return workload.driver or namespace_driver(view, workload.key.namespace)


def namespace_driver(view: View, namespace: Namespace) -> str:
    """Return the sidecar driver in a namespace's annotation, or an empty text."""
    return _drivers(view).get(namespace, "")


def groups_of(view: View, key: WorkloadKey) -> tuple[ProxyGroup, ...]:
    """Return the group of a workload's proxy as a tuple; empty if another workload claims the sidecar."""
    workload = view.workloads[key]
    claimant = None if workload.sidecar is None else claimant_of(view, workload.sidecar)
    # Of several workloads with one sidecar only the claimant has a proxy; the others would get its snapshot.
    if claimant is None or claimant.key != key:
        return ()
    return (group_of(view, workload),)


members: Final = IN_VIEW.derived_index("workloads by group", workloads, groups_of)
"""The workloads of each group."""


def groups(view: View) -> Mapping[ProxyGroup, tuple[ProxyName, ...]]:
    """Return all groups with the names of their proxies, sorted, in the order of their first proxy.

    For example, ten replicas of one Deployment are one group with ten proxies.
    """
    result = {group: proxies(view, group) for group in members(view)}
    return dict(sorted(result.items(), key=lambda item: item[1]))


def proxies(view: View, group: ProxyGroup) -> tuple[ProxyName, ...]:
    """Return the names of a group's proxies, sorted."""
    result = (view.workloads[key].proxy_name for key in members(view).get(group, ()))
    return tuple(sorted(proxy_name for proxy_name in result if proxy_name is not None))


def _port_order(port: WorkloadPort) -> tuple[int, str, str]:
    return (port.number, port.name, port.protocol or "")
