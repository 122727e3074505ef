"""Proxy certificates shown to this server since the last check of certificate expiry."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from certs.peer import AdmittedPeer
from xds.cache import NodeKey


@dataclass(frozen=True, slots=True)
class ShownCertificate:
    """Validity of a proxy certificate accepted by this server."""

    issued_at: datetime
    not_after: datetime


class ShownCertificates:
    """The newest certificate shown by each proxy, until `take`.

    `note` is called on the event loop and `take` in one other thread; a certificate noted during `take` may
    be lost.
    """

    def __init__(self) -> None:
        self._newest: dict[NodeKey, ShownCertificate] = {}

    def note(self, admitted_peer: AdmittedPeer) -> None:
        """Record an accepted certificate, which may be older than one shown to another server."""
        node, entry, newest = NodeKey(str(admitted_peer.name)), admitted_peer.entry, self._newest
        before = newest.get(node)
        if before is None or before.issued_at <= entry.issued_at:
            newest[node] = ShownCertificate(entry.issued_at, entry.not_after)

    def take(self) -> Mapping[NodeKey, ShownCertificate]:
        """Return the certificates recorded since the last call.

        Only look up keys in the result and do not iterate, because `note` may still add to it.
        """
        taken, self._newest = self._newest, {}
        return taken
