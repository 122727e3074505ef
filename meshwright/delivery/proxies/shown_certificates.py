"""Which proxy certificates have been shown to this server of late: whoever shows one has claimed it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from certs.peer import AdmittedPeer
from xds.cache import NodeKey


@dataclass(frozen=True, slots=True)
class ShownCertificate:
    """A proxy certificate that its proxy has shown, and was let in with."""

    issued_at: datetime
    not_after: datetime


class ShownCertificates:
    """Remembers the newest that each proxy has shown, until that is taken.

    Noted on the event loop, taken in one other thread: what is noted while it is taken may be missing.
    """

    def __init__(self) -> None:
        self._newest: dict[NodeKey, ShownCertificate] = {}

    def note(self, found: AdmittedPeer) -> None:
        """Note what a proxy has been let in with, which may be older than what it has shown elsewhere."""
        node, entry, newest = NodeKey(str(found.name)), found.entry, self._newest
        before = newest.get(node)
        if before is None or before.issued_at <= entry.issued_at:
            newest[node] = ShownCertificate(entry.issued_at, entry.not_after)

    def take(self) -> Mapping[NodeKey, ShownCertificate]:
        """Return what has been noted since the last time; not to be walked through, it may still change."""
        taken, self._newest = self._newest, {}
        return taken
