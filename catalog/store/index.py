"""What a view is indexed by: for each input the entries under which it is found, as pure functions."""

from collections.abc import Mapping
from typing import Final

from mesh.config import MeshConfig
from mesh.identity import ServiceIdentity
from mesh.names import IpAddress, Namespace, ProxyUuid, ServiceName
from mesh.objects import EndpointSlice, ObjectKey, Sourced
from mesh.policy import PolicyKey, TrafficSplit, TrafficTarget
from mesh.service import Service, ServiceKey
from mesh.workload import PodTemplate, Workload, WorkloadKey

PREFERRED_CONFIG: Final = "osm-mesh-config"
"""The MeshConfig that counts where there are several; else the first by namespace and name."""

Label = tuple[Namespace, str, str]
"""A label as one namespace has it: namespace, name, value."""

VIRTUAL: Final = "virtual"
"""The entry of services that need a virtual address."""


def configs(objects: Mapping[ObjectKey, Sourced]) -> tuple[ObjectKey, ...]:
    """Return the keys of all MeshConfigs, the one that counts first."""
    keys = (key for key, each in objects.items() if isinstance(each.value, MeshConfig))
    return tuple(sorted(keys, key=config_order))


def config_order(key: ObjectKey) -> tuple[bool, ObjectKey]:
    """Return what MeshConfigs are sorted by: the first one counts."""
    return (key.name != PREFERRED_CONFIG, key)


def telling_label(service: Service) -> Label | None:
    """Return the label of a service's selector by which it is looked for; None without a selector.

    One must do, for a label that all workloads have would tie every service to every workload. The one
    whose value is the service's name is likely to be its own; else the first.
    """
    if not service.selector:
        return None
    name, value = min(service.selector, key=lambda pair: (pair[1] != service.key.name, pair))
    return (service.key.namespace, name, value)


def service_labels(_: ServiceKey, service: Service) -> tuple[Label, ...]:
    """Find a service by the telling label of its selector."""
    label = telling_label(service)
    return () if label is None else (label,)


def cluster_ips(_: ServiceKey, service: Service) -> tuple[IpAddress, ...]:
    """Find a service by its own address."""
    return () if service.cluster_ip is None else (service.cluster_ip,)


def namespaces(key: ServiceKey, _: Service) -> tuple[Namespace, ...]:
    """Find a service by its namespace."""
    return (key.namespace,)


def addressing(_: ServiceKey, service: Service) -> tuple[str, ...]:
    """Find the services that need a virtual address: they have none of their own and are not headless."""
    return (VIRTUAL,) if service.cluster_ip is None and not service.headless else ()


def labels(key: WorkloadKey, workload: Workload) -> tuple[Label, ...]:
    """Find a workload by its labels."""
    return tuple((key.namespace, name, value) for name, value in workload.labels)


def template_labels(_: ObjectKey, template: PodTemplate) -> tuple[Label, ...]:
    """Find a pod template by its labels."""
    return tuple((template.key.namespace, name, value) for name, value in template.labels)


def template_identities(_: ObjectKey, template: PodTemplate) -> tuple[ServiceIdentity, ...]:
    """Find a pod template by the identity of its pods."""
    return (template.identity,)


def uuids(_: WorkloadKey, workload: Workload) -> tuple[ProxyUuid, ...]:
    """Find a workload by its sidecar's UUID."""
    return () if workload.uuid is None else (workload.uuid,)


def identities(_: WorkloadKey, workload: Workload) -> tuple[ServiceIdentity, ...]:
    """Find a workload by its identity."""
    return (workload.identity,)


def identities_with_sidecar(_: WorkloadKey, workload: Workload) -> tuple[ServiceIdentity, ...]:
    """Find a workload by its identity if it has a sidecar, which shows that identity."""
    return () if workload.uuid is None else (workload.identity,)


def addresses(_: WorkloadKey, workload: Workload) -> tuple[IpAddress, ...]:
    """Find a workload by its address."""
    return (workload.address,)


def primaries(key: WorkloadKey, workload: Workload) -> tuple[ServiceKey, ...]:
    """Find a workload by its primary service."""
    return (ServiceKey(key.namespace, workload.service),)


def sliced_services(_: EndpointSlice, found: EndpointSlice) -> tuple[ServiceKey, ...]:
    """Find a slice by its service."""
    return (ServiceKey(found.namespace, ServiceName(found.service)),)


def sliced_addresses(_: EndpointSlice, found: EndpointSlice) -> tuple[tuple[Namespace, IpAddress], ...]:
    """Find a slice by its addresses, within its namespace."""
    return tuple(dict.fromkeys((found.namespace, IpAddress(each)) for each in found.addresses))


def sources(_: PolicyKey, target: TrafficTarget) -> tuple[ServiceIdentity, ...]:
    """Find a TrafficTarget by its sources."""
    return tuple(dict.fromkeys(target.sources))


def destinations(_: PolicyKey, target: TrafficTarget) -> tuple[ServiceIdentity, ...]:
    """Find a TrafficTarget by its destination."""
    return (target.destination,)


def ends(_: PolicyKey, target: TrafficTarget) -> tuple[tuple[ServiceIdentity, ServiceIdentity], ...]:
    """Find a TrafficTarget by source and destination."""
    return tuple((each, target.destination) for each in dict.fromkeys(target.sources))


def apexes(_: PolicyKey, split: TrafficSplit) -> tuple[ServiceKey, ...]:
    """Find a TrafficSplit by its apex."""
    return (split.apex,)


def backends(_: PolicyKey, split: TrafficSplit) -> tuple[ServiceKey, ...]:
    """Find a TrafficSplit by its backends."""
    return tuple(dict.fromkeys(ServiceKey(split.key.namespace, each.service) for each in split.backends))
