"""Which proxies should be here: those of the workloads that there are."""

from catalog.store.inventory import claimant_of
from catalog.store.view import View
from meshwright.engine.node import Absent
from meshwright.mesh.identity import ProxyName, SidecarKey
from meshwright.mesh.values.picture import Picture
from meshwright.mesh.workload import Workload, WorkloadKey


class Expected:
    """The name of each sidecar, kept by the workloads that come, go or change, whoever is here."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._touched: dict[SidecarKey, None] = {}
        self._proxies: Picture[SidecarKey, ProxyName] = Picture()
        view.workloads.followed(self)

    def follow(self, _: WorkloadKey, old: Workload | Absent, new: Workload | Absent) -> None:
        """Take note of a workload that is another one now."""
        for each in (old, new):
            if not isinstance(each, Absent) and (claimed := each.sidecar) is not None:
                self._touched[claimed] = None

    def proxies(self) -> Picture[SidecarKey, ProxyName]:
        """Return them: of several workloads that claim one sidecar, that of its claimant."""
        if self._touched:
            held = {each: claimant_of(self._view, each) for each in self._touched}
            names = {each: None if found is None else found.proxy_name for each, found in held.items()}
            self._proxies, self._touched = self._proxies.changed(names), {}
        return self._proxies
