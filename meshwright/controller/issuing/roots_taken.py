"""Whether all sidecars have taken the roots of a new issuer: then what it signs may take others' place."""

import asyncio
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from functools import cache
from typing import Final, Protocol

import structlog

from certs.errors import StateError
from certs.keys.bundle import TrustBundle
from meshwright.delivery.timing.time_slices import in_slices
from meshwright.sidecars.contract.contexts import AcknowledgedSecrets

LOOK_SECONDS: Final = 2.0
"""So often it is looked who has taken them, while anybody has not."""

_NAMED: Final = 10

_log = structlog.get_logger("controller.hearing")


class RootsWaiter(Protocol):
    """Who waits for its roots to be taken."""

    def awaited(self, now: datetime) -> TrustBundle | None:
        """Return the roots, None where nothing is waited for."""

    def have_taken(self, roots: TrustBundle) -> None:
        """Note that all have taken them. Raises StateError."""


async def hearing(
    issuer: RootsWaiter, taken: Callable[[], Iterator[AcknowledgedSecrets]], clock: Callable[[], datetime]
) -> None:
    """Tell the issuer once everybody who is connected has taken its roots, until cancelled.

    `taken` says what they have. Who has not, and what fails, is said once.
    """
    said = ""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        if (roots := issuer.awaited(clock())) is None:
            said = ""
            continue
        lacking = without(roots, await in_slices(taken()))
        if lacking:
            if not said:
                _log.info(
                    "sidecars have not taken the roots of the issuer",
                    count=len(lacking),
                    first=lacking[:_NAMED],
                )
            said = "waits"
            continue
        try:
            await asyncio.to_thread(issuer.have_taken, roots)
        except StateError as error:
            if str(error) != said:
                _log.warning("that the roots of the issuer are taken cannot be noted", reason=str(error))
            said = str(error)


def without(roots: TrustBundle, taken: Collection[AcknowledgedSecrets]) -> list[str]:
    """Return who has not taken these roots, by name."""

    @cache
    def holds(bundle_pem: bytes) -> bool:
        return TrustBundle.of([bundle_pem]).holds(roots)

    return sorted(str(each.node) for each in taken if not holds(each.trust_bundle))
