"""The view: everything known about the mesh.

A view stores objects; its indexes are declared by the modules that search them (`IN_VIEW`). Reads of a view
are recorded, so a change only concerns functions that have read a changed entry (see `meshwright.engine`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from catalog.store.edits import Edits, difference
from catalog.store.precedence import age
from catalog.store.settings import DEFAULT_TRUST_DOMAIN, Admission, MeshSettings
from meshwright.engine.declarations import Declarations, DeclaredPart
from meshwright.engine.derived import derived
from meshwright.engine.graph import Edit, Graph
from meshwright.engine.table import Table
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.kinds import ENDPOINT_SLICE, MESH_CONFIG, NAMESPACE, SERVICE, WORKLOAD, Kind
from meshwright.mesh.objects import EndpointSlice, NamespaceObject, ObjectKey, SourcedObject
from meshwright.mesh.service import Service, ServiceKey
from meshwright.mesh.tap import Tapped
from meshwright.mesh.workload import Workload

__all__ = ["DEFAULT_TRUST_DOMAIN", "IN_VIEW", "MeshSettings", "UnreadError", "View", "kind"]

PREFERRED_CONFIG: Final = "osm-mesh-config"
"""Name of the MeshConfig that wins if there are several."""

_HERE: Final = "here"
K = TypeVar("K")
V = TypeVar("V")


class UnreadError(TypeError):
    """Error for an object whose type has no declared table and would be silently ignored."""


class View:
    """Everything known about the mesh; sequences in the values are sorted.

    Each object is in the table declared for its kind (`kind`). Only `apply` changes a view, in one thread;
    other threads may read.
    """

    def __init__(self, settings: MeshSettings) -> None:
        self.graph = graph = Graph()
        self.made: dict[DeclaredPart[Any, Any], Any] = {}
        self._settings: Table[str, MeshSettings] = Table(graph, "settings")
        self.sourced: Table[ObjectKey, SourcedObject] = Table(graph, "objects")
        self.admissions: Table[ProxyName, Admission] = Table(graph, "admissions")
        self.taps: Table[ServiceKey, Tapped] = Table(graph, "taps")
        IN_VIEW.make(self)
        self.namespaces = namespaces(self)
        self.services = services(self)
        self.slices = slices(self)
        self.workloads = workloads(self)
        graph.apply([self._settings.set(_HERE, settings)])

    @classmethod
    def build(cls, objects: Mapping[ObjectKey, SourcedObject], settings: MeshSettings) -> Self:
        """Return a view of objects; their order does not matter."""
        view = cls(settings)
        view.apply(Edits(objects))
        return view

    @property
    def settings(self) -> MeshSettings:
        """The settings of the control plane."""
        return self._settings[_HERE]

    @property
    def config(self) -> MeshConfig:
        """The MeshConfig in force; the defaults (everything closed) if there is none."""
        return _config_in_force(self).value()

    def known(self) -> Edits:
        """Return the edits that turn an empty view into this one; the read is not recorded."""
        taps = dict(self.taps.values_unrecorded())
        return Edits(
            dict(self.sourced.values_unrecorded()), dict(self.admissions.values_unrecorded()), taps=taps
        )

    def edits_to(self, known: Edits) -> Edits:
        """Return the edits that turn this view into the one described by `known`."""
        return Edits(
            difference(self.sourced.values_unrecorded(), known.objects),
            difference(self.admissions.values_unrecorded(), known.admissions),
            taps=difference(self.taps.values_unrecorded(), known.taps),
        )

    def apply(self, edits: Edits) -> None:
        """Apply edits as one change; raise UnreadError, without a change, for an object without a table."""
        self.graph.apply(list(self._edits(edits)))

    def _edits(self, edits: Edits) -> Iterator[Edit]:
        here: list[
            Edit
        ] = []  # written after all removals, because a Pod may replace a Workload of the same name
        for key, sourced in edits.objects.items():
            before, after = _placed(self.sourced.values_unrecorded().get(key)), _placed(sourced)
            yield _edit(self.sourced, key, sourced)
            # Also for an object whose key in its table has changed, for example a slice.
            if before is not None and before != after:
                yield before.table(self).remove(before.key)
            if after is not None and sourced is not None:
                here.append(after.table(self).set(after.key, sourced.value))
        yield from here
        for proxy, admission in edits.admissions.items():
            yield _edit(self.admissions, proxy, admission)
        for service, tapped in edits.taps.items():
            yield _edit(self.taps, service, tapped)
        if edits.settings is not None:
            yield self._settings.set(_HERE, edits.settings)


IN_VIEW: Final = Declarations[View]()
"""The tables and indexes of every view; see `engine.declarations`."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Place for values of a type: the kind of their objects, their table, and their key."""

    kind: Kind | None
    table: DeclaredPart[View, Table[Any, Any]]
    key_of: Callable[[SourcedObject], Any]


