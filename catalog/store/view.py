"""The view: everything that is known of the mesh.

It stores; what it is searched by is declared by whoever searches (`IN_VIEW`). What a function looks up in a
view is recorded; a change of the mesh is a change of the view, and concerns what had looked at it (see the
package engine).
"""

from collections.abc import Callable, Iterator, Mapping
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
"""The name of the MeshConfig that counts where there are several."""

_HERE: Final = "here"
K = TypeVar("K")
V = TypeVar("V")


class UnreadError(TypeError):
    """An object's value is of a type that no table was declared for: it would be accepted without a word."""


class View:
    """What is known of the mesh. Every sequence in it is sorted; a missing key means "none".

    Objects of a kind stand in the table that was declared for it (`kind`). Only `apply` changes a view, in
    one thread; others may look.
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
        """Make a view of objects; the order in which they are given does not matter."""
        view = cls(settings)
        view.apply(Edits(objects))
        return view

    @property
    def settings(self) -> MeshSettings:
        """The settings of the control plane."""
        return self._settings[_HERE]

    @property
    def config(self) -> MeshConfig:
        """The MeshConfig in force; the defaults (everything closed) where there is none."""
        return _config_in_force(self).value()

    def known(self) -> Edits:
        """Return the edits by which a view that knows nothing comes to know this; nothing is recorded."""
        taps = dict(self.taps.held())
        return Edits(dict(self.sourced.held()), dict(self.admissions.held()), taps=taps)

    def edits_to(self, known: Edits) -> Edits:
        """Return the edits by which the view comes to know exactly what these tell one that knows nothing."""
        return Edits(
            difference(self.sourced.held(), known.objects),
            difference(self.admissions.held(), known.admissions),
            taps=difference(self.taps.held(), known.taps),
        )

    def apply(self, edits: Edits) -> None:
        """Change the view, at once and as a whole; raise UnreadError, without a change, as it says."""
        self.graph.apply(list(self._edits(edits)))

    def _edits(self, edits: Edits) -> Iterator[Edit]:
        here: list[Edit] = []  # after all that goes: a Pod may take the place of a Workload of its name
        for key, sourced in edits.objects.items():
            before, after = _placed(self.sourced.held().get(key)), _placed(sourced)
            yield _edit(self.sourced, key, sourced)
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
"""What every view has; see engine.declared."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Where values of a type stand: the kind of their objects, their table, and their key there."""

    kind: Kind | None
    table: DeclaredPart[View, Table[Any, Any]]
    key_of: Callable[[SourcedObject], Any]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one object's value stands."""

    table: DeclaredPart[View, Table[Any, Any]]
    key: object


_kinds: Final[dict[type, _Kind | None]] = {}


def kind(
    value: type[V], of: Kind | None, table: str, key_of: Callable[[V], K] | None = None
) -> DeclaredPart[View, Table[K, V]]:
    """Declare the table of a kind of objects: those whose value has that type.

    `of` is the objects' kind, None where they are of several, and nothing that is served is made of them;
    `table` is the table's name. `key_of` gives a value's key there; without it that is the object's own.
    """
    declared: DeclaredPart[View, Table[K, V]] = IN_VIEW.table(table)
    if key_of is None:
        _kinds[value] = _Kind(of, declared, lambda sourced: sourced.key)
    else:
        _kinds[value] = _Kind(of, declared, lambda sourced: key_of(sourced.value))  # type: ignore[arg-type]
    return declared


def without_table(*values: type) -> None:
    """Declare types of values that are known, and stand in no table for their objects' sake."""
    _kinds.update(dict.fromkeys(values))


def kind_in(table: str) -> Kind | None:
    """Return the kind of the objects in a table, by its name; None for what holds no objects."""
    return next((each.kind for each in _kinds.values() if each and each.table.name == table), None)


services: Final = kind(Service, SERVICE, "services", lambda service: service.key)
namespaces: Final = kind(NamespaceObject, NAMESPACE, "namespaces", lambda found: found.name)
workloads: Final = kind(Workload, WORKLOAD, "workloads", lambda workload: workload.key)
slices: Final = kind(EndpointSlice, ENDPOINT_SLICE, "slices", lambda found: found)
"""Slices by themselves: another form of one is another slice."""
without_table(ServiceIdentity)  # a ServiceAccount says no more than its name, which others refer to
configs: Final[DeclaredPart[View, Table[ObjectKey, MeshConfig]]] = kind(
    MeshConfig, MESH_CONFIG, "MeshConfigs"
)


@derived
def _config_key(view: View) -> ObjectKey | None:
    def order(key: ObjectKey) -> tuple[bool, bool, str, ObjectKey]:
        return (key.name != PREFERRED_CONFIG, *age(configs(view)[key].created), key)

    return min(configs(view), key=order, default=None)


_key_in_force: Final = IN_VIEW.firewall(_config_key)


def config_in_force(view: View) -> ObjectKey | None:
    """Return the MeshConfig that counts, None where there is none.

    Of several one named `osm-mesh-config` counts, then the oldest, then the first by namespace and name.
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
        found = _kinds[type(sourced.value)]
    except KeyError:
        raise UnreadError(
            f"{sourced.key}: no table was declared for {type(sourced.value).__name__}"
        ) from None
    return None if found is None else _Place(found.table, found.key_of(sourced))


def _edit(table: Table[K, V], key: K, value: V | None) -> Edit:
    return table.remove(key) if value is None else table.set(key, value)
