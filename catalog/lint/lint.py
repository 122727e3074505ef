"""A view with the indexes that only lint needs. A server without lint has no cost for them."""

from datetime import datetime
from typing import Any, Final, Protocol

from catalog.store.view import View
from meshwright.engine.declarations import Declarations, DeclaredPart
from meshwright.engine.derived import derived
from meshwright.engine.table import Table
from meshwright.mesh.problems.problem import Problems
from meshwright.mesh.workload import WorkloadKey

_HERE: Final = "here"


class DriverChecks(Protocol):
    """Checks of sidecar drivers, which the catalog does not know.

    The checks depend on the view and on installed drivers. Installed drivers never change in one object: for
    other drivers there is another object.
    """

    def of_mesh(self, view: View) -> Problems:
        """Return the problems of the mesh's settings found by the sidecar drivers."""
        ...

    def fine(self, view: View) -> frozenset[str]:
        """Return the names of drivers without possible problems: they run and support every policy."""
        ...

    def of_workload(self, view: View, key: WorkloadKey) -> Problems:
        """Return the problems of a workload with a sidecar whose driver is not in `fine`."""
        ...


class NoDriverChecks:
    """Driver checks that never find a problem."""

    def of_mesh(self, view: View) -> Problems:
        """Return an empty tuple: no problems."""
        del view
        return ()

    def fine(self, view: View) -> frozenset[str]:
        """Return an empty set: no driver is exempt from `of_workload`, which finds no problem."""
        del view
        return frozenset()

    def of_workload(self, view: View, key: WorkloadKey) -> Problems:
        """Return an empty tuple: no problems."""
        del view, key
        return ()


class Lint:
    """A view of the mesh, with the indexes that only lint needs (declared with `IN_LINT`).

    `now` is the time for certificates; without a time their validity is not checked.
    """

    def __init__(self, view: View, further: DriverChecks, now: datetime | None = None) -> None:
        self.view = view
        self.graph = view.graph
        self.made: dict[DeclaredPart[Any, Any], Any] = {}
        self._further: Table[str, DriverChecks] = Table(view.graph, "further problems")
        self._now: Table[str, datetime | None] = Table(view.graph, "time of the lint")
        self.renew(further)
        self.at(now)
        IN_LINT.make(self)
        self.graph.apply(())  # the indexes take in what the view knows already

    @property
    def further(self) -> DriverChecks:
        """Return the checks of sidecar drivers."""
        return self._further[_HERE]

    @property
    def now(self) -> datetime | None:
        """Return the time for certificates, or None."""
        return self._now[_HERE]

    def at(self, now: datetime | None) -> None:
        """Replace the time; the values that it changes are computed again."""
        self.graph.apply((self._now.set(_HERE, now),))

    def renew(self, further: DriverChecks) -> None:
        """Replace the driver checks; all values dependent on the old checks are computed again."""
        self.graph.apply((self._further.set(_HERE, further),))


IN_LINT: Final = Declarations[Lint]()
"""Indexes of every Lint; see `meshwright.engine.declarations`."""


@derived
def _fine(lint: Lint) -> frozenset[str]:
    return lint.further.fine(lint.view)


fine: Final = IN_LINT.firewall(_fine)
"""Drivers without possible problems. The firewall stops changes of settings without an effect on this set."""
