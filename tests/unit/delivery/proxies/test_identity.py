"""Tests of the authenticator, which admits proxies by certificate, ledger and view."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from catalog.store.edits import Edits
from catalog.store.view import View
from certs.contract import Names, Usage
from certs.keys.material import PeerCertificate
from certs.keys.pair import issue_pair
from certs.ledger.entry import LedgerState
from certs.ledger.sqlite import SqliteLedger
from certs.peer import read_peer
from certs.proxy import issue_proxy
from meshwright.delivery.proxies import identity
from meshwright.delivery.proxies.identity import MeshAuthenticator, contradiction, names_itself
from meshwright.delivery.proxies.shown_certificates import ShownCertificate, ShownCertificates
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import ServiceName, TrustDomain
from meshwright.mesh.workload import Workload
from tests.tools.own_authority import own_authority
from xds.cache import NodeKey
from xds.hooks import Peer, StreamRefused
from xds.protocol.wire import Node

NAME = ProxyName.parse("a.store.shop")
HOUR = timedelta(hours=1)


class Scene:
    """An authenticator with a clock that a test moves."""

    def __init__(self, state: Path, view: View, now: datetime) -> None:
        self.now = now
        self.view: View | None = view
        self.authority = own_authority(state, TrustDomain("cluster.local"), now)
        self.ledger = SqliteLedger.open(state / "ledger.sqlite")
        self.failed: tuple[ProxyName, ...] = ()
        self.shown = ShownCertificates()
        self.authenticator = MeshAuthenticator(
            self.ledger,
            lambda: self.view,
            lambda: self.now,
            failed=lambda name: "ValueError" if name in self.failed else "",
            shown=self.shown,
        )

    def peer(self, name: ProxyName = NAME) -> Peer:
        """Return a peer with a certificate that is valid for an hour."""
        issued = issue_proxy(self.authority, self.ledger, name, HOUR, self.now)
        return Peer(issued.chain_pem, "ipv4:1.2.3.4:5")

    def refusal(self, peer: Peer) -> str:
        """Return the reason for which a peer is refused."""
        with pytest.raises(StreamRefused) as caught:
            self.authenticator.authenticate(peer)
        return caught.value.reason


@pytest.fixture
def scene(tmp_path: Path, view_of: Callable[..., View], now: datetime) -> Iterator[Scene]:
    """Return the scene with one workload."""
    result = Scene(tmp_path / "state", view_of(("a", "store")), now)
    yield result
    result.ledger.close()


def test_newest_certificate_of_an_admitted_proxy_is_reported_once(scene: Scene) -> None:
    """A refused proxy's certificate is not reported."""
    older = scene.peer()
    scene.now += HOUR / 2
    for peer in (scene.peer(), older):
        scene.authenticator.authenticate(peer)
    shown_certificates = {NAME: ShownCertificate(scene.now, scene.now + HOUR)}
    assert scene.shown.take() == {
        NodeKey(str(name)): shown_certificate for name, shown_certificate in shown_certificates.items()
    }
    assert scene.shown.take() == {}
    scene.now += HOUR
    assert scene.refusal(older) == "expired"
    assert scene.shown.take() == {}


