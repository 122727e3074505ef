"""The cluster whose objects are reported on."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from meshwright.kube.api import Api
from meshwright.kube.resource import Resource
from meshwright.kubernetes.status.event import Who
from meshwright.kubernetes.status.object_status import Standing
from meshwright.mesh.kinds import Kind


@dataclass(frozen=True, slots=True)
class Cluster:
    """How it is written to, what is known of its objects, by which clock, and who writes.

    `resource` returns how a kind is served now, None where it is not.
    """

    api: Api
    resource: Callable[[Kind], Awaitable[Resource | None]]
    standing: Standing
    clock: Callable[[], datetime]
    who: Who
