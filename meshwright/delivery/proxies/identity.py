"""Authentication of clients of the ADS server, by their certificate alone.

A node key is the common name of a proxy: `<uuid>.<service>.<namespace>`. A proxy without a known workload is
admitted, but the stream stays silent until the workload appears and a snapshot is published.
"""

import enum
from collections.abc import Callable
from datetime import datetime
from weakref import WeakKeyDictionary

import structlog

from catalog.store.inventory import claimant_of, holder_of
from catalog.store.view import View
from certs.errors import PeerRefused, RefusalReason, StateError
from certs.keys.material import PeerCertificate
from certs.ledger.contract import Ledger
from certs.peer import AdmittedPeer, admitted, presence, read_peer
from meshwright.delivery.proxies.shown_certificates import ShownCertificates
from meshwright.delivery.proxies.unknown_serials import UnknownSerials
from meshwright.mesh.identity import ProxyName
from xds.cache import NodeKey
from xds.hooks import Peer, StreamRefused
from xds.protocol.wire import Node

_log = structlog.get_logger("delivery.proxies.identity")


class Refusal(enum.StrEnum):
    """Reasons to refuse an xDS client, besides those from the certificate (`certs.errors.RefusalReason`)."""

    NO_CERTIFICATE = "no_certificate"
    OTHER_WORKLOAD = "other_workload"
    OTHER_NODE = "other_node"
    OTHER_DRIVER = "other_driver"
    LEDGER = "ledger_unavailable"


class HoldReason(enum.StrEnum):
    """Reasons why an accepted stream gets no response yet; the reason is sent to the proxy."""

    WORKLOAD = "workload-unknown"
    FAILED = "translation-failed"
    NOT_READ = "sources-not-read"


def names_itself(name: str, node_id: str) -> bool:
    """Return whether a client with a certificate for `name` may use `node_id` as its node id.

    Accepted are the complete common name, as written by our bootstraps, and the UUID alone. An empty id is
    refused, because log readers could not distinguish such clients. For example: for `a1.cart.shop`, both
    `a1.cart.shop` and `a1` are accepted.
    """
    return node_id in (name, name.partition(".")[0])


def contradiction(name: ProxyName, view: View | None) -> str:
    """Return the contradiction between a name and the workload with the same UUID and namespace, or "".

    Workloads in other namespaces do not count, because they must not decide about proxies of this namespace.
    """
    workload = claimant_of(view, name.sidecar) if view is not None else None
    if workload is None or workload.proxy_name == name:
        return ""
    return f"workload {workload.key} has this UUID, and its proxy is {workload.proxy_name}"


Unknown = Callable[[PeerCertificate, bytes, str, datetime], None]
"""Receiver of certificates valid below our root, but missing in the ledger.

Arguments: the certificate, its PEM, the client's address, and the time.
"""


def _no_reason(name: ProxyName) -> str:
    """Return an empty text: no reason against serving the proxy."""
    del name
    return ""


def _trust_all(signer: str) -> bool:
    """Return True: every signer of proxy certificates is trusted."""
    del signer
    return True