def test_certificate_is_parsed_once_for_each_peer(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing takes longer than all other checks; the parsed certificate is dropped with its peer."""
    peers = [scene.peer(), scene.peer(ProxyName.parse("b.store.shop"))]
    read: list[bytes] = []

    def reading(pem: bytes) -> PeerCertificate:
        read.append(pem)
        return read_peer(pem)

    monkeypatch.setattr(identity, "read_peer", reading)
    for _ in range(3):
        for peer in peers:
            scene.authenticator.authenticate(peer)
    assert read == [peer.certificate for peer in peers]
    scene.now += 2 * HOUR
    assert scene.refusal(peers[0]) == "expired"
    del peers[0]
    gc.collect()  # the refusal's traceback has frames that refer to the peer
    assert list(scene.authenticator._certificates) == peers


def test_known_proxy_is_admitted_and_claims_its_certificate(scene: Scene) -> None:
    """The second admission changes nothing in the ledger."""
    peer = scene.peer()
    assert scene.authenticator.authenticate(peer) == "a.store.shop"
    (entry,) = scene.ledger.entries()
    assert (entry.state, entry.claimed_at) == (LedgerState.CLAIMED, scene.now)
    scene.now += timedelta(minutes=1)
    assert scene.authenticator.authenticate(peer) == "a.store.shop"
    assert scene.ledger.entries() == (entry,)


def test_address_and_time_of_a_live_stream_are_noted_every_15_minutes(scene: Scene) -> None:
    """A stream is checked every 30 s, and fewer writes save the ledger's disk."""
    peer, first = scene.peer(), scene.now
    for _ in range(33):
        scene.authenticator.authenticate(peer)
        scene.now += timedelta(seconds=30)
    (entry,) = scene.ledger.entries()
    assert (entry.claimed_from, entry.last_seen) == ("ipv4:1.2.3.4:5", first + timedelta(minutes=15))
    assert scene.ledger.unwritten == 1


def test_certificate_not_claimed_in_time_is_refused_and_stays_unclaimed(scene: Scene) -> None:
    """A certificate that was claimed in time is accepted after the deadline too."""
    day = timedelta(days=1)
    made = [
        issue_proxy(scene.authority, scene.ledger, NAME, 2 * day, scene.now, claim_within=HOUR)
        for _ in range(2)
    ]
    early, late = (Peer(proxy_certificate.chain_pem, "ipv4:1.2.3.4:5") for proxy_certificate in made)
    scene.authenticator.authenticate(early)
    scene.now += 2 * HOUR
    assert scene.refusal(late) == "unclaimed_too_long"
    assert scene.authenticator.authenticate(early) == str(NAME)
    entry = scene.ledger.entry(made[1].serial)
    assert entry is not None
    assert entry.claimed_at is None


def test_proxy_without_a_workload_is_admitted_to_wait(scene: Scene) -> None:
    """It is admitted by a view without its workload, and before the first view."""
    peer = scene.peer(ProxyName.parse("b.store.shop"))
    assert scene.authenticator.authenticate(peer) == "b.store.shop"
    scene.view = None
    assert scene.authenticator.authenticate(scene.peer()) == "a.store.shop"


def test_each_invalid_certificate_is_refused_with_its_reason(scene: Scene) -> None:
    """A refused certificate is not claimed."""
    assert scene.refusal(Peer(None)) == "no_certificate"
    assert scene.refusal(Peer(b"no pem")) == "unreadable"
    stranger = issue_pair(scene.authority, Usage.PROXY, Names(str(NAME)), HOUR, scene.now)
    assert scene.refusal(Peer(stranger.chain_pem)) == "not_issued"
    shape = issue_pair(scene.authority, Usage.PROXY, Names("a.b"), HOUR, scene.now)
    assert scene.refusal(Peer(shape.chain_pem)) == "bad_common_name"
    service = Names("a.store.shop", uris=("spiffe://cluster.local/ns/shop/sa/store",))
    usage = issue_pair(scene.authority, Usage.SERVICE, service, HOUR, scene.now)
    assert scene.refusal(Peer(usage.chain_pem)) == "wrong_usage"
    other = ProxyName.parse("a.other.shop")
    assert scene.refusal(scene.peer(other)) == "other_workload"
    revoked = scene.peer()
    for entry in scene.ledger.entries():
        scene.ledger.revoke(entry.serial, scene.now)
    assert scene.refusal(revoked) == "revoked"
    assert all(entry.claimed_at is None for entry in scene.ledger.entries())


def test_expired_certificate_is_refused_although_tls_accepted_it(scene: Scene) -> None:
    """A resumed TLS session does not check the expiry again."""
    peer = scene.peer()
    scene.now += HOUR
    assert scene.authenticator.authenticate(peer) == "a.store.shop"
    scene.now += timedelta(seconds=1)
    assert scene.refusal(peer) == "expired"


def test_failing_ledger_admits_no_proxy(scene: Scene) -> None:
    """Without the ledger a revocation cannot be noticed."""
    peer = scene.peer()
    scene.ledger.close()
    assert scene.refusal(peer) == "ledger_unavailable"


@pytest.mark.parametrize(
    ("node", "accepted"),
    [
        ("a.store.shop", True),
        ("a", True),
        ("", False),
        ("a.store", False),
        ("b.store.shop", False),
        ("A", False),
    ],
)
def test_node_id_must_be_the_name_or_the_uuid_of_the_proxy(scene: Scene, node: str, accepted: bool) -> None:
    """Any other node ID belongs to another proxy or to none."""
    assert names_itself("a.store.shop", node) is accepted
    key = scene.authenticator.authenticate(scene.peer())
    if accepted:
        scene.authenticator.accept_node(key, Node(node))
    else:
        with pytest.raises(StreamRefused, match="other_node"):
            scene.authenticator.accept_node(key, Node(node))


def test_contradiction_names_the_workload_and_its_proxy(scene: Scene) -> None:
    """An operator needs both names for the correction; a name without a contradiction has an empty text."""
    assert contradiction(NAME, scene.view) == ""
    assert contradiction(ProxyName.parse("a.x.shop"), scene.view) == (
        "workload shop/w-a has this UUID, and its proxy is a.store.shop"
    )


def test_proxy_is_compared_with_the_view_again_only_after_a_change(scene: Scene) -> None:
    """Streams are checked often, but the mesh rarely changes, so the result is remembered."""
    asked: list[ProxyName] = []

    def not_served(name: ProxyName) -> str:
        asked.append(name)
        return ""

    authenticator = MeshAuthenticator(scene.ledger, lambda: scene.view, lambda: scene.now, not_served)
    peer = scene.peer()
    for _ in range(3):
        assert authenticator.authenticate(peer) == str(NAME)
    assert len(asked) == 1
    assert scene.view is not None
    held = scene.view.sourced.values_unrecorded()
    (key,) = (key for key, sourced_object in held.items() if isinstance(sourced_object.value, Workload))
    known = held[key]
    assert isinstance(known.value, Workload)
    scene.view.apply(Edits(objects={key: None}))
    assert authenticator.authenticate(peer) == str(NAME)
    assert len(asked) == 2
    elsewhere = replace(known.value, service=ServiceName("other"))
    scene.view.apply(Edits(objects={key: replace(known, value=elsewhere)}))
    with pytest.raises(StreamRefused, match="other_workload"):
        authenticator.authenticate(peer)
    scene.view = None
    assert authenticator.authenticate(peer) == str(NAME)
    assert len(asked) == 3


def test_proxy_without_configuration_has_one_of_three_reasons(scene: Scene) -> None:
    """No source is read yet, the workload is unknown, or its translation failed."""
    stranger = NodeKey("b.store.shop")
    assert [
        scene.authenticator.hold_reason(NodeKey(str(NAME))),
        scene.authenticator.hold_reason(stranger),
    ] == [
        "",
        "workload-unknown",
    ]
    scene.failed = (NAME, ProxyName.parse(stranger))
    assert scene.authenticator.hold_reason(NodeKey(str(NAME))) == "translation-failed"
    assert scene.authenticator.hold_reason(stranger) == "workload-unknown"
    scene.view = None
    assert scene.authenticator.hold_reason(NodeKey(str(NAME))) == "sources-not-read"


def test_proxy_of_a_retired_root_is_refused_on_a_live_connection(scene: Scene) -> None:
    """TLS verifies the certificate only at the handshake, and the connection may outlive the root."""
    peer = scene.peer()
    trusted = {scene.authority.fingerprint}
    authenticator = MeshAuthenticator(
        scene.ledger, lambda: scene.view, lambda: scene.now, trusts=trusted.__contains__
    )
    assert authenticator.authenticate(peer) == str(NAME)
    trusted.clear()
    with pytest.raises(StreamRefused) as caught:
        authenticator.authenticate(peer)
    assert caught.value.reason == "retired_root"
