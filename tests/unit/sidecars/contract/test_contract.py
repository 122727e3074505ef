"""Tests of the driver contract: probes, events, own snapshots, and probe paths shared with the agent."""

import pytest

from meshwright.agent.status.probes import read_probes
from meshwright.sidecars.contract.driver import SidecarDriver
from meshwright.sidecars.contract.errors import CannotPatchError, DriverError
from meshwright.sidecars.contract.events import Broker, CertificateRevoked, Event
from meshwright.sidecars.contract.health import HealthProbe, ProbeScheme
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.layout import ProbeKind, probe_path
from meshwright.sidecars.snapshots import OwnSnapshots
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.resource import CLUSTER, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot

NODE, OTHER = NodeKey("a.s.n"), NodeKey("b.s.n")
THING = TypeUrl("type.example/thing")
REVOKED = CertificateRevoked("a.s.n", "01")


def test_both_drivers_implement_the_contract_with_separate_types() -> None:
    """No type of resources belongs to both drivers, because their snapshots must be distinguishable."""
    envoy, document = EnvoyDriver(), DocumentDriver()
    assert isinstance(envoy, SidecarDriver)
    assert isinstance(document, SidecarDriver)
    assert not envoy.types & document.types
    assert {envoy.ready_type} <= envoy.types
    assert {document.ready_type} <= document.types
    assert document.capabilities < envoy.capabilities


def test_only_an_http_probe_has_a_path() -> None:
    """A TCP probe with a path, or an HTTP probe without an absolute one, could not be carried out."""
    assert HealthProbe(1, ProbeScheme.HTTP, "/ready").path == "/ready"
    for scheme, path in ((ProbeScheme.TCP, "/ready"), (ProbeScheme.HTTP, ""), (ProbeScheme.HTTP, "ready")):
        with pytest.raises(ValueError, match="cannot have the path"):
            HealthProbe(1, scheme, path)


def test_events_reach_subscribers_in_order_until_they_unsubscribe() -> None:
    """A subscriber may unsubscribe while an event is published."""
    broker, heard = Broker(), list[tuple[str, Event]]()

    def second(event: Event) -> None:
        heard.append(("second", event))
        leave()

    broker.subscribe(lambda event: heard.append(("first", event)))
    leave = broker.subscribe(second)
    broker.publish(REVOKED)
    broker.publish(REVOKED)
    assert heard == [("first", REVOKED), ("second", REVOKED), ("first", REVOKED)]


def test_driver_sees_only_snapshots_of_its_own_types() -> None:
    """The snapshot of another driver's proxy is None, which leaves a stream as it is."""
    cache = SnapshotCache()
    thing, cluster = (
        Snapshot.of([Resource(type_url, ResourceName("r"), Version("1"), b"")])
        for type_url in (THING, CLUSTER)
    )
    cache.publish({GroupKey("t"): thing, GroupKey("c"): cluster}, {NODE: GroupKey("t"), OTHER: GroupKey("c")})
    own = OwnSnapshots(cache, frozenset({THING}))
    assert (own.snapshot(NODE), own.snapshot(OTHER), own.snapshot(NodeKey("x"))) == (thing, None, None)
    woken: list[str] = []
    watch = own.watch(NODE, lambda: woken.append("woken"))
    cache.publish_changes({}, {NODE: GroupKey("c")})
    assert (woken, own.snapshot(NODE)) == (["woken"], None)
    own.unwatch(watch)
    cache.publish_changes({}, {NODE: GroupKey("t")})
    assert woken == ["woken"]


def test_agent_accepts_the_path_of_each_probe_of_each_container() -> None:
    """Each kind of probe of each container has its own path."""
    paths = [probe_path(name, kind) for name in ("a", "b") for kind in ProbeKind]
    assert paths[:3] == ["/app-health/a/livez", "/app-health/a/readyz", "/app-health/a/startupz"]
    assert len(read_probes({path: {"tcpSocket": {"port": 1}} for path in paths})) == 6


def test_patch_error_is_a_driver_error() -> None:
    """A caller can catch all errors of drivers by their base class."""
    assert issubclass(CannotPatchError, DriverError)
