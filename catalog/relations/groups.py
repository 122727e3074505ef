"""Groups of proxies that need the same configuration, so that it is computed and encoded once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from catalog.relations.backends.localities import locality_of
from catalog.relations.backends.ports import GivenPorts
from catalog.relations.backends.targets import given_ports
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
    Explicit,
    Interception,
    Workload,
    WorkloadKey,
    WorkloadPort,
)


@hashed_once
@dataclass(frozen=True, slots=True)
class ProxyGroup(CachedHash):
    """What a proxy's configuration depends on, of the proxy itself.

    `workload` and `address` are set in explicit interception alone, where each proxy binds addresses of
    its own; `ports` are there because a service may name its target port, and a workload its protocol.
    `scope` is how the workload itself narrows its view; None leaves that to its namespace. `driver` is
    the sidecar driver that the workload or else its namespace names, empty where neither does. `telemetry`
    are the Telemetry objects that count for it. `locality` is where it is, if that makes a difference.
    `given` are the ports that slices of Services without selector give.
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
    given: GivenPorts = ()


def _driver(found: NamespaceObject) -> str | None:
    return dict(found.annotations).get(DRIVER_ANNOTATION)


_drivers: Final = IN_VIEW.column(namespaces, _driver)


def group_of(view: View, workload: Workload) -> ProxyGroup:
    """Return the group of a workload's proxy."""
    explicit = isinstance(workload.interception, Explicit)
    return ProxyGroup(
        identity=workload.identity,
        primary=ServiceKey(workload.key.namespace, workload.service),
        services=services_of(view, workload.key),
        ports=tuple(sorted(workload.ports, key=_port_order)),
        interception=workload.interception,
        workload=workload.key if explicit else None,
        address=workload.address if explicit else None,
        scope=workload.scope,
        driver=driver_of(view, workload),
        telemetry=telling(view, workload),
        locality=locality_of(view, workload),
        given=given_ports(view, workload.key),
    )


def driver_of(view: View, workload: Workload) -> str:
    """Return the sidecar driver that a workload names, or else its namespace; empty where neither does."""
    return workload.driver or namespace_driver(view, workload.key.namespace)


def namespace_driver(view: View, namespace: Namespace) -> str:
    """Return the sidecar driver that a namespace's annotation names; empty for none."""
    return _drivers(view).get(namespace, "")


def groups_of(view: View, key: WorkloadKey) -> tuple[ProxyGroup, ...]:
    """Return the group of a workload's proxy; nothing where it has none of its own."""
    workload = view.workloads[key]
    claimant = None if workload.sidecar is None else claimant_of(view, workload.sidecar)
    if claimant is None or claimant.key != key:
        return ()
    return (group_of(view, workload),)


members: Final = IN_VIEW.derived_index("workloads by group", workloads, groups_of)
"""The workloads of each group."""


def groups(view: View) -> Mapping[ProxyGroup, tuple[ProxyName, ...]]:
    """Return all groups with the names of their proxies, sorted; groups in the order of their first one."""
    found = {group: proxies(view, group) for group in members(view)}
    return dict(sorted(found.items(), key=lambda each: each[1]))


def proxies(view: View, group: ProxyGroup) -> tuple[ProxyName, ...]:
    """Return the names of a group's proxies, sorted."""
    found = (view.workloads[key].proxy_name for key in members(view).get(group, ()))
    return tuple(sorted(each for each in found if each is not None))


def _port_order(port: WorkloadPort) -> tuple[int, str, str]:
    return (port.number, port.name, port.protocol or "")
