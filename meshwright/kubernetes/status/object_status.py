"""Current problems and state of a cluster's objects, with a mark for each object to report."""

from collections.abc import Container, Iterable, Mapping

from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity

Problems = Mapping[Problem, None]
"""Problems of one object, without duplicates."""

_NONE: Problems = {}


class ObjectStatusTable:
    """Problems by object, and the objects in force whose kinds have a status.

    A change costs time for the changed objects only. Objects of other clusters, and objects from outside
    Kubernetes, are ignored.
    """

    def __init__(
        self,
        cluster: str,
        with_status: Container[Kind],
        worded: Container[Kind] = frozenset(),
        routes: Container[Kind] = frozenset(),
        gateways: Container[Kind] = frozenset(),
        policies: Container[Kind] = frozenset(),
    ) -> None:
        self._cluster = cluster
        self._with_status, self._worded, self._routes = with_status, worded, routes
        self._gateways, self._policies = gateways, policies
        self._states: Mapping[ObjectKey, str] = {}
        self._problems: dict[ObjectKey, dict[Problem, None]] = {}
        self._in_force: dict[ObjectKey, InCluster] = {}
        self._touched: dict[ObjectKey, None] = {}

    def has_status(self, key: ObjectKey) -> bool:
        """Return whether the object applies, is of this cluster, and has conditions in its status."""
        return key in self._in_force and key.kind in self._with_status

    def is_worded(self, kind: Kind) -> bool:
        """Return whether the kind has status fields instead of conditions, for example IngressBackend."""
        return kind in self._worded

    def is_route(self, kind: Kind) -> bool:
        """Return whether objects of the kind have conditions for each parent, for example an HTTPRoute."""
        return kind in self._routes

    def is_gateway(self, kind: Kind) -> bool:
        """Return whether the kind is of gateways: Gateway, GatewayClass or ListenerSet."""
        return kind in self._gateways

    def is_policy(self, kind: Kind) -> bool:
        """Return whether objects of the kind have conditions for each gateway, as BackendTLSPolicies."""
        return kind in self._policies

    def state(self, key: ObjectKey) -> str:
        """Return the text of an object's state for its status; empty if unknown."""
        return self._states.get(key, "")

    def stated(self, states: Mapping[ObjectKey, str]) -> None:
        """Replace the state texts of all objects, and mark the objects with another text."""
        before, self._states = self._states, states
        self.touch(key for key, state in states.items() if before.get(key) != state)

    def is_of_status(self, kind: Kind) -> bool:
        """Return whether objects of the kind have conditions in their status."""
        return kind in self._with_status

    def has_state(self, key: ObjectKey | None) -> bool:
        """Return whether objects of the key's kind have conditions or other fields in their status."""
        return key is not None and (key.kind in self._with_status or key.kind in self._worded)

    def problems(self, key: ObjectKey) -> Problems:
        """Return the current problems of an object."""
        return self._problems.get(key, _NONE)

    def generation(self, key: ObjectKey) -> int | None:
        """Return the newest `metadata.generation` read of an object; None for an unknown object."""
        newest = self._newest(key)
        return None if newest is None else newest.generation

    def uid(self, key: ObjectKey) -> str:
        """Return the UID of the newest object read under a key; empty for an unknown object."""
        newest = self._newest(key)
        return "" if newest is None else newest.uid

    def _newest(self, key: ObjectKey) -> InCluster | None:
        """Return the newest origin of an object: that of a problem, or that of the object in force."""
        known = (*(problem.origin for problem in self.problems(key)), self._in_force.get(key))
        origins = [item for item in known if isinstance(item, InCluster)]
        return max(origins, key=lambda item: item.generation, default=None)

    def apply_problems(self, moves: Mapping[Problem, bool]) -> None:
        """Add new problems (True) and remove resolved ones (False), and mark their objects."""
        for problem, stands in moves.items():
            key, origin = problem.key, problem.origin
            if key is None or not isinstance(origin, InCluster) or origin.cluster != self._cluster:
                continue
            problems = self._problems.setdefault(key, {})
            if stands:
                problems[problem] = None
            else:
                problems.pop(problem, None)
            if not problems:
                del self._problems[key]
            self._touched[key] = None

    def apply_edits(self, edits: Mapping[ObjectKey, SourcedObject | None]) -> None:
        """Apply changes of the mesh's objects, None for a removed one, and mark these objects."""
        for key, sourced in edits.items():
            if not self._has_any_status(key.kind):
                continue
            origin = None if sourced is None else sourced.origin
            if isinstance(origin, InCluster) and origin.cluster == self._cluster:
                self._in_force[key] = origin
            elif self._in_force.pop(key, None) is None:
                continue
            self._touched[key] = None

    def _has_any_status(self, kind: Kind) -> bool:
        written = (self._with_status, self._worded, self._routes, self._gateways, self._policies)
        return any(kind in kinds for kinds in written)

    def touch(self, keys: Iterable[ObjectKey]) -> None:
        """Mark objects, so that the writer reports their status again."""
        self._touched.update(dict.fromkeys(keys))

    def touch_all(self) -> None:
        """Mark all known objects, so that the writer reports their status again."""
        self.touch((*self._problems, *self._in_force))

    @property
    def is_touched(self) -> bool:
        """Return whether any object is marked for the writer."""
        return bool(self._touched)

    def take(self) -> tuple[ObjectKey, ...]:
        """Return the marked objects and clear the marks. Objects with errors come first."""
        touched, self._touched = self._touched, {}
        return tuple(sorted(touched, key=lambda key: (not self._has_error(key), key.kind, key.path)))

    def _has_error(self, key: ObjectKey) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems(key))
