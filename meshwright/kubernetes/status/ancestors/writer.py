"""Writer of `status.ancestors`. Only changed entries are written, by read, modify and write."""

from typing import Final, Protocol

from catalog.relations.backend_tls.states import PolicyState
from meshwright.kubernetes.status.ancestors.entries import (
    AncestorEntries,
    differ,
    is_outdated,
    merged_ancestors,
    own_ancestors,
    wanted_ancestors,
)
from meshwright.kubernetes.status.attempts import Attempts, Budget
from meshwright.kubernetes.status.cluster import Cluster
from meshwright.kubernetes.status.known_statuses import KnownStatuses, uid_of
from meshwright.kubernetes.status.served_objects import Raw, ServedObjects
from meshwright.kubernetes.status.statements import Aspect, aspect
from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey

A_MINUTE: Final = 600.0
AT_ONCE: Final = 100.0
"""Writes in a minute, and writes in one burst."""


class PolicyDecisions(Protocol):
    """Decisions about BackendTLSPolicies."""

    def state(self, key: ObjectKey) -> PolicyState | None:
        """Return the state of a policy; None if the policy is not in the mesh."""


class AncestorWriter:
    """Writer of the entries of Meshwright, with a cache of those in the cluster."""

    def __init__(self, cluster: Cluster, decisions: PolicyDecisions, attempts: Attempts) -> None:
        self._cluster, self._decisions = cluster, decisions
        self._objects = ServedObjects(cluster, attempts)
        self._known: KnownStatuses[AncestorEntries] = KnownStatuses()
        self._budget = Budget(A_MINUTE, AT_ONCE)

    async def remember(self, kind: Kind, namespace: str | None) -> None:
        """Read the present entries of a kind's objects from the cluster. Raises WritePostponed."""
        for key, raw in await self._objects.listed(kind, namespace):
            self._known.keep(key, uid_of(raw), own_ancestors(raw))

    async def report(self, key: ObjectKey, now: float) -> float | None:
        """Write the entries of a policy if they changed. Raises WritePostponed.

        Returns None: the policy is reported again after its next change.
        """
        generation, state = self._cluster.standing.generation(key), self._decisions.state(key)
        if generation is None or state is None:
            self._known.forget(key)
            return None
        problems = self._cluster.standing.problems(key)
        rejected = [problem for problem in problems if aspect(problem) is Aspect.PROGRAMMED]
        wanted = wanted_ancestors(state, generation, rejected)
        if differ(wanted, self._known.get(key, self._cluster.standing.uid(key)) or ()):
            await self._change(key, generation, wanted, now)
        return None

    async def _change(self, key: ObjectKey, generation: int, wanted: AncestorEntries, now: float) -> None:
        uid = self._cluster.standing.uid(key)

        def change(raw: Raw) -> Raw | None:
            if uid_of(raw) != uid or is_outdated(raw, generation):
                return None  # the watch will report the newer object, or a newer server has reported it
            status, entries = raw.get("status") or {}, merged_ancestors(raw, wanted, self._cluster.clock())
            return None if entries == (status.get("ancestors") or []) else {**status, "ancestors": entries}

        self._budget.take(now)
        raw = await self._objects.change_status(key, change, now)
        if raw is None:
            self._known.forget(key)
        else:
            self._known.keep(key, uid_of(raw), own_ancestors(raw))
