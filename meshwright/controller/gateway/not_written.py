"""Problem of a gateway certificate that cannot be written to a Secret."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

from catalog.store.objects import ELSEWHERE, origin_of
from catalog.store.view import View, config_in_force
from meshwright.mesh.problems.problem import Problem, Problems, Severity

NOT_WRITTEN: Final = "gateway-certificate-not-written"

PACE_SECONDS: Final = 1.0
"""Seconds between two comparisons with the MeshConfig, which work without a network."""

_NO_CLUSTER: Final = (
    "the certificate is stored in a Secret of a cluster, but this server does not use a cluster "
    "(setting kubernetes)"
)


class NoGatewaySecret:
    """Reporter of the problem on a server without a cluster, which cannot write a gateway's Secret."""

    def __init__(self, view: Callable[[], View | None], report: Callable[[Problems], None]) -> None:
        self._view, self._report = view, report

    @property
    def end(self) -> datetime | None:
        """Return `None`: a certificate is never written."""
        return None

    async def run(self) -> None:
        """Report the problem while a MeshConfig names a gateway, until cancelled."""
        while True:
            if (view := self._view()) is not None:
                self._report((unwritten(view, _NO_CLUSTER),) if view.config.ingress_gateway else ())
            await asyncio.sleep(PACE_SECONDS)


def unwritten(view: View, message: str) -> Problem:
    """Return the problem of an unwritten gateway certificate, attached to the active MeshConfig."""
    about = config_in_force(view)
    return Problem(
        code=NOT_WRITTEN,
        severity=Severity.ERROR,
        origin=ELSEWHERE if about is None else origin_of(view, about),
        key=about,
        field="spec.certificate.ingressGateway.secret",
        expected=message,
    )
