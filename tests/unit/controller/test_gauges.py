"""The numbers of a moment."""

from datetime import datetime, timedelta

from admin.metrics import Gauges
from controller.gauges import Gauging, resource_counts
from controller.mesh import MeshState
from controller.published import Published
from mesh.endpoints import Inventory
from mesh.objects import Origin, Problem, Severity
from providers.contract import Freshness
from xds.cache import GroupKey, NodeKey
from xds.resource import CLUSTER, LISTENER, Resource, ResourceName, TypeUrl, Version
from xds.snapshot import Snapshot


class _Provider:
    """A source that was read, and cannot be read now."""

    name = "directory"

    def __init__(self, freshness: Freshness) -> None:
        self._freshness = freshness

    def inventory(self) -> Inventory:
        """Answer nothing."""
        return Inventory()

    def freshness(self) -> Freshness:
        """Answer as told."""
        return self._freshness

    async def run(self, changed: object) -> None:
        """Do nothing."""


def _resource(type_url: TypeUrl, name: str, version: str) -> Resource:
    return Resource(type_url, ResourceName(name), Version(version), b"")


def test_a_resource_that_groups_share_is_one() -> None:
    """Counted by type, name and version."""
    shared, own = _resource(CLUSTER, "a", "1"), _resource(CLUSTER, "a", "2")
    listener = _resource(LISTENER, "a", "1")
    snapshots = [Snapshot.of([shared, listener]), Snapshot.of([shared]), Snapshot.of([own])]
    assert resource_counts(snapshots) == {"cluster": 2, "listener": 1}


def test_gauges_are_what_the_parts_say(now: datetime) -> None:
    """All of it in one value."""
    group = GroupKey("g")
    published = Published(
        {group: Snapshot.of([_resource(CLUSTER, "a", "1")])}, {NodeKey("n1"): group, NodeKey("n2"): group}
    )
    problem = Problem("c", Severity.WARNING, Origin("f"), None, "", "", "")
    provider = _Provider(Freshness(last_full_read=now - timedelta(seconds=3), error="gone", error_since=now))
    made = Gauging().gauges(
        MeshState(None, published, (problem,)), {"delta": 2}, {"connected": 1}, [provider], 4, 0.5, now
    )
    assert made == Gauges(
        streams={"delta": 2},
        proxies={"connected": 1},
        resources={"cluster": 1},
        groups=1,
        problems={"warning": 1},
        source_age={"directory": 3.0},
        source_failing={"directory": True},
        certificates=4,
        loop_lateness=0.5,
    )
