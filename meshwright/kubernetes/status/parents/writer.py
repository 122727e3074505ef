"""Writer of `status.parents`. Only changed entries are written, by read, modify and write."""

from collections.abc import Callable
from typing import Final, Protocol

from catalog.relations.verdicts import Attachment
from meshwright.kubernetes.status.attempts import Attempts, Budget
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.known_statuses import KnownStatuses, uid_of
from meshwright.kubernetes.status.parents.entries import (
    ParentEntries,
    differ,
    is_outdated,
    merged_entries,
    own_entries,
    refused_entries,
    wanted_entries,
)
from meshwright.kubernetes.status.served_objects import Raw, ServedObjects
from meshwright.kubernetes.status.statements import Aspect, aspect, message
from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Severity


class RouteDecisions(Protocol):
    """Decisions about routes and their parents."""

    def decided(self, key: ObjectKey) -> Attachment | None:
        """Return the verdicts about a route; None if the route is not in force."""

    def serves(self, parent: ObjectKey) -> bool:
        """Return whether a Gateway, or the Gateway of a ListenerSet, is served here."""


A_MINUTE: Final = 1200.0
AT_ONCE: Final = 100.0
"""Writes in a minute, and writes in one burst: 1,000 new routes get their status within a minute."""


class ParentWriter:
    """Writer of the entries of Meshwright, with a cache of those in the cluster."""

    def __init__(self, cluster: Cluster, decisions: RouteDecisions, attempts: Attempts) -> None:
        self._cluster, self._decisions = cluster, decisions
        self._objects = ServedObjects(cluster, attempts)
        self._known: KnownStatuses[ParentEntries] = KnownStatuses()
        self._refused: KnownStatuses[tuple[int, str]] = KnownStatuses()
        self._budget = Budget(A_MINUTE, AT_ONCE)

    async def remember(self, kind: Kind, namespace: str | None) -> None:
        """Read the present entries of a kind's objects from the cluster. Raises WritePostponed."""
        for key, raw in await self._objects.listed(kind, namespace):
            self._known.keep(key, uid_of(raw), own_entries(raw))

    async def report(self, key: ObjectKey, now: float) -> float | None:
        """Write the entries of a route if they changed. Raises WritePostponed.

        Returns None: the route is reported again after its next change.
        """
        generation = self._cluster.standing.generation(key)
        if generation is None:
            self._known.forget(key)
            self._refused.forget(key)
            return None
        decided = self._decisions.decided(key)
        if decided is None:
            await self._refuse(key, generation, now)
            return None
        self._refused.forget(key)
        problems = self._cluster.standing.problems(key)
        rejected = [problem for problem in problems if aspect(problem) is Aspect.PROGRAMMED]
        wanted = wanted_entries(decided, generation, rejected)
        if differ(wanted, self._known.get(key, self._cluster.standing.uid(key)) or ()):
            await self._change(key, generation, lambda _: wanted, now)
        return None

    async def _refuse(self, key: ObjectKey, generation: int, now: float) -> None:
        """Report that a route is not in force at any parent, because its manifest is refused."""
        problems = self._cluster.standing.problems(key)
        errors = [problem for problem in problems if problem.severity is Severity.ERROR]
        reason = generation, message(errors)
        uid = self._cluster.standing.uid(key)
        if errors and self._refused.get(key, uid) != reason:

            def refused(raw: Raw) -> ParentEntries:
                return refused_entries(raw, reason[1], generation, self._decisions.serves)

            await self._change(key, generation, refused, now)
            self._refused.keep(key, uid, reason)

    async def _change(
        self, key: ObjectKey, generation: int, wanted: Callable[[Raw], ParentEntries], now: float
    ) -> None:
        uid = self._cluster.standing.uid(key)

        def change(raw: Raw) -> Raw | None:
            if uid_of(raw) != uid or is_outdated(raw, generation):
                return None  # the watch will report the newer object, or a newer server has reported it
            status, entries = raw.get("status") or {}, merged_entries(raw, wanted(raw), self._cluster.clock())
            return None if entries == (status.get("parents") or []) else {**status, "parents": entries}

        self._budget.take(now)
        raw = await self._objects.change_status(key, change, now)
        if raw is None:
            self._known.forget(key)
        else:
            self._known.keep(key, uid_of(raw), own_entries(raw))
