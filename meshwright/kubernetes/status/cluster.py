"""The cluster whose objects are reported on, and how it serves their kinds.

Definitions of kinds come and go, so discovery is asked anew from time to time.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from meshwright.kube.api import Api
from meshwright.kube.discovery import ServedResources
from meshwright.kube.resource import Resource
from meshwright.kubernetes.status.event import EventReporter
from meshwright.kubernetes.status.object_status import ObjectStatusTable
from meshwright.mesh.kinds import Kind

FRESH: Final = 60.0
"""Seconds for which an answer counts."""


AGAIN: Final = 10.0
"""Seconds after which it is asked again where a kind is not served."""


class Kinds:
    """Cache of the kinds that the cluster serves, filled when a kind is looked up."""

    def __init__(
        self,
        served: Callable[[], Awaitable[ServedResources]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask, self._now = served, monotonic
        self._served = ServedResources()
        self._at = float("-inf")

    async def resource(self, kind: Kind) -> Resource | None:
        """Return a kind in the newest version that is served, None where it is not. Raises KubeError."""
        found, age = self._served.of(kind.group, kind.name), self._now() - self._at
        if age > FRESH or (not found and age > AGAIN):
            self._served, self._at = await self._ask(), self._now()
            found = self._served.of(kind.group, kind.name)
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Cluster:
    """How it is written to, what is known of its objects, by which clock, and who writes.

    `resource` returns how a kind is served now, None where it is not.
    """

    api: Api
    resource: Callable[[Kind], Awaitable[Resource | None]]
    standing: ObjectStatusTable
    clock: Callable[[], datetime]
    who: EventReporter
