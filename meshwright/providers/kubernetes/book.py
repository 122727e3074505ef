"""Objects of a cluster as a value: the objects in force and their problems.

Every object is a holder of its own, with its kind, namespace and name as key. The mark of its form is its
stored text (providers.kubernetes.projection), so that an object is read again only after a change of this
text.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from meshwright.kube.reflector.object_cache import Item
from meshwright.mesh.kinds import ENDPOINT_SLICE, MESH_ROOT_CERTIFICATE, NAMESPACE, POD
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.providers.kubernetes.scope import AT_HOME, Labels, Scope
from meshwright.providers.objects import Form, Objects, read_form
from meshwright.specs.codes import Code
from meshwright.specs.core.endpoints import SERVICE_LABEL
from meshwright.specs.displayed_objects import read_shown
from meshwright.specs.reader import ManifestReading

Changes = Mapping[ObjectKey, Item[str] | None]
"""Present state of objects, None for a removed one."""


class ClusterObjects(Objects[ObjectKey]):
    """The objects of one cluster; each object is its own holder."""

    __slots__ = ()

    @staticmethod
    def holder_of(sourced: SourcedObject) -> ObjectKey:
        """Return the key of the object, because each object is its own holder."""
        return sourced.key


@dataclass(frozen=True, slots=True)
class Book:
    """Content of the cluster with the name `cluster`; `labels` are the known labels of its namespaces."""

    cluster: str
    scope: Scope
    state: ClusterObjects = field(default_factory=ClusterObjects)
    labels: Mapping[str, Labels] = field(default_factory=dict)

    def with_namespaces(self, changes: Changes) -> Self:
        """Return the book with the labels of changed Namespaces; `taken` then updates the objects."""
        items = {key.name: item for key, item in changes.items() if key.kind == NAMESPACE}
        if not items:
            return self
        labels = dict(self.labels)
        for name, item in items.items():
            labels.pop(name, None)
            if item is not None:
                labels[name] = _labels(json.loads(item.body))
        return replace(self, labels=labels)

    def moved(self, before: "Book") -> frozenset[str]:
        """Return the namespaces that have entered or left the mesh since `before`."""
        names = self.labels.keys() | before.labels.keys()
        return frozenset(
            name
            for name in names
            if self.labels.get(name) != before.labels.get(name) and self.has(name) != before.has(name)
        )

    def has(self, namespace: str) -> bool:
        """Return whether a namespace belongs to the mesh."""
        return self.scope.has(namespace, self.labels.get(namespace))

    def taken(self, changes: Changes) -> Self:
        """Return the book after changes of these objects; `self` if they make no difference."""
        holders = self.state.holders
        forms = {key: self._form(key, item, holders.get(key)) for key, item in changes.items()}
        state = self.state.holding(forms)
        return self if state is self.state else replace(self, state=state)

    def _form(self, key: ObjectKey, item: Item[str] | None, before: Form | None) -> Form | None:
        if item is None or not self._counts(key):
            return None
        if before is not None and before.mark == item.body:
            return before
        document = json.loads(item.body)
        if key.kind == ENDPOINT_SLICE and not _labels(document).get(SERVICE_LABEL):
            return None  # for example of another cluster's Service (multicluster.kubernetes.io/service-name)
        origin = InCluster(self.cluster, item.version, _generation(document), _uid(document))
        if self._is_root_elsewhere(key):
            return read_form(item.body, ((origin, self._not_taken(key, origin)),), before)
        return read_form(item.body, ((origin, _quiet(key, read_shown(document, origin))),), before)

    def _counts(self, key: ObjectKey) -> bool:
        if key.kind in AT_HOME and key.namespace == self.scope.home:
            return True
        # Cluster-wide objects belong to every namespace.
        return not (of := key.name if key.kind == NAMESPACE else key.namespace) or self.has(of)

    def _is_root_elsewhere(self, key: ObjectKey) -> bool:
        """Return whether a root is declared outside the control plane's namespace.

        Other people may have write access there, and could make the mesh trust their CA.
        """
        home = self.scope.home
        return key.kind == MESH_ROOT_CERTIFICATE and bool(home) and key.namespace != home

    def _not_taken(self, key: ObjectKey, origin: InCluster) -> ManifestReading:
        home = self.scope.home
        wanted = (
            f"must be {home}, the namespace of the control plane: only objects there decide "
            "which roots the mesh trusts"
        )
        problem = Problem(
            code=Code.ROOT_ELSEWHERE,
            severity=Severity.ERROR,
            origin=origin,
            key=key,
            field="metadata.namespace",
            value=key.namespace,
            expected=wanted,
        )
        return ManifestReading(problems=(problem,), key=key)


def _generation(document: Mapping[str, object]) -> int:
    metadata = document.get("metadata")
    result = metadata.get("generation") if isinstance(metadata, dict) else None
    return result if isinstance(result, int) else 0


def _uid(document: Mapping[str, object]) -> str:
    metadata = document.get("metadata")
    result = metadata.get("uid") if isinstance(metadata, dict) else None
    return result if isinstance(result, str) else ""


def _labels(document: Mapping[str, object]) -> Labels:
    metadata = document.get("metadata")
    result = metadata.get("labels") if isinstance(metadata, dict) else None
    return result if isinstance(result, dict) else {}


def _quiet(key: ObjectKey, reading: ManifestReading) -> ManifestReading:
    """Return a reading of a Pod without notes about its state, for example that it has no IP address yet."""
    if key.kind != POD:
        return reading
    return replace(
        reading,
        problems=tuple(problem for problem in reading.problems if problem.severity is not Severity.INFO),
    )
