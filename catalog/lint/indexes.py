"""What linting looks at besides the view: who else has a name, an address, or every source there is."""

from collections.abc import Collection
from typing import Final

from catalog.policy.proxy import SocketAddress
from catalog.relations.endpoints import endpoints
from catalog.store import index
from catalog.store.lookups import Grouped
from catalog.store.view import View
from engine.derived import derived
from engine.firewall import Firewall
from engine.index import DerivedIndex, Index
from mesh.identity import ServiceIdentity
from mesh.names import ServiceAccountName, ServiceName
from mesh.objects import ObjectKey
from mesh.policy import PolicyKey, TrafficTarget
from mesh.service import Service, ServiceKey, ServicePort
from mesh.workload import PodTemplate, Workload, WorkloadKey

MANY: Final = -1
"""The number of identities where they are more than any TrafficTarget could name."""


class Lint:
    """A view with the indexes that only problems need; one for each view that is linted."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.graph = graph = view.graph
        self._accounts: Index[ServiceAccountName, WorkloadKey, Workload] = Index(
            graph, "workloads by ServiceAccount", view.workloads, _account
        )
        self._template_accounts: Index[ServiceAccountName, ObjectKey, PodTemplate] = Index(
            graph, "pod templates by ServiceAccount", view.templates, _template_account
        )
        by_label = Index(graph, "pod templates by label", view.templates, index.template_labels)
        self.templates_by_label = Grouped(by_label, view.templates)
        by_identity = Index(graph, "pod templates by identity", view.templates, index.template_identities)
        self.templates_by_identity = Grouped(by_identity, view.templates)
        self._widths: Index[int, PolicyKey, TrafficTarget] = Index(
            graph, "TrafficTargets by number of sources", view.targets_by_key, _width
        )
        self.called_at: DerivedIndex[SocketAddress, ServiceKey, Service] = DerivedIndex(
            graph, "services by called address", view.services, self._called_at
        )
        self._names: Index[ServiceName, ServiceKey, Service] = Index(
            graph, "services by name", view.services, _name
        )
        self._crowd = Firewall(graph, crowd, self)
        graph.apply(())  # the indexes take in what the view knows already

    @property
    def crowd(self) -> int:
        """How many identities the mesh has; MANY where no TrafficTarget has so many sources."""
        return self._crowd.value()

    @property
    def widest(self) -> int:
        """The most sources that any TrafficTarget has."""
        return max(self._widths, default=0)

    def elsewhere(self, identity: ServiceIdentity) -> str:
        """Say where pods or workloads have an identity of that name, if not here; empty where none has."""
        name = identity.service_account
        there = {self.view.workloads[key].identity for key in self._accounts.get(name, ())}
        there.update(self.view.templates[key].identity for key in self._template_accounts.get(name, ()))
        return ", ".join(map(str, sorted(there)))

    def is_known(self, identity: ServiceIdentity) -> bool:
        """Say whether a workload has an identity, or the pods that a controller would make."""
        return identity in self.view.workloads_by_identity or identity in self.templates_by_identity

    def services_called(self, name: ServiceName) -> tuple[ServiceKey, ...]:
        """Return the services of that name in all namespaces, sorted."""
        return tuple(sorted(self._names.get(name, ())))

    def _called_at(self, key: ServiceKey) -> Collection[SocketAddress]:
        service = self.view.services[key]
        return {where: None for port in service.ports for where in called_at(self.view, service, port)}


def called_at(view: View, service: Service, port: ServicePort) -> tuple[SocketAddress, ...]:
    """Return where a port of a service is called."""
    if service.headless:
        found = endpoints(view, service.key, port)
        return tuple(sorted({SocketAddress(each.address, each.port) for each in found}))
    address = service.cluster_ip or view.virtual_addresses.get(service.key)
    return () if address is None else (SocketAddress(address, port.port),)


@derived
def crowd(lint: Lint) -> int:
    """Return how many identities the mesh has; MANY where that is too many for every TrafficTarget."""
    workloads, templates = lint.view.workloads_by_identity, lint.templates_by_identity
    count, most = len(workloads), lint.widest + 1
    if count <= most and len(templates) <= most:
        count += sum(each not in workloads for each in templates)
    return count if count <= most and len(templates) <= most else MANY


def _account(_: WorkloadKey, workload: Workload) -> tuple[ServiceAccountName, ...]:
    return (workload.identity.service_account,)


def _template_account(_: ObjectKey, template: PodTemplate) -> tuple[ServiceAccountName, ...]:
    return (template.identity.service_account,)


def _name(key: ServiceKey, _: Service) -> tuple[ServiceName, ...]:
    return (key.name,)


def _width(_: PolicyKey, target: TrafficTarget) -> tuple[int, ...]:
    return (len(target.sources),)
