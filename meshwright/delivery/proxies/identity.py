"""Who a client of the ADS server is: the mesh's answer to the server's question, from its certificate alone.

A node key is a proxy's common name, `<uuid>.<service>.<namespace>`. A proxy whose workload is not known
(yet) is let in: nothing is published for it, so its stream is held silent until there is.
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
from meshwright.mesh.identity import ProxyName
from xds.cache import NodeKey
from xds.hooks import Peer, StreamRefused
from xds.protocol.wire import Node

_log = structlog.get_logger("delivery.proxies.identity")


class Refusal(enum.StrEnum):
    """Why a client is refused, besides what its certificate says of itself (certs.errors.RefusalReason)."""

    NO_CERTIFICATE = "no_certificate"
    OTHER_WORKLOAD = "other_workload"
    OTHER_NODE = "other_node"
    OTHER_DRIVER = "other_driver"
    LEDGER = "ledger_unavailable"


class HoldReason(enum.StrEnum):
    """Why a proxy that was let in is held without an answer; proxies are told."""

    WORKLOAD = "workload-unknown"
    FAILED = "translation-failed"
    NOT_READ = "sources-not-read"


def names_itself(name: str, node_id: str) -> bool:
    """Say whether a client whose certificate names `name` may call itself `node_id`.

    Accepted are the common name whole, which our bootstraps write, and its UUID alone. An empty id is
    refused: whoever reads logs could not tell such clients apart.
    """
    return node_id in (name, name.partition(".")[0])


def contradiction(name: ProxyName, view: View | None) -> str:
    """Return how the workload with this UUID in its namespace contradicts a name; empty if it does not.

    What another namespace claims is no contradiction: nobody there has a say in whose proxy is let in here.
    """
    workload = claimant_of(view, name.sidecar) if view is not None else None
    if workload is None or workload.proxy_name == name:
        return ""
    return f"workload {workload.key} has this UUID, and its proxy is {workload.proxy_name}"


Unknown = Callable[[PeerCertificate, bytes, str, datetime], None]
"""Told of a proxy's certificate, valid and below our root, that is not in the ledger: what it says, its PEM,
and from which address it came."""


def _nothing(name: ProxyName) -> str:
    """Say nothing against any proxy."""
    del name
    return ""


def _everybody(signer: str) -> bool:
    """Trust every signer."""
    del signer
    return True


class MeshAuthenticator:
    """Answers by certificate, ledger and view; `view` returns the newest one, None before the first.

    `not_served` says why a proxy is not this server's to serve, if it is not, by the view: while that is what
    it was, it is not asked again. `failed` says why there is nothing for one of a workload that is known, if
    it could not be made. `trusts` says whether what a root has signed is good now. `shown` is told of each
    that was let in.
    """

    def __init__(
        self,
        ledger: Ledger,
        view: Callable[[], View | None],
        clock: Callable[[], datetime],
        not_served: Callable[[ProxyName], str] = _nothing,
        failed: Callable[[ProxyName], str] = _nothing,
        unknown: Unknown | None = None,
        trusts: Callable[[str], bool] = _everybody,
        shown: ShownCertificates | None = None,
    ) -> None:
        self._ledger = ledger
        self._view = view
        self._clock = clock
        self._not_served = not_served
        self._failed = failed
        self._unknown = unknown
        self._trusts = trusts
        self._shown = shown or ShownCertificates()
        self._certificates: WeakKeyDictionary[Peer, PeerCertificate] = WeakKeyDictionary()
        self._mesh: tuple[View | None, int] = (None, 0)
        self._undisputed: set[ProxyName] = set()  # in that state of the mesh

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return whose configuration the peer gets; as `admit`."""
        return NodeKey(str(self.admit(peer).name))

    def admit(self, peer: Peer) -> AdmittedPeer:
        """Return who the peer is, and what the ledger has of it.

        Raise StreamRefused, with the reason in the log.

        The first success claims the certificate in the ledger.
        """
        now = self._clock()
        if not peer.certificate:
            raise _refused(peer, Refusal.NO_CERTIFICATE, "the client showed no certificate")
        try:
            shown = self._read(peer, peer.certificate)
        except PeerRefused as error:
            raise _refused(peer, error.reason, str(error)) from error
        try:
            found = admitted(shown, self._ledger, now, self._trusts)
        except PeerRefused as error:
            if error.reason is RefusalReason.NOT_ISSUED and self._unknown is not None:
                self._unknown(shown, peer.certificate, peer.address, now)
            raise _refused(peer, error.reason, str(error)) from error
        except StateError as error:
            raise _refused(peer, Refusal.LEDGER, str(error)) from error
        self._place(peer, found.name)
        self._note(peer, found, now)
        self._shown.note(found)
        return found

    def held(self, node_key: NodeKey) -> str:
        """Return why there is nothing for a proxy that was let in; nothing if there is, or soon will be."""
        if (view := self._view()) is None:
            return HoldReason.NOT_READ
        name = ProxyName.parse(node_key)
        if holder_of(view, name) is None:
            return HoldReason.WORKLOAD
        return HoldReason.FAILED if self._failed(name) else ""

    def _place(self, peer: Peer, name: ProxyName) -> None:
        """Raise StreamRefused where the mesh, as it is now, has something against a proxy."""
        view = self._view()
        mesh = (view, 0 if view is None else view.graph.revision)
        if mesh != self._mesh:
            self._mesh, self._undisputed = mesh, set()
        if name in self._undisputed:
            return
        if detail := contradiction(name, view):
            raise _refused(peer, Refusal.OTHER_WORKLOAD, f"{name}: {detail}")
        if detail := self._not_served(name):
            raise _refused(peer, Refusal.OTHER_DRIVER, f"{name}: {detail}")
        self._undisputed.add(name)

    def _read(self, peer: Peer, certificate: bytes) -> PeerCertificate:
        """Return what a certificate says: that is the same whenever it is asked again who somebody is."""
        found = self._certificates.get(peer)
        if found is None:
            found = self._certificates[peer] = read_peer(certificate)
        return found

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Raise StreamRefused if a client calls itself otherwise than its certificate does.

        See names_itself.
        """
        if not names_itself(node_key, node.id):
            _log.warning("node refused", proxy=node_key, node=node.id[:200], reason=Refusal.OTHER_NODE)
            raise StreamRefused(Refusal.OTHER_NODE)

    def _note(self, peer: Peer, found: AdmittedPeer, now: datetime) -> None:
        try:
            claimed = presence(found, self._ledger, peer.address, now)
        except StateError as error:
            raise _refused(peer, Refusal.LEDGER, str(error)) from error
        if claimed:
            _log.info("proxy certificate claimed", proxy=found.entry.common_name, serial=found.entry.serial)


def _refused(peer: Peer, reason: enum.StrEnum, detail: str) -> StreamRefused:
    _log.warning("client refused", peer=peer.address, reason=reason.value, detail=detail)
    return StreamRefused(reason.value)
