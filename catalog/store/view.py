"""The view: everything that is known of the mesh, with the lookups that functions need.

What a function looks up in a view is recorded; a change of the mesh is a change of the view, and concerns
what had looked at it (see the package engine).
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final, Self, TypeVar

from catalog.policy import closed
from catalog.relations import addresses, backing, conflicts, groups
from catalog.relations import permissive as openness
from catalog.store import index
from catalog.store.edits import Edits, Known, difference
from catalog.store.lookups import First, Found, Grouped
from catalog.store.settings import DEFAULT_TRUST_DOMAIN, MeshSettings
from engine.derived import derived
from engine.firewall import Firewall
from engine.graph import Edit, Graph
from engine.index import DerivedIndex, Index
from engine.table import Table
from mesh.config import MeshConfig
from mesh.endpoints import Inventory, slice_key
from mesh.identity import ProxyName
from mesh.names import Namespace
from mesh.objects import EndpointSlice, NamespaceObject, ObjectKey, Sourced
from mesh.picture import Picture
from mesh.policy import HTTPRouteGroup, PolicyKey, TCPRoute, TrafficSplit, TrafficTarget
from mesh.service import Service, ServiceKey
from mesh.workload import PodTemplate, Workload, WorkloadKey

__all__ = ["DEFAULT_TRUST_DOMAIN", "MeshSettings", "View"]

_HERE: Final = "here"
K = TypeVar("K")
V = TypeVar("V")


class View:
    """What is known of the mesh. Every sequence in it is sorted; a missing key means "none".

    A workload backs every Service of its namespace whose selector matches its labels, every Service without
    selector that bears the name of its primary service, and every Service of which an EndpointSlice names
    its address; `backing` and `services_of` hold both directions. Of two workloads that claim one UUID the
    first by key has it. `templates` are pods to come, and back nothing. Only `apply` changes a view, in one
    thread; others may look.
    """

    def __init__(self, settings: MeshSettings) -> None:
        self.graph = graph = Graph()
        self._settings: Table[str, MeshSettings] = Table(graph, "settings")
        self._configs: Table[ObjectKey, MeshConfig] = Table(graph, "MeshConfigs")
        self.sourced: Table[ObjectKey, Sourced] = Table(graph, "objects")
        self.namespaces: Table[Namespace, NamespaceObject] = Table(graph, "namespaces")
        self.admitted: Table[ProxyName, ProxyName] = Table(graph, "admitted proxies")
        self._services(graph)
        self._workloads(graph)
        self._policies(graph)
        self.claimants: DerivedIndex[conflicts.Place, WorkloadKey, Workload] = DerivedIndex(
            graph, "claims by place", self.workloads, self._places
        )
        self.conflicts = Found(self.workloads, lambda key: conflicts.conflicts(self, key))
        self.members: DerivedIndex[groups.GroupKey, WorkloadKey, Workload] = DerivedIndex(
            graph, "workloads by group", self.workloads, lambda key: groups.groups_of(self, key)
        )
        self.moved = Firewall(graph, addresses.moved, self)
        self.virtual_addresses = Found(self.services, lambda key: addresses.virtual_address(self, key))
        self._config = Firewall(graph, _config, self)
        self._open = Firewall(graph, openness.permissive_namespaces, self)
        self.addresses = Firewall(graph, closed.addresses, self)
        graph.apply([self._settings.set(_HERE, settings)])

    def _services(self, graph: Graph) -> None:
        self.services: Table[ServiceKey, Service] = Table(graph, "services")
        self.services_by_label = Index(graph, "services by label", self.services, index.service_labels)
        self.by_cluster_ip = Index(graph, "services by address", self.services, index.cluster_ips)
        self.services_in = Index(graph, "services by namespace", self.services, index.namespaces)
        self.by_addressing = Index(graph, "services by addressing", self.services, index.addressing)
        self._slices: Table[EndpointSlice, EndpointSlice] = Table(graph, "slices")
        self.slices_by_address = Index(graph, "slices by address", self._slices, index.sliced_addresses)
        by_service = Index(graph, "slices by service", self._slices, index.sliced_services)
        self.slices = Grouped(by_service, self._slices)

    def _workloads(self, graph: Graph) -> None:
        self.workloads: Table[WorkloadKey, Workload] = Table(graph, "workloads")
        self.by_label = Index(graph, "workloads by label", self.workloads, index.labels)
        self.by_primary = Index(graph, "workloads by primary", self.workloads, index.primaries)
        self.by_address = Index(graph, "workloads by address", self.workloads, index.addresses)
        self.with_sidecar = Index(
            graph, "sidecars by identity", self.workloads, index.identities_with_sidecar
        )
        by_uuid = Index(graph, "workloads by UUID", self.workloads, index.uuids)
        self.by_identity = Index(graph, "workloads by identity", self.workloads, index.identities)
        self.workloads_by_uuid = First(by_uuid, self.workloads)
        self.workloads_by_identity = Grouped(self.by_identity, self.workloads)
        self.workloads_by_address = Grouped(self.by_address, self.workloads)
        self.templates: Table[ObjectKey, PodTemplate] = Table(graph, "pod templates")
        self.backing = Found(self.services, lambda key: backing.backing(self, key))
        self.services_of = Found(self.workloads, lambda key: backing.services_of(self, key))

    def _policies(self, graph: Graph) -> None:
        self.http_groups: Table[PolicyKey, HTTPRouteGroup] = Table(graph, "HTTPRouteGroups")
        self.tcp_routes: Table[PolicyKey, TCPRoute] = Table(graph, "TCPRoutes")
        self._targets: Table[PolicyKey, TrafficTarget] = Table(graph, "TrafficTargets")
        by_source = Index(graph, "TrafficTargets by source", self._targets, index.sources)
        by_destination = Index(graph, "TrafficTargets by destination", self._targets, index.destinations)
        by_ends = Index(graph, "TrafficTargets by both ends", self._targets, index.ends)
        self.targets_by_source = Grouped(by_source, self._targets)
        self.targets_by_destination = Grouped(by_destination, self._targets)
        self.targets_between = Grouped(by_ends, self._targets)
        self._splits: Table[PolicyKey, TrafficSplit] = Table(graph, "TrafficSplits")
        by_apex = Index(graph, "TrafficSplits by apex", self._splits, index.apexes)
        by_backend = Index(graph, "TrafficSplits by backend", self._splits, index.backends)
        self.splits_by_apex = Grouped(by_apex, self._splits)
        self.splits_by_backend = Grouped(by_backend, self._splits)

    @classmethod
    def build(
        cls, objects: Mapping[ObjectKey, Sourced], inventory: Inventory, settings: MeshSettings
    ) -> Self:
        """Make a view of objects (services, policies, configuration) and an inventory (workloads, slices).

        The order in which either is given does not matter.
        """
        view = cls(settings)
        view.apply(view.edits_to(Known.of(objects, inventory)))
        return view

    @property
    def settings(self) -> MeshSettings:
        """The settings of the control plane."""
        return self._settings[_HERE]

    @property
    def config(self) -> MeshConfig:
        """The MeshConfig in force; the defaults (everything closed) where there is none."""
        return self._config.value()

    @property
    def open_namespaces(self) -> openness.Permissive:
        """Which namespaces accept every client of the mesh."""
        return self._open.value()

    def permissive(self, namespace: Namespace) -> bool:
        """Say whether the workloads of a namespace accept every client of the mesh."""
        return openness.is_permissive(self, namespace)

    @property
    def configs_by_key(self) -> Table[ObjectKey, MeshConfig]:
        """All MeshConfigs."""
        return self._configs

    @property
    def configs(self) -> Mapping[ObjectKey, MeshConfig]:
        """All MeshConfigs."""
        return self._configs

    @property
    def targets_by_key(self) -> Table[PolicyKey, TrafficTarget]:
        """All TrafficTargets."""
        return self._targets

    @property
    def splits_by_key(self) -> Table[PolicyKey, TrafficSplit]:
        """All TrafficSplits."""
        return self._splits

    @property
    def targets(self) -> tuple[TrafficTarget, ...]:
        """All TrafficTargets, sorted by key."""
        return tuple(self._targets.values())

    @property
    def splits(self) -> tuple[TrafficSplit, ...]:
        """All TrafficSplits, sorted by key."""
        return tuple(self._splits.values())

    def known(self) -> Known:
        """Return what the view knows; looks at all of it, and nothing is recorded."""
        slices = Picture({slice_key(each): each for each in self._slices.held()})
        return Known(
            Picture(self.sourced.held()),
            Picture(self.workloads.held()),
            slices,
            Picture(self.admitted.held()),
        )

    def edits_to(self, known: Known) -> Edits:
        """Return the edits by which the view comes to know exactly this."""
        return difference(self.known(), known)

    def apply(self, edits: Edits) -> None:
        """Change the view, at once and as a whole."""
        self.graph.apply(list(self._edits(edits)))

    def _edits(self, edits: Edits) -> Iterator[Edit]:
        for key, sourced in edits.objects.items():
            before, after = self._placed(self.sourced.held().get(key)), self._placed(sourced)
            yield _edit(self.sourced, key, sourced)
            if before is not None and (after is None or before[:2] != after[:2]):
                yield before[0].remove(before[1])
            if after is not None:
                yield after[0].set(after[1], after[2])
        for name, workload in edits.workloads.items():
            yield _edit(self.workloads, name, workload)
        for each, found in edits.slices.items():
            yield _edit(self._slices, each, found)
        for proxy, admitted in edits.admitted.items():
            yield _edit(self.admitted, proxy, admitted)
        if edits.settings is not None:
            yield self._settings.set(_HERE, edits.settings)

    def _placed(self, sourced: Sourced | None) -> tuple[Table[Any, Any], Hashable, object] | None:
        """Return the table of an object's kind, with its key and value there; None for other kinds."""
        if sourced is None:
            return None
        match sourced.value:
            case MeshConfig() as value:
                return (self._configs, sourced.key, value)
            case NamespaceObject() as value:
                return (self.namespaces, value.name, value)
            case PodTemplate() as value:
                return (self.templates, sourced.key, value)
            case Service() as value:
                return (self.services, value.key, value)
            case HTTPRouteGroup() as value:
                return (self.http_groups, value.key, value)
            case TCPRoute() as value:
                return (self.tcp_routes, value.key, value)
            case TrafficTarget() as value:
                return (self._targets, value.key, value)
            case TrafficSplit() as value:
                return (self._splits, value.key, value)
            case _:
                return None

    def _places(self, key: WorkloadKey) -> tuple[conflicts.Place, ...]:
        claims = conflicts.claims_of(self, key)
        return tuple(dict.fromkeys(place for claim in claims for place in conflicts.places(claim)))


@derived
def _config(view: View) -> MeshConfig:
    key = min(view.configs, key=index.config_order, default=None)
    return MeshConfig() if key is None else view.configs[key]


def _edit(table: Table[K, V], key: K, value: V | None) -> Edit:
    return table.remove(key) if value is None else table.set(key, value)
