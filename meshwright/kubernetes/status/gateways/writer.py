"""Writer of the status of Gateways, ListenerSets and GatewayClasses.

Only a changed status is written, in one write.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from catalog.relations.gateways.set_states import SetState
from catalog.relations.gateways.states import GatewayState
from meshwright.kubernetes.status.attempts import Attempts, Budget
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.gateways.conditions import (
    NO_RESOURCES,
    PARENT_NOT_PROGRAMMED,
    PENDING,
    class_status,
    gateway_status,
    listener_set_status,
)
from meshwright.kubernetes.status.gateways.own_status import (
    PROGRAMMED,
    ClassStatus,
    GatewayStatus,
    ListenerSetStatus,
    is_outdated,
)
from meshwright.kubernetes.status.known_statuses import KnownStatuses, uid_of
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.kubernetes.status.served_objects import Raw, ServedObjects
from meshwright.mesh.gateway.gateways import GatewayClass
from meshwright.mesh.kinds import GATEWAY, GATEWAY_CLASS, LISTENER_SET, Kind
from meshwright.mesh.objects import ObjectKey

A_MINUTE: Final = 600.0
AT_ONCE: Final = 50.0
"""Writes in a minute, and writes in one burst."""

FIRST: Final = 3.0
"""Seconds for which a change waits for the proxies, so that a quick rollout needs only one write."""

AGAIN: Final = 1.0
WITHOUT_PROXY: Final = 5.0
SERVED: Final = 30.0
"""Seconds until the proxies are looked at again: while they apply a change, without any, and otherwise."""

SETTLED: Final = 60.0
"""Seconds after the start in which proxies may still connect to this server again."""

_NOTHING: Final = Progress(0, 0)


S = TypeVar("S", bound=ListenerSetStatus)


@dataclass(frozen=True, slots=True)
class _Change(Generic[S]):
    """The status that an object shall have after the known one, and the progress at the proxies."""

    known: KnownStatuses[S]
    read: Callable[[Raw], S]
    wanted: Callable[[S], S]
    progress: Progress


class GatewayDecisions(Protocol):
    """Decisions about gateways, their ListenerSets and their classes."""

    def value(self, key: ObjectKey) -> GatewayState | SetState | None:
        """Return the state of a gateway or ListenerSet; None if it is not served here."""

    def served_class(self, name: str) -> GatewayClass | None:
        """Return a class whose gateways are served here; None for any other."""


class GatewayWriter:
    """Writer of the part of the status that Meshwright owns, with a cache of this part in the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        decisions: GatewayDecisions,
        progress: Callable[[ObjectKey], Progress | None],
        attempts: Attempts,
        began: float,
    ) -> None:
        self._cluster, self._decisions, self._progress = cluster, decisions, progress
        self._objects = ServedObjects(cluster, attempts)
        self._settled = began + SETTLED
        self._gateways: KnownStatuses[GatewayStatus] = KnownStatuses()
        self._sets: KnownStatuses[ListenerSetStatus] = KnownStatuses()
        self._classes: KnownStatuses[ClassStatus] = KnownStatuses()
        self._held: dict[ObjectKey, float] = {}
        self._budget = Budget(A_MINUTE, AT_ONCE)

    async def remember(self, kind: Kind, namespace: str | None) -> None:
        """Read the present status of a kind's objects from the cluster. Raises WritePostponed."""
        for key, raw in await self._objects.listed(kind, namespace):
            if kind == GATEWAY_CLASS:
                self._classes.keep(key, uid_of(raw), ClassStatus.read(raw))
            elif kind == LISTENER_SET:
                self._sets.keep(key, uid_of(raw), ListenerSetStatus.read(raw))
            else:
                self._gateways.keep(key, uid_of(raw), GatewayStatus.read(raw))

    async def report(self, key: ObjectKey, now: float) -> float | None:
        """Write the status of a gateway, ListenerSet or class if it changed. Raises WritePostponed.

        Returns the monotonic time of the next report; None if the next report follows the next change.
        """
        generation = self._cluster.standing.generation(key)
        if key.kind == GATEWAY_CLASS:
            found = self._decisions.served_class(key.name)
            if generation is None or found is None:
                self._classes.forget(key)
            else:
                await self._report_class(key, class_status(found, generation), generation, now)
            return None
        state = self._decisions.value(key)
        if generation is None or state is None:
            self._gateways.forget(key)
            self._sets.forget(key)
            self._held.pop(key, None)
            return None
        if isinstance(state, SetState):
            return await self._report_set(key, state, generation, now)
        return await self._report_gateway(key, state, generation, now)

    async def _report_class(self, key: ObjectKey, wanted: ClassStatus, generation: int, now: float) -> None:
        uid = self._cluster.standing.uid(key)
        known = self._classes.get(key, uid)
        if known is not None and not wanted.differs(known):
            return

        def change(raw: Raw) -> Raw | None:
            before = ClassStatus.read(raw)
            is_newer = uid_of(raw) != uid or is_outdated(raw, before.conditions, generation)
            return None if is_newer else wanted.merged(raw, self._cluster.clock())

        self._budget.take(now)
        raw = await self._objects.change_status(key, change, now)
        if raw is not None:
            self._classes.keep(key, uid_of(raw), ClassStatus.read(raw))

    async def _report_gateway(
        self, key: ObjectKey, state: GatewayState, generation: int, now: float
    ) -> float:
        progress, settled = self._progress(key) or _NOTHING, now >= self._settled

        def wanted(before: GatewayStatus) -> GatewayStatus:
            return gateway_status(state, progress, generation, before, settled=settled)

        change = _Change(self._gateways, GatewayStatus.read, wanted, progress)
        return await self._report_listeners(key, change, generation, now)

    async def _report_set(self, key: ObjectKey, state: SetState, generation: int, now: float) -> float:
        gateway = ObjectKey.from_name(GATEWAY, state.gateway.gateway)
        progress, settled = self._progress(gateway) or _NOTHING, now >= self._settled

        def wanted(before: ListenerSetStatus) -> ListenerSetStatus:
            return listener_set_status(state, progress, generation, before, settled=settled)

        change = _Change(self._sets, ListenerSetStatus.read, wanted, progress)
        return await self._report_listeners(key, change, generation, now)

    async def _report_listeners(self, key: ObjectKey, new: _Change[S], generation: int, now: float) -> float:
        uid = self._cluster.standing.uid(key)

        def change(raw: Raw) -> Raw | None:
            before = new.read(raw)
            if uid_of(raw) != uid or is_outdated(raw, before.conditions, generation):
                return None  # the watch will report the newer object, or a newer server has reported it
            return new.wanted(before).merged(raw, self._cluster.clock())

        # Without a known status the object itself must be read first.
        known = new.known.get(key, uid)
        if known is not None and not (unchanged := new.wanted(known)).differs(known):
            self._held.pop(key, None)
            return now + _pause(unchanged)
        # Proxies answer within moments, so a pending change is not written at once: most need only one write.
        is_pending = new.progress.total and not new.progress.is_done
        if is_pending and now < (until := self._held.setdefault(key, now + FIRST)):
            return min(until, now + AGAIN)
        self._budget.take(now)
        raw = await self._objects.change_status(key, change, now)
        self._held.pop(key, None)
        if raw is None:
            return now + SERVED
        status = new.read(raw)
        new.known.keep(key, uid_of(raw), status)
        return now + _pause(status)


def _pause(status: ListenerSetStatus) -> float:
    reasons = {condition.reason for condition in status.conditions if condition.type == PROGRAMMED}
    if PENDING in reasons:
        return AGAIN
    return WITHOUT_PROXY if reasons & {NO_RESOURCES, PARENT_NOT_PROGRAMMED} else SERVED
