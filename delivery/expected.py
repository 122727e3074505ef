"""Which proxies should be here: those of the workloads that there are."""

from catalog.store.inventory import holder_of
from catalog.store.view import View
from engine.node import Absent
from mesh.identity import ProxyName
from mesh.names import ProxyUuid
from mesh.picture import Picture
from mesh.workload import Workload, WorkloadKey


class Expected:
    """The name of each UUID's proxy, kept by the workloads that come, go or change, whoever is here."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._touched: dict[ProxyUuid, None] = {}
        self._proxies: Picture[ProxyUuid, ProxyName] = Picture()
        view.workloads.followed(self)

    def follow(self, _: WorkloadKey, old: Workload | Absent, new: Workload | Absent) -> None:
        """Take note of a workload that is another one now."""
        for each in (old, new):
            if not isinstance(each, Absent) and each.uuid is not None:
                self._touched[each.uuid] = None

    def proxies(self) -> Picture[ProxyUuid, ProxyName]:
        """Return them: of two workloads that claim one UUID, that of the first by key."""
        if self._touched:
            held = {uuid: holder_of(self._view, uuid) for uuid in self._touched}
            names = {uuid: None if found is None else found.proxy_name for uuid, found in held.items()}
            self._proxies, self._touched = self._proxies.changed(names), {}
        return self._proxies
