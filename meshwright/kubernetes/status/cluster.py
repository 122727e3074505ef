"""The cluster of the reported objects, and the versions in which it serves their kinds.

CustomResourceDefinitions come and go, so the cache of served kinds expires.
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
"""Seconds for which a discovery answer is used."""


AGAIN: Final = 10.0
"""Seconds after which discovery is repeated for a kind that is not served."""


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
        """Return the kind in its newest served version; None if it is not served. Raises KubeError."""
        found, age = self._served.of(kind.group, kind.name), self._now() - self._at
        if age > FRESH or (not found and age > AGAIN):
            self._served, self._at = await self._ask(), self._now()
            found = self._served.of(kind.group, kind.name)
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster: its API, the status table of its objects, the clock, and the reporter of Events.

    `resource` returns the resource that serves a kind now; None if the kind is not served.
    """

    api: Api
    resource: Callable[[Kind], Awaitable[Resource | None]]
    standing: ObjectStatusTable
    clock: Callable[[], datetime]
    who: EventReporter
