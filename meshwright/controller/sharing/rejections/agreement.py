"""Verdicts on which this server and the records of proxies agree, and the differences to be written.

A verdict is added to a record by the server that found it. A verdict is removed by the server that serves the
proxy, when the proxy accepts the policy, or the policy has changed. No server writes the whole field, so two
servers never undo each other's changes:

    here {a, b}, record {a}      add b
    here {a},    record {a, b}   remove b, if the proxy is served here and b was in force here
    record changes {a} -> {c}    c is in force here, and a ends here

For the server's event loop; without waiting.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from catalog.policy.units import UnitId
from meshwright.controller.sharing.rejections.feed import StoredRejections
from meshwright.delivery.quarantine.record import SLOWEST_FROM
from meshwright.delivery.quarantine.verdicts import Verdict
from xds.cache import NodeKey

ECHO_SECONDS: Final = 5.0
"""Longest time in seconds until this server follows its own write.

Changes that arrive before are older than the write, and would undo it here.
"""


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """Verdicts on a proxy that are new, and units of policy whose verdicts have ended."""

    node: NodeKey
    found: tuple[Verdict, ...] = ()
    ended: frozenset[UnitId] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.found or self.ended)


class Agreement:
    """The last verdicts in the records, as this server has followed or written them.

    `now` reads a monotonic clock in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._agreed: dict[NodeKey, StoredRejections] = {}
        self._unwritten: dict[NodeKey, dict[UnitId, Verdict]] = {}
        self._left_out: dict[NodeKey, frozenset[UnitId]] = {}
        self._echoes: dict[NodeKey, tuple[int, float]] = {}

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return all verdicts in the records, sorted by proxy and unit."""
        known = (verdict for stored in self._agreed.values() for verdict in stored.verdicts.values())
        return tuple(sorted(known, key=lambda verdict: (verdict.proxy, verdict.unit)))

    def unwritten(self) -> tuple[Verdict, ...]:
        """Return the verdicts of this server that are not in the records yet, sorted by proxy and unit."""
        known = (verdict for verdicts in self._unwritten.values() for verdict in verdicts.values())
        return tuple(sorted(known, key=lambda verdict: (verdict.proxy, verdict.unit)))

    def add_unwritten(self, verdicts: Iterable[Verdict]) -> None:
        """Add verdicts that an earlier run of this server could not write."""
        for verdict in verdicts:
            if verdict.unit not in self._stored(verdict.proxy):
                self._unwritten.setdefault(verdict.proxy, {})[verdict.unit] = verdict

    def hear(self, stored: StoredRejections) -> VerdictChange:
        """Take the verdicts in a record; return what has changed for this server."""
        node = stored.node
        count, until = self._echoes.get(node, (0, 0.0))
        if stored.count and stored.count < count and self._now() < until:
            return VerdictChange(node)
        self._echoes.pop(node, None)
        before = self._stored(node)
        if stored.verdicts:
            self._agreed[node] = stored
        else:
            self._agreed.pop(node, None)
        if stored.verdicts != before and stored.count != count:  # not by this server
            self._left_out.pop(node, None)
        found = (verdict for unit, verdict in stored.verdicts.items() if before.get(unit) != verdict)
        return VerdictChange(node, tuple(found), frozenset(before.keys() - stored.verdicts.keys()))

    def differences(
        self, own: Iterable[Verdict], serves: Callable[[NodeKey], bool]
    ) -> tuple[VerdictChange, ...]:
        """Return the changes to be written; `own` are the verdicts on the proxies of this server.

        `serves` returns whether this server serves a proxy now. The verdicts on a proxy that has left stay
        unwritten until they are written.
        """
        known: dict[NodeKey, dict[UnitId, Verdict]] = {}
        for verdict in own:
            known.setdefault(verdict.proxy, {})[verdict.unit] = verdict
        left = {node: verdicts for node, verdicts in self._unwritten.items() if not serves(node)}
        found = {node: self._new(node, verdicts) for node, verdicts in known.items() if not self._waits(node)}
        self._unwritten = left | {node: verdicts for node, verdicts in found.items() if verdicts}
        changes = []
        for node in sorted(self._unwritten.keys() | self._agreed.keys()):
            if self._waits(node):
                continue
            ended = self._stored(node).keys() - known.get(node, {}).keys() if serves(node) else ()
            change = VerdictChange(
                node, tuple(self._unwritten.get(node, {}).values()), frozenset[UnitId](ended)
            )
            if change:
                changes.append(change)
        return tuple(changes)

    def written(self, change: VerdictChange, stored: StoredRejections) -> None:
        """Note that a change is written; `stored` are the verdicts in the record afterwards."""
        node = change.node
        present = self._agreed.get(node)
        if present is None or present.count < stored.count:  # otherwise it was followed already
            self._echoes[node] = (stored.count, self._now() + ECHO_SECONDS)
        self.leave_out(
            node, (verdict.unit for verdict in change.found if verdict.unit not in stored.verdicts)
        )
        for verdict in change.found:
            self._settle(node, verdict.unit)

    def leave_out(self, node: NodeKey, units: Iterable[UnitId]) -> None:
        """Do not write these verdicts on a proxy, until other servers change the record's verdicts."""
        left_out = frozenset(units)
        if left_out:
            self._left_out[node] = self._left_out.get(node, frozenset()) | left_out
        for unit in left_out:
            self._settle(node, unit)

    def _new(self, node: NodeKey, verdicts: Mapping[UnitId, Verdict]) -> dict[UnitId, Verdict]:
        """Return the verdicts on a proxy that the record does not have, or with a lower count."""
        stored, left_out = self._stored(node), self._left_out.get(node, frozenset())
        return {
            unit: verdict
            for unit, verdict in verdicts.items()
            if unit not in left_out
            and ((there := stored.get(unit)) is None or there.times < min(verdict.times, SLOWEST_FROM))
        }

    def _stored(self, node: NodeKey) -> Mapping[UnitId, Verdict]:
        present = self._agreed.get(node)
        return {} if present is None else present.verdicts

    def _settle(self, node: NodeKey, unit: UnitId) -> None:
        verdicts = self._unwritten.get(node, {})
        verdicts.pop(unit, None)
        if not verdicts:
            self._unwritten.pop(node, None)

    def _waits(self, node: NodeKey) -> bool:
        """Return whether this server has written the record, and has not followed the write yet."""
        return self._now() < self._echoes.get(node, (0, 0.0))[1]
