"""Selection of the groups to keep current: all groups, or the groups of connected proxies."""

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
    """Groups of proxies with a snapshot to keep current, within one view."""

    @property
    def groups(self) -> Entries[ProxyGroup, Any]:
        """The groups, as an index of the view's graph; only GroupSnapshots watches it."""
        ...

    def attend(self, here: Picture[ProxyName, ProxyName]) -> None:
        """Set the connected proxies."""

    def anew(self, view: View) -> "WantedGroups":
        """Return the same selection of groups for another view with equal content."""


class AllGroups:
    """Selection of all groups of proxies, for tools that examine a whole mesh."""

    def __init__(self, view: View) -> None:
        self.groups: Entries[ProxyGroup, Any] = members(view)

    def attend(self, here: Picture[ProxyName, ProxyName]) -> None:
        """Ignore the argument: all groups are served."""

    def anew(self, view: View) -> "AllGroups":
        """Return all groups of another view."""
        return AllGroups(view)


class ConnectedGroups:
    """The groups of connected proxies with a known workload.

    Connected proxies are an input of the graph. The group of each follows from the view, so recorded reads
    notice when a workload is added, removed, or moved to another group.
    """

    def __init__(self, view: View, here: Picture[ProxyName, ProxyName] = NOBODY) -> None:
        self._view = view
        self._here = NOBODY
        self._table: Table[ProxyName, ProxyName] = Table(view.graph, "connected proxies")
        self.groups: Entries[ProxyGroup, Any] = DerivedIndex(
            view.graph, "groups of connected proxies", self._table, self._group_of
        )
        self.attend(here)

    def attend(self, here: Picture[ProxyName, ProxyName]) -> None:
        """Apply connected and disconnected proxies; must not be called during a computation of the view."""
        changed = here.since(self._here)
        self._here = here
        # An empty change of the graph would still cost a pass over its stages.
        if changed:
            table = self._table
            self._view.graph.apply(
                table.remove(name) if came is None else table.set(name, came)
                for name, came in changed.items()
            )

    def anew(self, view: View) -> "ConnectedGroups":
        """Return the groups of the currently connected proxies in another view."""
        return ConnectedGroups(view, self._here)

    def _group_of(self, name: ProxyName) -> tuple[ProxyGroup, ...]:
        workload = holder_of(self._view, name)
        return () if workload is None else groups_of(self._view, workload.key)


NewWanted = Callable[[View], WantedGroups]
