"""Fixtures of a small mesh, and a fake reading of the mesh with answers that a test can choose."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from catalog.policy.provenance import InputObject
from catalog.store.view import MeshSettings, View
from certs.contract import IssuerKind
from certs.keys.material import PrivateKey, ServiceCertificate
from certs.ledger.entry import LedgerEntry
from certs.roots.succeeding_authority import AuthorityStatus
from meshwright.admin.readers import LateMoment
from meshwright.delivery.history.push import Answer, Push, Trigger
from meshwright.delivery.proxies.held_certificates import HeldCertificate
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.delivery.quarantine.exclusions import LeftOut
from meshwright.delivery.wave import Cause, Change, Wave
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.kinds import TRAFFIC_TARGET, Kind
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceAccountName
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.problems.problem import Problem, Problems, Severity
from meshwright.providers.contract import Counts, Freshness
from meshwright.providers.directory.source import DirectorySource
from meshwright.traffic.traffic import Traffic
from xds.cache import NodeKey
from xds.protocol.resources.resource import (
    CLUSTER,
    ROUTE,
    Reference,
    Resource,
    ResourceName,
    TypeUrl,
    Version,
)
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Node, Nonce, Rejection
from xds.stream_status import StreamStatus, SyncState, TypeStatus, Variant

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAME = ProxyName.parse("uuid-1.store.shop")
CAUSE = Cause(TRAFFIC_TARGET, "shop/buyers", "mesh.yaml:31 (document 5)", Change.CHANGED)
MANIFESTS = """
apiVersion: v1
kind: Service
metadata: {name: store, namespace: shop}
spec:
  selector: {app: store}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: tcp-raw, port: 90, targetPort: 9090}]
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: store-1, namespace: shop, labels: {app: store}}
spec:
  address: 10.0.0.1
  uuid: uuid-1
  serviceAccount: store
  ports: [{port: 8080, protocol: http}, {port: 9090, protocol: tcp}]
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: buyer-1, namespace: shop}
spec: {address: 10.0.0.2, uuid: uuid-2, serviceAccount: buyer}
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {name: routes, namespace: shop}
spec:
  matches:
  - {name: buy, pathRegex: /buy, methods: [GET, PUT]}
  - {name: any-header, headers: [{x-kind: b.*}]}
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {name: buyers, namespace: shop}
spec:
  destination: {kind: ServiceAccount, name: store, namespace: shop}
  sources: [{kind: ServiceAccount, name: buyer, namespace: shop}]
  rules: [{kind: HTTPRouteGroup, name: routes}]
