"""How kinds are served now, asked anew from time to time: definitions come and go."""

import time
from collections.abc import Awaitable, Callable
from typing import Final

from meshwright.kube.discovery import Served
from meshwright.kube.resource import Resource
from meshwright.mesh.kinds import Kind

FRESH: Final = 60.0
"""Seconds for which an answer counts."""

AGAIN: Final = 10.0
"""Seconds after which it is asked again where a kind is not served."""


class Kinds:
    """Asks what is served, when somebody wants to know."""

    def __init__(
        self, served: Callable[[], Awaitable[Served]], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask, self._now = served, monotonic
        self._served = Served()
        self._at = float("-inf")

    async def resource(self, kind: Kind) -> Resource | None:
        """Return a kind in the newest version that is served, None where it is not. Raises KubeError."""
        found, age = self._served.of(kind.group, kind.name), self._now() - self._at
        if age > FRESH or (not found and age > AGAIN):
            self._served, self._at = await self._ask(), self._now()
            found = self._served.of(kind.group, kind.name)
        return found[0] if found else None