@dataclass(frozen=True, slots=True)
class _Place:
    """Place of one object's value in a view: the table and the key."""

    table: DeclaredPart[View, Table[Any, Any]]
    key: object


_kinds: Final[dict[type, _Kind | None]] = {}


def kind(
    value: type[V], object_kind: Kind | None, table: str, key_of: Callable[[V], K] | None = None
) -> DeclaredPart[View, Table[K, V]]:
    """Declare the table for a kind of objects, whose values have this type.

    `object_kind` is the kind of the objects, or `None` for several kinds with no effect on proxies. `table`
    is the table's name. `key_of` returns the key of a value; the default is the object's own key. For
    example, `kind(Service, SERVICE, "services", lambda service: service.key)`.
    """
    declared: DeclaredPart[View, Table[K, V]] = IN_VIEW.table(table)
    if key_of is None:
        _kinds[value] = _Kind(object_kind, declared, lambda sourced: sourced.key)
    else:
        _kinds[value] = _Kind(object_kind, declared, lambda sourced: key_of(sourced.value))  # type: ignore[arg-type]
    return declared


def kinds(
    values: Collection[type[Any]], object_kind: Kind, table: str
) -> DeclaredPart[View, Table[ObjectKey, Any]]:
    """Declare one table for several kinds of objects that are read alike, by the objects' own keys.

    `object_kind` is any of the kinds, because the key of a value has its own.
    """
    declared: DeclaredPart[View, Table[ObjectKey, Any]] = IN_VIEW.table(table)
    _kinds.update(dict.fromkeys(values, _Kind(object_kind, declared, lambda sourced: sourced.key)))
    return declared


def without_table(*values: type) -> None:
    """Declare types of objects that are known and need no table."""
    _kinds.update(dict.fromkeys(values))


def kind_in(table: str) -> Kind | None:
    """Return the kind of the objects in the table of this name; `None` if the table has no kind of object."""
    return next((item.kind for item in _kinds.values() if item and item.table.name == table), None)


services: Final = kind(Service, SERVICE, "services", lambda service: service.key)
namespaces: Final = kind(NamespaceObject, NAMESPACE, "namespaces", lambda namespace: namespace.name)
workloads: Final = kind(Workload, WORKLOAD, "workloads", lambda workload: workload.key)
slices: Final = kind(EndpointSlice, ENDPOINT_SLICE, "slices", lambda endpoint_slice: endpoint_slice)
"""The slice itself is the key, so a changed slice is another entry."""
without_table(ServiceIdentity)  # of a ServiceAccount only the name matters, and others refer to it
configs: Final[DeclaredPart[View, Table[ObjectKey, MeshConfig]]] = kind(
    MeshConfig, MESH_CONFIG, "MeshConfigs"
)


@derived
def _config_key(view: View) -> ObjectKey | None:
    def order(key: ObjectKey) -> tuple[bool, bool, str, ObjectKey]:
        return (key.name != PREFERRED_CONFIG, *age(configs(view)[key].created), key)

    return min(configs(view), key=order, default=None)


# Most edits of MeshConfigs do not change which of them is in force, so readers of the key are not run.
_key_in_force: Final = IN_VIEW.firewall(_config_key)


def config_in_force(view: View) -> ObjectKey | None:
    """Return the key of the MeshConfig in force, or `None`.

    Of several the one named `osm-mesh-config` wins, then the oldest, then the first by namespace and name.
    """
    return _key_in_force(view).value()


@derived
def _config(view: View) -> MeshConfig:
    key = config_in_force(view)
    return MeshConfig() if key is None else configs(view)[key]


_config_in_force: Final = IN_VIEW.firewall(_config)


def _placed(sourced: SourcedObject | None) -> _Place | None:
    if sourced is None:
        return None
    try:
        result = _kinds[type(sourced.value)]
    except KeyError:
        raise UnreadError(
            f"{sourced.key}: no table was declared for {type(sourced.value).__name__}"
        ) from None
    return None if result is None else _Place(result.table, result.key_of(sourced))


def _edit(table: Table[K, V], key: K, value: V | None) -> Edit:
    return table.remove(key) if value is None else table.set(key, value)
