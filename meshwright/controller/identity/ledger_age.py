"""Signs of a ledger that is older than its CA: proxies show certificates that it does not know.

The CA gives no proxy certificate away before it stands in the ledger. A certificate below the CA that is not
there is therefore one that an older ledger has forgotten, unless another server signs with the same CA.
"""

from collections import OrderedDict
from datetime import datetime
from typing import Final

import structlog

from certs.keys.material import PeerCertificate
from meshwright.serving.repeated_lines import RepeatedLines

REMEMBERED: Final = 1000
DO: Final = (
    "if the ledger was replaced by an older one, put the newest there, and revoke again whom you do not "
    "want; docs/operations.md says how"
)

_log = structlog.get_logger("controller.older_ledger")


class OlderLedger:
    """Certificates of this CA that the ledger does not know, and that were refused; for one event loop."""

    def __init__(self) -> None:
        self._serials: OrderedDict[str, None] = OrderedDict()
        self._lines = RepeatedLines(_again)

    def show(self, shown: PeerCertificate, pem: bytes, address: str, now: datetime) -> None:
        """Note a certificate that was refused."""
        del pem, now
        self._serials[shown.serial] = None
        if len(self._serials) > REMEMBERED:
            self._serials.popitem(last=False)
        if self._lines.first("unknown"):
            issued = shown.not_before.isoformat()
            said = {"proxy": shown.common_name, "serial": shown.serial, "issued": issued, "peer": address}
            _log.error("the ledger does not know a certificate of its CA", **said, do=DO)

    def remarks(self) -> tuple[str, ...]:
        """Return what is to be said with readiness."""
        many = len(self._serials)
        if not many:
            return ()
        known = f"{many} or more" if many >= REMEMBERED else str(many)
        return (f"the ledger does not know {known} of the CA's certificates that proxies show: {DO}",)


def _again(_: str, count: int) -> None:
    _log.error("the ledger does not know certificates of its CA", count=count, do=DO)
