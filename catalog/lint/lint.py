"""A view as problems look at it: with indexes of their own, which cost nothing where nobody lints."""

from typing import Any, Final, Protocol

from catalog.store.view import View
from meshwright.engine.declarations import Declarations, DeclaredPart
from meshwright.engine.derived import derived
from meshwright.engine.table import Table
from meshwright.mesh.problems.problem import Problems
from meshwright.mesh.workload import WorkloadKey

_HERE: Final = "here"


class DriverChecks(Protocol):
    """Who finds problems that the catalog knows nothing of: it has its own of what drivers there are.

    What it goes by, but for the view, never changes: with other drivers it is another one.
    """

    def of_mesh(self, view: View) -> Problems:
        """Return what is wrong with the settings of the mesh."""
        ...

    def fine(self, view: View) -> frozenset[str]:
        """Return the names of drivers with which nothing can be wrong, whoever names them."""
        ...

    def of_workload(self, view: View, key: WorkloadKey) -> Problems:
        """Return what is wrong with a workload that has a sidecar of a driver that is not `fine`."""
        ...


class NoDriverChecks:
    """Finds no further problem, whatever drivers are named."""

    def of_mesh(self, view: View) -> Problems:
        """Find nothing."""
        del view
        return ()

    def fine(self, view: View) -> frozenset[str]:
        """Know no driver."""
        del view
        return frozenset()

    def of_workload(self, view: View, key: WorkloadKey) -> Problems:
        """Find nothing."""
        del view, key
        return ()


class Lint:
    """A view, and what problems alone search it by (`IN_LINT`); one for each view that is linted."""

    def __init__(self, view: View, further: DriverChecks) -> None:
        self.view = view
        self.graph = view.graph
        self.made: dict[DeclaredPart[Any, Any], Any] = {}
        self._further: Table[str, DriverChecks] = Table(view.graph, "further problems")
        self.renew(further)
        IN_LINT.make(self)
        self.graph.apply(())  # the indexes take in what the view knows already

    @property
    def further(self) -> DriverChecks:
        """Who finds problems that the catalog knows nothing of."""
        return self._further[_HERE]

    def renew(self, further: DriverChecks) -> None:
        """Ask another one from now on, wherever the one before was asked."""
        self.graph.apply((self._further.set(_HERE, further),))


IN_LINT: Final = Declarations[Lint]()
"""What every Lint has; see engine.declared."""


@derived
def _fine(lint: Lint) -> frozenset[str]:
    return lint.further.fine(lint.view)


fine: Final = IN_LINT.firewall(_fine)
"""The drivers with which nothing can be wrong: settings change more often than that does."""