class MeshAuthenticator:
    """Authenticator of clients, by certificate, ledger and view.

    `view` returns the newest view, `None` before the first. `not_served` returns the reason why this server
    does not serve a proxy (its driver has another server), else an empty text; the result is cached per
    revision of the view. `failed` returns the reason why a proxy with a known workload has no snapshot.
    `trusts` returns whether certificates signed by a CA are accepted now. `shown` records accepted
    certificates. `unknown_serials` looks up certificates in a ledger that several servers share.
    """

    def __init__(
        self,
        ledger: Ledger,
        view: Callable[[], View | None],
        clock: Callable[[], datetime],
        not_served: Callable[[ProxyName], str] = _no_reason,
        failed: Callable[[ProxyName], str] = _no_reason,
        unknown: Unknown | None = None,
        trusts: Callable[[str], bool] = _trust_all,
        shown: ShownCertificates | None = None,
        unknown_serials: UnknownSerials | None = None,
    ) -> None:
        self._ledger = ledger
        self._view = view
        self._clock = clock
        self._not_served = not_served
        self._failed = failed
        self._unknown = unknown
        self._trusts = trusts
        self._shown = shown or ShownCertificates()
        self._unknown_serials = unknown_serials
        self._certificates: WeakKeyDictionary[Peer, PeerCertificate] = WeakKeyDictionary()
        self._mesh: tuple[View | None, int] = (None, 0)
        self._undisputed: set[ProxyName] = set()  # valid for the revision in `_mesh`

    async def prepare(self, peer: Peer) -> None:
        """Look up a certificate that is unknown here, before a new client is authenticated.

        Raises AuthenticationUnavailable if the shared ledger cannot be asked now. A ledger that is not shared
        knows all certificates.
        """
        if self._unknown_serials is None or not peer.certificate:
            return
        try:
            shown = self._read(peer, peer.certificate)
        except PeerRefused:  # the authentication refuses the client, and logs the reason
            return
        await self._unknown_serials.look_up(shown, peer.address)

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the node key of the peer; raises like `admit`."""
        return NodeKey(str(self.admit(peer).name))

    def admit(self, peer: Peer) -> AdmittedPeer:
        """Return the identity of the peer and the entry in the ledger.

        The first use of a certificate is recorded in the ledger as a claim. Raises StreamRefused after
        logging the reason.
        """
        now = self._clock()
        if not peer.certificate:
            raise _logged_refusal(peer, Refusal.NO_CERTIFICATE, "the client did not show a certificate")
        try:
            shown = self._read(peer, peer.certificate)
        except PeerRefused as error:
            raise _logged_refusal(peer, error.reason, str(error)) from error
        try:
            admitted_peer = admitted(shown, self._ledger, now, self._trusts)
        except PeerRefused as error:
            if error.reason is RefusalReason.NOT_ISSUED and self._unknown is not None:
                self._unknown(shown, peer.certificate, peer.address, now)
            raise _logged_refusal(peer, error.reason, str(error)) from error
        except StateError as error:
            raise _logged_refusal(peer, Refusal.LEDGER, str(error)) from error
        # Before the claim: a certificate of a refused client must stay unclaimed.
        self._place(peer, admitted_peer.name)
        self._note(peer, admitted_peer, now)
        self._shown.note(admitted_peer)
        return admitted_peer

    def hold_reason(self, node_key: NodeKey) -> str:
        """Return the reason why an admitted proxy does not get a response.

        Empty if the proxy has a snapshot or soon will.
        """
        if (view := self._view()) is None:
            return HoldReason.NOT_READ
        name = ProxyName.parse(node_key)
        if holder_of(view, name) is None:
            return HoldReason.WORKLOAD
        return HoldReason.FAILED if self._failed(name) else ""

    def _place(self, peer: Peer, name: ProxyName) -> None:
        """Raise StreamRefused if the view contradicts a proxy's name, or another server serves the proxy."""
        view = self._view()
        # The revision changes with every edit of the view, so a cached result is never stale.
        mesh = (view, 0 if view is None else view.graph.revision)
        if mesh != self._mesh:
            self._mesh, self._undisputed = mesh, set()
        if name in self._undisputed:
            return
        if detail := contradiction(name, view):
            raise _logged_refusal(peer, Refusal.OTHER_WORKLOAD, f"{name}: {detail}")
        if detail := self._not_served(name):
            raise _logged_refusal(peer, Refusal.OTHER_DRIVER, f"{name}: {detail}")
        self._undisputed.add(name)

    def _read(self, peer: Peer, certificate: bytes) -> PeerCertificate:
        """Return the contents of a certificate, parsed once per peer."""
        # Peers are authenticated again and again, and their certificates never change.
        peer_certificate = self._certificates.get(peer)
        if peer_certificate is None:
            peer_certificate = self._certificates[peer] = read_peer(certificate)
        return peer_certificate

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Raise StreamRefused if a client's node id contradicts the certificate (see `names_itself`)."""
        if not names_itself(node_key, node.id):
            _log.warning("node refused", proxy=node_key, node=node.id[:200], reason=Refusal.OTHER_NODE)
            raise StreamRefused(Refusal.OTHER_NODE)

    def _note(self, peer: Peer, admitted_peer: AdmittedPeer, now: datetime) -> None:
        try:
            claimed = presence(admitted_peer, self._ledger, peer.address, now)
        except StateError as error:
            raise _logged_refusal(peer, Refusal.LEDGER, str(error)) from error
        if claimed:
            _log.info(
                "proxy certificate claimed",
                proxy=admitted_peer.entry.common_name,
                serial=admitted_peer.entry.serial,
            )


def _logged_refusal(peer: Peer, reason: enum.StrEnum, detail: str) -> StreamRefused:
    _log.warning("client refused", peer=peer.address, reason=reason.value, detail=detail)
    return StreamRefused(reason.value)
