"""The mesh a second time, of which it is asked what an object would come to: what is served never sees it."""

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
"""How many edits are taken over between two pauses: that takes a millisecond."""


def _on() -> None:
    """Go on without a pause."""


class Trial:
    """A view that follows the sources when it is asked, and its problems; for one thread at a time.

    The first question costs what there is, another one what has changed since, and what the object concerns.
    Whoever has it work beside an event loop lets that have its turn in each `pause`. `values` is how many
    derived values it remembered when it last came up to date.
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
        self._said: dict[Hashable, Problems] = {}
        self.values = 0

    def follow(self, merged: MergedObjects, admissions: Admissions) -> None:
        """Take over what the sources say now."""
        edits = Edits(merged.since(self._merged), admissions.since(self._admissions))
        self._merged, self._admissions = merged, admissions
        if edits or not self._said:
            self._linter.renew()
            for part in edits.parts(PART):
                self._view.apply(part)
                self._pause()
            for where, said in self._linter.looks():
                self._said[where] = said
                self._pause()
            self.values = self._view.graph.size()

    def of(
        self, source: str, key: ObjectKey, sourced: SourcedObject | None, check: Check = unhurried
    ) -> Problems:
        """Return the problems that there would be if a source had this under a key, and are not there now.

        None is that it had nothing there. What another source has under the key is in force as ever, by
        precedence, and the contradiction is a problem. Afterwards everything is as it was.

        `check` is called after each object that was looked at. Where it raises LateError the rest is left for
        whoever asks next.
        """
        after = self._with(source, key, sourced)
        edits = Edits(after.since(self._merged))
        # Looked up: pictures know what led to them, not what led away, and would compare all there is.
        back = Edits({each: self._view.sourced.held().get(each) for each in edits.objects})
        known = set(self._merged.problems)
        found: list[Problem] = [each for each in after.problems if each not in known]
        if edits:
            try:
                self._view.apply(edits)
                for where, said in self._linter.looks():
                    check()
                    there = set(self._said.get(where, ()))
                    found += (each for each in said if each not in there)
            finally:
                self._view.apply(back)
            self._said.update(self._linter.looks())
        return ordered(found)

    def _with(self, source: str, key: ObjectKey, sourced: SourcedObject | None) -> MergedObjects:
        """Return what all sources would come to; of what is read as one kind, a source has one of a name."""
        edits: Mapping[ObjectKey, SourcedObject | None] = {
            **{each: None for each in key.forms() if sourced is not None and each != key},
            key: sourced,
        }
        said = [(name, held.changed(edits) if name == source else held) for name, held in self._merged.of]
        return merge(said, self._merged)
