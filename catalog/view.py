"""The view: everything that is known of the mesh at one moment, with the indexes that functions need."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from types import MappingProxyType
from typing import Final, Self

from catalog import index
from catalog.conflicts import Conflict, conflicts
from mesh.config import MeshConfig
from mesh.endpoints import Inventory
from mesh.identity import ServiceIdentity
from mesh.names import IpAddress, ProxyUuid, TrustDomain
from mesh.objects import EndpointSlice, ObjectKey, Sourced
from mesh.policy import HTTPRouteGroup, PolicyKey, TCPRoute, TrafficSplit, TrafficTarget
from mesh.service import Service, ServiceKey
from mesh.workload import Workload, WorkloadKey

DEFAULT_TRUST_DOMAIN: Final = TrustDomain("cluster.local")


@dataclass(frozen=True, slots=True)
class MeshSettings:
    """What the operator of the control plane decides, not the manifests."""

    trust_domain: TrustDomain = DEFAULT_TRUST_DOMAIN
    cluster_domain: str = "cluster.local"
    virtual_addresses: IPv4Network = field(default_factory=lambda: IPv4Network("240.0.0.0/8"))


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One moment of the mesh. Read-only; every sequence in it is sorted; a missing key means "none".

    A workload backs every Service of its namespace whose selector matches its labels, every Service without
    selector that bears the name of its primary service, and every Service of which an EndpointSlice names
    its address; `backing` and `services_of` hold both directions.
    """

    settings: MeshSettings
    config: MeshConfig
    sourced: Mapping[ObjectKey, Sourced]
    services: Mapping[ServiceKey, Service]
    slices: Mapping[ServiceKey, tuple[EndpointSlice, ...]]
    workloads: Mapping[WorkloadKey, Workload]
    workloads_by_uuid: Mapping[ProxyUuid, Workload]
    workloads_by_identity: Mapping[ServiceIdentity, tuple[Workload, ...]]
    workloads_by_address: Mapping[IpAddress, tuple[Workload, ...]]
    backing: Mapping[ServiceKey, tuple[Workload, ...]]
    services_of: Mapping[WorkloadKey, tuple[ServiceKey, ...]]
    targets: tuple[TrafficTarget, ...]
    targets_by_source: Mapping[ServiceIdentity, tuple[TrafficTarget, ...]]
    targets_by_destination: Mapping[ServiceIdentity, tuple[TrafficTarget, ...]]
    targets_between: Mapping[tuple[ServiceIdentity, ServiceIdentity], tuple[TrafficTarget, ...]]
    http_groups: Mapping[PolicyKey, HTTPRouteGroup]
    tcp_routes: Mapping[PolicyKey, TCPRoute]
    splits: tuple[TrafficSplit, ...]
    splits_by_apex: Mapping[ServiceKey, tuple[TrafficSplit, ...]]
    splits_by_backend: Mapping[ServiceKey, tuple[TrafficSplit, ...]]
    virtual_addresses: Mapping[ServiceKey, IpAddress]
    conflicts: Mapping[WorkloadKey, tuple[Conflict, ...]]

    @classmethod
    def build(
        cls, objects: Mapping[ObjectKey, Sourced], inventory: Inventory, settings: MeshSettings
    ) -> Self:
        """Index objects (services, policies, configuration) and an inventory (workloads, slices).

        The order in which either is given does not matter. Raises ValueError where the range of virtual
        addresses is too small.
        """
        services = index.services(objects)
        workloads = index.workloads(inventory)
        slices = index.slices(inventory)
        services_of = index.services_of(services, workloads, slices)
        targets = index.values(objects, TrafficTarget)
        splits = index.values(objects, TrafficSplit)
        return cls(
            settings=settings,
            config=index.config(objects),
            sourced=MappingProxyType(dict(objects)),
            services=services,
            slices=slices,
            workloads=workloads,
            workloads_by_uuid=index.by_uuid(workloads),
            workloads_by_identity=index.group((each.identity, each) for each in workloads.values()),
            workloads_by_address=index.group((each.address, each) for each in workloads.values()),
            backing=index.backing(services_of, workloads),
            services_of=services_of,
            targets=targets,
            targets_by_source=index.group((each, target) for target in targets for each in target.sources),
            targets_by_destination=index.group((target.destination, target) for target in targets),
            targets_between=index.group(
                ((each, target.destination), target) for target in targets for each in target.sources
            ),
            http_groups={each.key: each for each in index.values(objects, HTTPRouteGroup)},
            tcp_routes={each.key: each for each in index.values(objects, TCPRoute)},
            splits=splits,
            splits_by_apex=index.group((each.apex, each) for each in splits),
            splits_by_backend=index.group(
                (ServiceKey(each.key.namespace, backend.service), each)
                for each in splits
                for backend in each.backends
            ),
            virtual_addresses=index.virtual_addresses(services, settings.virtual_addresses),
            conflicts=conflicts(services, workloads, services_of),
        )
