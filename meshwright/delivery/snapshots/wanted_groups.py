"""Whose groups are kept current: everybody's, or those of who is here."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from catalog.relations.groups import ProxyGroup, groups_of, members
from catalog.store.inventory import holder_of
from catalog.store.view import View
from meshwright.engine.index import DerivedIndex, Entries
from meshwright.engine.table import Table
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.values.picture import Picture

NOBODY: Final[Picture[ProxyName, ProxyName]] = Picture()


class WantedGroups(Protocol):
    """Whose groups are kept current in one view."""

    @property
    def groups(self) -> Entries[ProxyGroup, Any]:
        """The groups, as an index of the view's graph; only whoever serves them watches it."""
        ...

    def attend(self, here: Picture[ProxyName, ProxyName]) -> None:
        """Take it who is here now."""

    def anew(self, view: View) -> "WantedGroups":
        """Return the same people in another view of equal content."""


class AllGroups:
    """Every group that there is: for whoever looks at a whole mesh."""

    def __init__(self, view: View) -> None:
        self.groups: Entries[ProxyGroup, Any] = members(view)

    def attend(self, here: Picture[ProxyName, ProxyName]) -> None:
        """Take no notice."""

    def anew(self, view: View) -> "AllGroups":
        """Return everybody in another view."""
        return AllGroups(view)


class ConnectedGroups:
    """The groups of the proxies that are here, as far as their workloads are known.

    Who is here is an input like others: which group that is follows from the view, and so it is found by
    recorded reads when a proxy's workload comes, goes, or is in another group.
    """

    def __init__(self, view: View, here: Picture[ProxyName, ProxyName] = NOBODY) -> None:
        self._view = view
        self._here = NOBODY
        self._table: Table[ProxyName, ProxyName] = Table(view.graph, "who is here")
        self.groups: Entries[ProxyGroup, Any] = DerivedIndex(
            view.graph, "groups of who is here", self._table, self._group_of
        )
        self.attend(here)

    def attend(self, here: Picture[ProxyName, ProxyName]) -> None:
        """Take over who came and who is gone; the view must not be in the midst of a computation."""
        changed = here.since(self._here)
        self._here = here
        if changed:
            table = self._table
            self._view.graph.apply(
                table.remove(name) if came is None else table.set(name, came)
                for name, came in changed.items()
            )

    def anew(self, view: View) -> "ConnectedGroups":
        """Return those who are here now in another view."""
        return ConnectedGroups(view, self._here)

    def _group_of(self, name: ProxyName) -> tuple[ProxyGroup, ...]:
        workload = holder_of(self._view, name)
        return () if workload is None else groups_of(self._view, workload.key)


NewWanted = Callable[[View], WantedGroups]