"""


@dataclass
class FakeReading:
    """Fake of `admin.reading.MeshReading` with configurable answers."""

    the_view: View | None = None
    the_streams: tuple[StreamStatus, ...] = ()
    the_proxies: tuple[ProxyStatus, ...] = ()
    the_snapshot: Snapshot | None = None
    the_objects: Mapping[ObjectKey, SourcedObject] = field(default_factory=dict)
    the_problems: Problems = ()
    the_certificates: Mapping[ServiceIdentity, ServiceCertificate] = field(default_factory=dict)
    the_held: Mapping[ProxyName, HeldCertificate] = field(default_factory=dict)
    the_ledger: tuple[LedgerEntry, ...] = ()
    the_freshness: Mapping[str, Freshness] = field(default_factory=dict)
    the_pushes: tuple[Push, ...] = ()
    the_replaced: tuple[Resource, ...] = ()
    the_failure: str = ""
    the_unreceived: str = ""
    the_trust_bundle: bytes = b""
    the_rejected: tuple[Reference, ...] = ()
    the_refusals: Mapping[tuple[ProxyName, TypeUrl, ResourceName], str] = field(default_factory=dict)
    the_left_out: tuple[LeftOut, ...] = ()
    the_ejected: Mapping[str, tuple[ProxyName, ...]] = field(default_factory=dict)
    the_traffic: Traffic = field(default_factory=Traffic)

    def ejected(self) -> Mapping[str, tuple[ProxyName, ...]]:
        """Return the configured ejections."""
        return self.the_ejected

    def traffic(self) -> Traffic:
        """Return the configured traffic."""
        return self.the_traffic

    def newest(self) -> tuple[object, Problems]:
        """Return the configured view and problems."""
        return self.the_view, self.the_problems

    def answers(self) -> int:
        """Return 0."""
        return 0

    def dead_after(self) -> timedelta:
        """Return one minute."""
        return timedelta(minutes=1)

    def streams(self) -> tuple[StreamStatus, ...]:
        """Return the configured streams."""
        return self.the_streams

    def proxies(self) -> tuple[ProxyStatus, ...]:
        """Return the configured proxies."""
        return self.the_proxies

    def snapshot(self, name: ProxyName) -> Snapshot | None:
        """Return the configured snapshot for the proxy `NAME`, and None for others."""
        return self.the_snapshot if name == NAME else None

    def pushes(self, name: ProxyName) -> tuple[Push, ...]:
        """Return the configured pushes for the proxy `NAME`, and none for others."""
        return self.the_pushes if name == NAME else ()

    def replaced(self, type_url: TypeUrl, resource: ResourceName, version: Version) -> Resource | None:
        """Return the configured replaced resource of this type, name and version."""
        wanted = (type_url, resource, version)
        return next((r for r in self.the_replaced if (r.type_url, r.name, r.version) == wanted), None)

    def refusal(self, name: ProxyName, type_url: TypeUrl, resource: ResourceName) -> str:
        """Return the configured reason for which a proxy rejected a resource."""
        return self.the_refusals.get((name, type_url, resource), "")

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return the parts of policy that are not in force."""
        return self.the_left_out

    def rejected(self, name: ProxyName) -> tuple[Reference, ...]:
        """Return the configured rejected resources for the proxy `NAME`, and none for others."""
        return self.the_rejected if name == NAME else ()

    def objects_behind(
        self, name: ProxyName, type_url: TypeUrl, resource: ResourceName
    ) -> tuple[InputObject, ...]:
        """Return one TrafficTarget for every resource of the proxy `NAME`, and none for others."""
        key = ObjectKey(TRAFFIC_TARGET, Namespace("shop"), "buyers")
        return (InputObject(key, InFile("mesh.yaml", 5, 31)),) if name == NAME else ()

    def unreceived(self, name: ProxyName) -> str:
        """Return the configured reason for an undelivered response for the proxy `NAME`."""
        return self.the_unreceived if name == NAME else ""

    def failure(self, name: ProxyName) -> str:
        """Return the configured failure."""
        return self.the_failure

    def view(self) -> View | None:
        """Return the configured view."""
        return self.the_view

    def objects(self) -> Mapping[ObjectKey, SourcedObject]:
        """Return the configured objects."""
        return self.the_objects

    async def problems(self) -> Problems:
        """Return the configured problems."""
        return self.the_problems

    def failures(self) -> tuple[tuple[str, str, bool], ...]:
        """Return one failure."""
        return (("shop/store|store|00", "ValueError: x", True),)

    def certificates(self) -> Mapping[ServiceIdentity, ServiceCertificate]:
        """Return the configured service certificates."""
        return self.the_certificates

    def held_certificate(self, name: ProxyName) -> HeldCertificate | None:
        """Return the configured certificate that the proxy holds."""
        return self.the_held.get(name)

    def trust_bundle(self) -> bytes:
        """Return the configured trust bundle."""
        return self.the_trust_bundle

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return the configured ledger."""
        return self.the_ledger

    def authority(self) -> AuthorityStatus:
        """Return the status of a built-in CA."""
        return AuthorityStatus(IssuerKind.BUILT_IN, "/state/ca", "ab12", datetime(2036, 1, 1, tzinfo=UTC))

    def counts(self) -> Mapping[str, Counts]:
        """Return counts for the directory."""
        return {"directory": Counts(3, 2, 1)}

    def freshness(self) -> Mapping[str, Freshness]:
        """Return the configured freshness of each source."""
        return self.the_freshness

    def late_moments(self) -> tuple[LateMoment, ...]:
        """Return one moment at which the event loop was late."""
        return (LateMoment(NOW, 0.0423456, "computing"),)

    def settings(self) -> Mapping[str, object]:
        """Return one setting."""
        return {"mesh": "m"}

    def listening(self) -> Mapping[str, str]:
        """Return one listening address."""
        return {"http": "127.0.0.1:9091"}


def type_status(state: SyncState, rejection: Rejection | None = None) -> TypeStatus:
    """Return the status of the type "cluster" in the given state."""
    return TypeStatus(
        CLUSTER,
        state,
        Version("v2"),
        Nonce("7"),
        NOW,
        Version("v1"),
        rejection,
        (ResourceName("a"),) if rejection else (),
        True,
        (ResourceName("a"),),
    )


def push() -> Push:
    """Return an acknowledged push of a changed route."""
    return Push(
        at=NOW,
        trigger=Trigger.CHANGE,
        waves=(Wave(7, (CAUSE,), 0, 0.0, 0.0, NOW),),
        type_url=ROUTE,
        protocol=Variant.DELTA,
        nonce=Nonce("3"),
        version=Version("v2"),
        added=(),
        changed=((ResourceName("rds-inbound.8080"), Version("old"), Version("new")),),
        removed=(),
        again=0,
        size=321,
        answer=Answer.ACK,
        seconds=0.0123456,
        since_event=0.1,
        rejection=None,
    )


def stream(number: int, *types: TypeStatus, served: bool = True) -> StreamStatus:
    """Return the status of a stream of the proxy `NAME`."""
    return StreamStatus(
        number,
        NodeKey(str(NAME)),
        Node(str(NAME), user_agent="envoy 1.40.0"),
        "ipv6:%5B::1%5D:5",
        Variant.DELTA,
        NOW,
        served,
        types,
    )


@pytest.fixture
def source(tmp_path: Path) -> DirectorySource:
    """Return a directory source that has read the small mesh."""
    (tmp_path / "mesh.yaml").write_text(MANIFESTS)
    directory_source = DirectorySource(tmp_path, lambda: NOW)
    directory_source.load()
    return directory_source


@pytest.fixture
def view(source: DirectorySource) -> View:
    """Return the view of the small mesh."""
    return View.build(source.objects(), MeshSettings())


@pytest.fixture
def reading(source: DirectorySource, view: View) -> FakeReading:
    """Return a reading of the small mesh with at least one entry on most pages."""
    identity = ServiceIdentity(Namespace("shop"), ServiceAccountName("store"))
    key = PrivateKey(b"-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n")
    certificate = ServiceCertificate(
        identity,
        "abc",
        NOW - timedelta(hours=1),
        NOW + timedelta(hours=23),
        ("store.shop.svc.cluster.local",),
        b"CHAIN",
        key,
    )
    problem = Problem(
        code="MW1",
        severity=Severity.ERROR,
        origin=InFile("f.yaml", 2, 9),
        key=ObjectKey(Kind("K"), Namespace("n"), "x"),
        field="spec.a",
        value="1",
        expected="two",
    )
    return FakeReading(
        the_view=view,
        the_streams=(stream(1, type_status(SyncState.SYNCED)),),
        the_proxies=(ProxyStatus(NAME, ProxyState.CONNECTED, "ipv4:127.0.0.1:5", NOW, True),),
        the_objects=source.objects(),
        the_problems=(problem,),
        the_certificates={identity: certificate},
        the_ledger=(
            LedgerEntry("ab", str(NAME), ProxyUuid("uuid-1"), NOW, NOW + timedelta(days=1), claimed_at=NOW),
        ),
        the_pushes=(push(),),
        the_freshness={"directory": Freshness(NOW, NOW - timedelta(seconds=3))},
    )


@pytest.fixture
def now() -> datetime:
    """Return the time at which the tests of this folder take place."""
    return NOW


@pytest.fixture
def empty_reading() -> FakeReading:
    """Return the reading of a server that has just started."""
    return FakeReading()


@pytest.fixture
def stream_of() -> Callable[..., StreamStatus]:
    """Return a factory of streams: number, then (state, rejection) for each type."""

    def made(number: int, *types: tuple[SyncState, Rejection | None], served: bool = True) -> StreamStatus:
        return stream(number, *(type_status(*item) for item in types), served=served)

    return made
