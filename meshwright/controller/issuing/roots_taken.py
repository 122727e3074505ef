"""Wait until every connected sidecar has acknowledged a new issuer's CA certificates.

Only then may certificates signed by the new issuer replace the old ones, because peers could not verify them
before.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Final, Protocol

import structlog

from certs.errors import StateError
from certs.keys.bundle import TrustBundle
from meshwright.delivery.timing.time_slices import in_slices
from meshwright.sidecars.contract.contexts import AcknowledgedSecrets

LOOK_SECONDS: Final = 2.0
"""Seconds between two checks while a sidecar lacks the CA certificates."""

_NAMED: Final = 10

_log = structlog.get_logger("controller.hearing")


class RootsWaiter(Protocol):
    """An issuer with CA certificates to be acknowledged by all sidecars before their use."""

    def awaited(self, now: datetime) -> TrustBundle | None:
        """Return the CA certificates to be acknowledged by all sidecars, or `None`."""

    def have_taken(self, roots: TrustBundle) -> None:
        """Record the acknowledgement of these CA certificates by all sidecars. Raises StateError."""


class OtherServers(Protocol):
    """The other servers of the mesh, which have sidecars too."""

    async def lacking(self, roots: str, ours: Sequence[str]) -> tuple[str, ...] | None:
        """Tell the other servers who of ours lacks the roots with this digest; return who of all does.

        Return None if another server decides. Raises StateError.
        """

    async def done(self) -> None:
        """Forget what was told, because no roots are awaited. Raises StateError."""


async def hearing(
    issuer: RootsWaiter,
    taken: Callable[[], Iterator[AcknowledgedSecrets]],
    clock: Callable[[], datetime],
    others: OtherServers | None = None,
) -> None:
    """Inform the issuer once all connected sidecars have acknowledged the CA certificates, until cancelled.

    `taken` yields the acknowledged secrets of sidecars that are connected here. A server without any says
    nothing about those of `others`, so all servers report to the leader. Missing sidecars and errors are
    logged once. For example, after a change of Vault's CA the old certificates stay in use until the last
    sidecar knows the new CA.
    """
    text = ""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        roots = issuer.awaited(clock())
        try:
            if roots is None:
                text = ""
                if others is not None:
                    await others.done()
                continue
            # In slices: at 5000 streams one pass held the event loop for 29 ms.
            lacking: Sequence[str] | None = without(roots, await in_slices(taken()))
            if others is not None:
                lacking = await others.lacking(roots.digest, lacking or ())
        except StateError as error:
            if str(error) != text:
                _log.warning("acknowledgements of sidecars cannot be exchanged", reason=str(error))
            text = str(error)
            continue
        if lacking is None:
            continue
        if lacking:
            if not text:
                _log.info(
                    "sidecars have not acknowledged the issuer's roots",
                    count=len(lacking),
                    first=lacking[:_NAMED],
                )
            text = "waits"
            continue
        try:
            await asyncio.to_thread(issuer.have_taken, roots)
        except StateError as error:
            if str(error) != text:
                _log.warning("acknowledgement of the issuer's roots cannot be saved", reason=str(error))
            text = str(error)


def without(roots: TrustBundle, taken: Collection[AcknowledgedSecrets]) -> list[str]:
    """Return the names of proxies without an acknowledgement of these CA certificates, sorted."""

    # Thousands of proxies share a few bundles, so each bundle is parsed once.
    @cache
    def holds(bundle_pem: bytes) -> bool:
        return TrustBundle.from_pems([bundle_pem]).holds(roots)

    return sorted(str(secrets.node) for secrets in taken if not holds(secrets.trust_bundle))
