"""The cluster whose objects are reported on."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from kube.api import Api
from kube.resource import Resource
from mesh.kinds import Kind
from reporting.events import Who
from reporting.standing import Standing


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
