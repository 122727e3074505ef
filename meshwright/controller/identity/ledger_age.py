"""Detection of a ledger older than the CA: proxies show certificates missing in the ledger.

The CA enters each proxy certificate in the ledger before giving it away. A certificate of the CA without an
entry was therefore forgotten by an older ledger, unless another server signs with the same CA.
"""

from collections import OrderedDict
from datetime import datetime
from typing import Final

import structlog

from certs.keys.material import PeerCertificate
from meshwright.serving.repeated_lines import RepeatedLines

REMEMBERED: Final = 1000
DO: Final = (
    "if an older copy replaced the ledger, restore the newest one and revoke unwanted proxies again "
    "(see docs/operate/operations.md)"
)

_log = structlog.get_logger("controller.older_ledger")


class OlderLedger:
    """Refused proxy certificates of this CA without an entry in the ledger; use on one event loop."""

    def __init__(self) -> None:
        self._serials: OrderedDict[str, None] = OrderedDict()
        self._lines = RepeatedLines(_log_again)

    def show(self, shown: PeerCertificate, pem: bytes, address: str, now: datetime) -> None:
        """Record a refused proxy certificate without an entry in the ledger, and log an error."""
        del pem, now
        self._serials[shown.serial] = None
        # Strangers cannot fill this: only certificates signed by the CA are recorded.
        if len(self._serials) > REMEMBERED:
            self._serials.popitem(last=False)
        if self._lines.first("unknown"):
            issued = shown.not_before.isoformat()
            fields = {"proxy": shown.common_name, "serial": shown.serial, "issued": issued, "peer": address}
            _log.error("ledger lacks a certificate of its CA", **fields, do=DO)

    def remarks(self) -> tuple[str, ...]:
        """Return the remark for the readiness page if the ledger lacks certificates, else an empty tuple."""
        many = len(self._serials)
        if not many:
            return ()
        known = f"{many} or more" if many >= REMEMBERED else str(many)
        return (f"the ledger lacks {known} of the certificates of its CA that proxies present: {DO}",)


def _log_again(_: str, count: int) -> None:
    _log.error("ledger lacks certificates of its CA", count=count, do=DO)
