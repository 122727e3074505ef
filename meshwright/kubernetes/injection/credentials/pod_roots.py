"""The ConfigMap with the roots by which a joining Pod verifies the control plane: its namespaces and content.

Pure functions; `roots_writer` writes the ConfigMap.
"""

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig
from meshwright.kubernetes.injection.decision import OSM_MONITORED, Reason, decide
from meshwright.mesh.kinds import NAMESPACE, POD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject, ObjectKey, SourcedObject
from meshwright.mesh.workload import PodTemplate, Workload
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.injection.names import PROXY_UUID_LABEL
from meshwright.sidecars.layout import AUTHORITY_FILE
from meshwright.specs.annotations import HOME, REVISION

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
US: Final = "meshwright"


class ConfigMapState(enum.Enum):
    """State of the ConfigMap of a namespace; ANOTHER_S has other roots and belongs to another owner."""

    RIGHT = enum.auto()
    ABSENT = enum.auto()
    WRONG = enum.auto()
    ANOTHER_S = enum.auto()


@dataclass(frozen=True, slots=True)
class ConfigMapRoots:
    """The compared parts of a ConfigMap: its roots, and the home namespace of its control plane, or empty."""

    roots: str
    home: str

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> "ConfigMapRoots":
        """Parse a ConfigMap from the API server."""
        labels = raw["metadata"].get("labels") or {}
        data = raw.get("data") or {}
        home = labels.get(HOME, "") if labels.get(MANAGED_BY) == US else ""
        return cls(str(data.get(AUTHORITY_FILE, "")), str(home))


def document(name: str, roots: bytes, home: str) -> Mapping[str, Any]:
    """Return the ConfigMap with these roots (PEM) for a server-side apply by the control plane in `home`."""
    labels = {MANAGED_BY: US, HOME: home}
    return {"metadata": {"name": name, "labels": labels}, "data": {AUTHORITY_FILE: roots.decode("ascii")}}


def standing(config_map_roots: ConfigMapRoots | None, roots: bytes, home: str) -> ConfigMapState:
    """Return the state of the ConfigMap of roots; another owner's ConfigMap with the same roots is RIGHT."""
    if config_map_roots is None:
        return ConfigMapState.ABSENT
    if config_map_roots.roots == roots.decode("ascii"):
        return ConfigMapState.RIGHT
    return ConfigMapState.WRONG if config_map_roots.home == home else ConfigMapState.ANOTHER_S


class Reach:
    """Namespaces with Pods that have or will get sidecars, followed from the objects of the mesh.

    These are the namespaces whose own labels select injection, and the namespaces with Pods that have a
    sidecar for any reason. Namespaces that select another revision are excluded.
    """

    def __init__(self, config: InjectionConfig, revision: str = "") -> None:
        self._config, self._revision = config, revision
        self._others: set[str] = set()
        self._requested: set[str] = set()
        self._pods: set[ObjectKey] = set()
        self._of = Counter[str]()

    def by(self, config: InjectionConfig) -> "Reach":
        """Return an empty Reach, for the same revision and another configuration of the injector."""
        return Reach(config, self._revision)

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the namespaces with Pods that have or will get sidecars."""
        return frozenset((self._requested | self._of.keys()) - self._others)

    def follow(self, changes: Mapping[ObjectKey, SourcedObject | None]) -> bool:
        """Apply changes of objects, None for a deletion; return whether the namespaces may have changed."""
        moved = False
        for key, change in changes.items():
            if key.kind == NAMESPACE:
                moved |= self._namespace(key.name, change)
            elif key.kind == POD:
                moved |= self._pod(key, has_sidecar=change is not None and _has_sidecar(change))
        return moved

    def _namespace(self, name: str, sourced: SourcedObject | None) -> bool:
        value = None if sourced is None else sourced.value
        before = self._has(name)
        self._requested.discard(name)
        self._others.discard(name)
        if isinstance(value, NamespaceObject):
            if is_injected(self._config, value, self._revision):
                self._requested.add(name)
            if not is_of(value, self._revision):
                self._others.add(name)
        return before != self._has(name)

    def _has(self, name: str) -> bool:
        return (name in self._requested or name in self._of) and name not in self._others

    def _pod(self, key: ObjectKey, *, has_sidecar: bool) -> bool:
        if has_sidecar == (key in self._pods):
            return False
        (self._pods.add if has_sidecar else self._pods.discard)(key)
        self._of[key.namespace] += 1 if has_sidecar else -1
        if not self._of[key.namespace]:
            del self._of[key.namespace]
        return self._of[key.namespace] == int(has_sidecar)  # the first Pod came, or the last one went


def asks_for_sidecars(config: InjectionConfig, namespace: NamespaceObject, revision: str) -> bool:
    """Return whether a namespace requests sidecars from the control plane of this revision."""
    return is_of(namespace, revision) and is_injected(config, namespace, revision)


def is_of(namespace: NamespaceObject, revision: str) -> bool:
    """Return whether a namespace selects this revision; without a label it selects the default revision."""
    return dict(namespace.labels).get(REVISION, "") == revision


def is_injected(config: InjectionConfig, namespace: NamespaceObject, revision: str = "") -> bool:
    """Return whether Pods of a namespace get sidecars by its labels, and not only by the mesh's policy."""
    try:
        decision = decide(config, namespace, {})
    except CannotPatchError:
        return False  # an invalid label; all Pods of the namespace are refused
    labels = dict(namespace.labels)
    chooses = bool(revision) and labels.get(REVISION) == revision
    return decision.inject and (decision.reason is Reason.NAMESPACE or OSM_MONITORED in labels or chooses)


def _has_sidecar(sourced: SourcedObject) -> bool:
    value = sourced.value
    if not isinstance(value, Workload | PodTemplate):
        return False
    return any(name == PROXY_UUID_LABEL for name, _ in value.labels)


def at_home(home: str) -> InjectionConfig:
    """Return the injector's default configuration for a control plane in the namespace `home`."""
    return InjectionConfig(control_plane_namespace=Namespace(home))
