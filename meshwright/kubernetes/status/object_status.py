"""What is known now of the objects of one cluster, and of which of them it is otherwise than was reported."""

from collections.abc import Container, Iterable, Mapping

from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Severity

Problems = Mapping[Problem, None]
"""What is wrong with one object, each once."""

_NONE: Problems = {}


class ObjectStatusTable:
    """A table of what is wrong, by object, and of those objects in force that have a status, or words in it.

    A change costs what it changes. Objects of other clusters, and of no cluster, are nobody's here.
    """

    def __init__(
        self, cluster: str, with_status: Container[Kind], worded: Container[Kind] = frozenset()
    ) -> None:
        self._cluster = cluster
        self._with_status, self._worded = with_status, worded
        self._states: Mapping[ObjectKey, str] = {}
        self._problems: dict[ObjectKey, dict[Problem, None]] = {}
        self._in_force: dict[ObjectKey, InCluster] = {}
        self._touched: dict[ObjectKey, None] = {}

    def has_status(self, key: ObjectKey) -> bool:
        """Say whether an object is one of the cluster's in force that has a status."""
        return key in self._in_force and key.kind in self._with_status

    def is_worded(self, kind: Kind) -> bool:
        """Say whether the status of a kind's objects has words of that kind's own."""
        return kind in self._worded

    def state(self, key: ObjectKey) -> str:
        """Return the state of an object that has one; empty where none is known."""
        return self._states.get(key, "")

    def stated(self, states: Mapping[ObjectKey, str]) -> None:
        """Take the states of all objects that have one."""
        before, self._states = self._states, states
        self.touch(key for key, state in states.items() if before.get(key) != state)

    def is_of_status(self, kind: Kind) -> bool:
        """Say whether objects of a kind have a status."""
        return kind in self._with_status

    def has_state(self, key: ObjectKey | None) -> bool:
        """Return True if objects of the key's kind have a status of conditions or of words."""
        return key is not None and (key.kind in self._with_status or key.kind in self._worded)

    def problems(self, key: ObjectKey) -> Problems:
        """Return what is wrong with an object."""
        return self._problems.get(key, _NONE)

    def generation(self, key: ObjectKey) -> int | None:
        """Return the newest generation of an object that was read; None where nothing is known of it."""
        known = [each.origin for each in self.problems(key)]
        found = [each.generation for each in (*known, self._in_force.get(key)) if isinstance(each, InCluster)]
        return max(found, default=None)

    def heard(self, moves: Mapping[Problem, bool]) -> None:
        """Take problems that stand now, or do not any more."""
        for problem, stands in moves.items():
            key, origin = problem.key, problem.origin
            if key is None or not isinstance(origin, InCluster) or origin.cluster != self._cluster:
                continue
            said = self._problems.setdefault(key, {})
            if stands:
                said[problem] = None
            else:
                said.pop(problem, None)
            if not said:
                del self._problems[key]
            self._touched[key] = None

    def held(self, edits: Mapping[ObjectKey, SourcedObject | None]) -> None:
        """Take what is in force otherwise than before, None for what is gone."""
        for key, sourced in edits.items():
            if key.kind not in self._with_status and key.kind not in self._worded:
                continue
            origin = None if sourced is None else sourced.origin
            if isinstance(origin, InCluster) and origin.cluster == self._cluster:
                self._in_force[key] = origin
            elif self._in_force.pop(key, None) is None:
                continue
            self._touched[key] = None

    def touch(self, keys: Iterable[ObjectKey]) -> None:
        """Have objects be looked at again."""
        self._touched.update(dict.fromkeys(keys))

    def touch_all(self) -> None:
        """Have all be looked at again."""
        self.touch((*self._problems, *self._in_force))

    @property
    def is_touched(self) -> bool:
        """Whether any is to be looked at."""
        return bool(self._touched)

    def take(self) -> tuple[ObjectKey, ...]:
        """Return the objects to be looked at, those first with which something is not in force."""
        touched, self._touched = self._touched, {}
        return tuple(sorted(touched, key=lambda key: (not self._has_error(key), key.kind, key.path)))

    def _has_error(self, key: ObjectKey) -> bool:
        return any(each.severity is Severity.ERROR for each in self.problems(key))
