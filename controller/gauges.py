"""The numbers of this moment, from what the server's parts say."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from admin.debug import counted
from admin.metrics import Gauges, short_type
from controller.mesh import MeshState
from providers.contract import EndpointProvider
from xds.snapshot import Snapshot


def resource_counts(snapshots: Iterable[Snapshot]) -> dict[str, int]:
    """Count distinct resources by type: one that many groups share is one."""
    distinct = {
        (type_url, resource.name, resource.version)
        for snapshot in snapshots
        for type_url in snapshot.types()
        for resource in snapshot.ordered(type_url)
    }
    return dict(Counter(short_type(type_url) for type_url, _, _ in distinct))


class Gauging:
    """Makes Gauges; counts resources only when there is a new state."""

    def __init__(self) -> None:
        self._counted: MeshState | None = None
        self._resources: Mapping[str, int] = {}

    def gauges(
        self,
        state: MeshState,
        streams: Mapping[str, int],
        proxies: Mapping[str, int],
        providers: Iterable[EndpointProvider],
        certificates: int,
        lateness: float,
        now: datetime,
    ) -> Gauges:
        """Return what is measured now."""
        if state is not self._counted:
            self._counted, self._resources = state, resource_counts(state.published.snapshots.values())
        fresh = {provider.name: provider.freshness() for provider in providers}
        return Gauges(
            streams=dict(streams),
            proxies=proxies,
            resources=self._resources,
            groups=len(set(state.published.members.values())),
            problems=counted(state.problems),
            source_age={
                name: (now - each.last_full_read).total_seconds()
                for name, each in fresh.items()
                if each.last_full_read is not None
            },
            source_failing={name: bool(each.error) for name, each in fresh.items()},
            certificates=certificates,
            loop_lateness=lateness,
        )
