"""The cluster of the reported objects, and the served versions of their kinds.

CustomResourceDefinitions may be added or removed at any time, so the cache of served kinds expires.
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
"""Seconds after which discovery is repeated for a missing kind."""


class Kinds:
    """Cache of the kinds that the API server serves, filled when a kind is looked up."""

    def __init__(
        self,
        served: Callable[[], Awaitable[ServedResources]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask, self._now = served, monotonic
        self._served = ServedResources()
        self._at = float("-inf")

    async def resource(self, kind: Kind) -> Resource | None:
        """Return the kind in its newest served version, or None if the kind is not served.

        Raises KubeError.
        """
        resources, age = self._served.versions_of_kind(kind.group, kind.name), self._now() - self._at
        if age > FRESH or (not resources and age > AGAIN):
            self._served, self._at = await self._ask(), self._now()
            resources = self._served.versions_of_kind(kind.group, kind.name)
        return resources[0] if resources else None


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster with its API, the status table of its objects, the clock, and the reporter of Events.

    `resource` returns the served resource of a kind, or None.
    """

    api: Api
    resource: Callable[[Kind], Awaitable[Resource | None]]
    standing: ObjectStatusTable
    clock: Callable[[], datetime]
    reporter: EventReporter
