"""A second copy of the mesh, in which the effect of one object is tried; proxies never get its content."""

from collections.abc import Callable, Hashable, Mapping
from typing import Final

from catalog.lint.lint import DriverChecks, NoDriverChecks
from catalog.lint.problems import Linter
from catalog.store.edits import Edits
from catalog.store.settings import Admission, MeshSettings
from catalog.store.view import View
from meshwright.kubernetes.admission.turns import Check, unhurried
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problem, Problems, ordered
from meshwright.mesh.values.picture import Picture
from meshwright.providers.merge import MergedObjects, merge

Admissions = Picture[ProxyName, Admission]

PART: Final = 16
"""Number of edits that are applied between two pauses, which takes about a millisecond."""


def _on() -> None:
    """Do not pause: the default for the pause between two parts of the work."""


class Trial:
    """A view of the mesh with its problems, which follows the sources on request.

    Only one thread may use a trial at a time. The first `follow` costs as much as the whole mesh, a later one
    as much as the changes since, and `new_problems` as much as the objects that depend on the tried object.
    `pause` is called between small parts of the work, so that an event loop in another thread can run.
    `values` is the number of derived values after the last `follow`.
    """

    def __init__(
        self,
        settings: MeshSettings,
        further: Callable[[], DriverChecks] = NoDriverChecks,
        pause: Callable[[], None] = _on,
    ) -> None:
        self._view = View(settings)
        self._linter = Linter(self._view, further)
        self._pause = pause
        self._merged = MergedObjects()
        self._admissions: Admissions = Picture()
        self._reported: dict[Hashable, Problems] = {}
        self.values = 0

    def follow(self, merged: MergedObjects, admissions: Admissions) -> None:
        """Apply all changes of the objects and admissions since the last call to the copy of the mesh."""
        edits = Edits(merged.since(self._merged), admissions.since(self._admissions))
        self._merged, self._admissions = merged, admissions
        if edits or not self._reported:
            self._linter.renew()
            for part in edits.parts(PART):
                self._view.apply(part)
                self._pause()
            for where, problems in self._linter.looks():
                self._reported[where] = problems
                self._pause()
            self.values = self._view.graph.size()

    def new_problems(
        self, source: str, key: ObjectKey, sourced: SourcedObject | None, check: Check = unhurried
    ) -> Problems:
        """Return the new problems that the mesh would have if a source had `sourced` under this key.

        None stands for the deletion of the object. An object of another source under the same key keeps its
        precedence, and the contradiction is a problem. Afterwards the view is as before.

        `check` is called after each object whose problems were computed. If `check` raises LateError, the
        rest of the work is left for the next caller.
        """
        after = self._with(source, key, sourced)
        edits = Edits(after.since(self._merged))
        # Values are looked up, because a picture knows its predecessors but not its successors, and would
        # compare all entries.
        back = Edits(
            {
                object_key: self._view.sourced.values_unrecorded().get(object_key)
                for object_key in edits.objects
            }
        )
        known = set(self._merged.problems)
        problems: list[Problem] = [problem for problem in after.problems if problem not in known]
        if edits:
            try:
                self._view.apply(edits)
                for where, look in self._linter.looks():
                    check()
                    there = set(self._reported.get(where, ()))
                    problems += (problem for problem in look if problem not in there)
            finally:
                self._view.apply(back)
            self._reported.update(self._linter.looks())
        return ordered(problems)

    def _with(self, source: str, key: ObjectKey, sourced: SourcedObject | None) -> MergedObjects:
        """Return the merged objects of all sources after the change.

        The object of one claim may be written under several keys (`ObjectKey.forms`); the source then has
        only `key`.
        """
        edits: Mapping[ObjectKey, SourcedObject | None] = {
            **{form: None for form in key.forms() if sourced is not None and form != key},
            key: sourced,
        }
        merged = [
            (name, held.changed(edits) if name == source else held) for name, held in self._merged.states
        ]
        return merge(merged, self._merged)
