"""The indexes of a view: each a pure function of what it indexes, its results sorted."""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from catalog.addresses import allocate
from mesh.config import MeshConfig
from mesh.endpoints import Inventory
from mesh.names import IpAddress, Namespace, ProxyUuid, ServiceName
from mesh.objects import EndpointSlice, ObjectKey, Sourced
from mesh.policy import PolicyKey
from mesh.service import Service, ServiceKey
from mesh.workload import Workload, WorkloadKey

PREFERRED_CONFIG: Final = "osm-mesh-config"
"""The MeshConfig that counts where there are several; else the first by namespace and name."""

K = TypeVar("K")
V = TypeVar("V")


class _Keyed(Protocol):
    @property
    def key(self) -> PolicyKey: ...


P = TypeVar("P", bound=_Keyed)


def group(pairs: Iterable[tuple[K, V]]) -> Mapping[K, tuple[V, ...]]:
    """Collect values by key, in the order in which they come, each once per key."""
    found: dict[K, dict[V, None]] = {}
    for key, value in pairs:
        found.setdefault(key, {})[value] = None
    return MappingProxyType({key: tuple(values) for key, values in found.items()})


def values(objects: Mapping[ObjectKey, Sourced], kind: type[P]) -> tuple[P, ...]:
    """Return the policy objects of one type, sorted by key."""
    found = (each.value for each in objects.values())
    return tuple(sorted((each for each in found if isinstance(each, kind)), key=lambda each: each.key))


def services(objects: Mapping[ObjectKey, Sourced]) -> Mapping[ServiceKey, Service]:
    """Return the services by key, sorted."""
    found = [each.value for each in objects.values() if isinstance(each.value, Service)]
    return MappingProxyType({each.key: each for each in sorted(found, key=lambda each: each.key)})


def workloads(inventory: Inventory) -> Mapping[WorkloadKey, Workload]:
    """Return the workloads by key, sorted."""
    found = sorted(inventory.workloads, key=lambda each: each.key)
    return MappingProxyType({each.key: each for each in found})


def slices(inventory: Inventory) -> Mapping[ServiceKey, tuple[EndpointSlice, ...]]:
    """Return the endpoint slices by their service."""
    return group((_service_of(each), each) for each in sorted(inventory.slices))


def by_uuid(found: Mapping[WorkloadKey, Workload]) -> Mapping[ProxyUuid, Workload]:
    """Return the workload of each sidecar; of two that claim one UUID the first by key has it."""
    uuids: dict[ProxyUuid, Workload] = {}
    for workload in found.values():
        if workload.uuid is not None:
            uuids.setdefault(workload.uuid, workload)
    return MappingProxyType(uuids)


def configs(objects: Mapping[ObjectKey, Sourced]) -> tuple[ObjectKey, ...]:
    """Return the keys of all MeshConfigs, the one that counts first."""
    keys = (key for key, each in objects.items() if isinstance(each.value, MeshConfig))
    return tuple(sorted(keys, key=lambda key: (key.name != PREFERRED_CONFIG, key)))


def config(objects: Mapping[ObjectKey, Sourced]) -> MeshConfig:
    """Return the MeshConfig in force; the defaults (everything closed) where there is none."""
    keys = configs(objects)
    found = objects[keys[0]].value if keys else None
    return found if isinstance(found, MeshConfig) else MeshConfig()


def services_of(
    found: Mapping[ServiceKey, Service],
    known: Mapping[WorkloadKey, Workload],
    sliced: Mapping[ServiceKey, tuple[EndpointSlice, ...]],
) -> Mapping[WorkloadKey, tuple[ServiceKey, ...]]:
    """Return the services that each workload backs (see View for when it does)."""
    by_label: dict[tuple[Namespace, tuple[str, str]], list[Workload]] = {}
    by_address: dict[tuple[Namespace, IpAddress], list[Workload]] = {}
    by_primary: dict[ServiceKey, list[Workload]] = {}
    for workload in known.values():
        namespace = workload.key.namespace
        by_address.setdefault((namespace, workload.address), []).append(workload)
        by_primary.setdefault(ServiceKey(namespace, workload.service), []).append(workload)
        for pair in workload.labels:
            by_label.setdefault((namespace, pair), []).append(workload)
    pairs: list[tuple[WorkloadKey, ServiceKey]] = []
    for key, service in found.items():
        if service.selector:
            # The rarest label first: a namespace with many workloads is not searched for each service.
            candidates = min((by_label.get((key.namespace, pair), []) for pair in service.selector), key=len)
            behind = [each for each in candidates if each.has_labels(service.selector)]
        else:
            behind = by_primary.get(key, [])
        sliced_addresses = {address for each in sliced.get(key, ()) for address in each.addresses}
        for address in sliced_addresses:
            behind = behind + by_address.get((key.namespace, IpAddress(address)), [])
        pairs.extend((each.key, key) for each in behind)
    return group(sorted(pairs))


def backing(
    of_workload: Mapping[WorkloadKey, tuple[ServiceKey, ...]], known: Mapping[WorkloadKey, Workload]
) -> Mapping[ServiceKey, tuple[Workload, ...]]:
    """Turn `services_of` round."""
    return group((service, known[key]) for key, found in of_workload.items() for service in found)


def virtual_addresses(
    found: Mapping[ServiceKey, Service], network: IPv4Network
) -> Mapping[ServiceKey, IpAddress]:
    """Return a virtual address for each service that has no address and is not headless."""
    without = [key for key, each in found.items() if each.cluster_ip is None and not each.headless]
    taken = [each.cluster_ip for each in found.values() if each.cluster_ip is not None]
    return allocate(without, network, taken)


def _service_of(found: EndpointSlice) -> ServiceKey:
    return ServiceKey(found.namespace, ServiceName(found.service))
