"""Judgements of the etcd that a server uses: members, space, and history."""

from collections.abc import Sequence
from typing import Final

from meshwright.cli.checking.judgements.check import Check, counted, listed
from meshwright.etcd.health_values import History, MemberHealth

NAME: Final = "etcd"
HISTORY: Final = "etcd history"

DEFAULT_QUOTA: Final = 2 * 1024**3
"""Default of etcd for --quota-backend-bytes, for members that do not report theirs (before 3.6)."""

_NEAR: Final = 0.8
"""Share of the quota above which operators should act."""

_LONG: Final = 10_000
"""Revisions without a compaction that are usual for a new store."""

_COMPACT: Final = "start all members of etcd with --auto-compaction-retention=1h"
_MEBI: Final = 1024 * 1024


def members(healths: Sequence[MemberHealth]) -> Check:
    """Judge the members of an etcd: who answers, whether there is a leader, and how much space is left."""
    up = [health for health in healths if not health.error]
    lost = [health for health in healths if health.error]
    if not up:
        return Check.failed(NAME, f"no member answers: {lost[0].error}", "see the log of etcd")
    if alarms := sorted({alarm for health in up for alarm in health.alarms}):
        do = "see the log of etcd; after `etcdctl compact` and `etcdctl defrag` run `etcdctl alarm disarm`"
        return Check.failed(NAME, f"etcd has an alarm: {listed(alarms)}", do)
    if not any(health.has_leader for health in up):
        do = "start the other members: more than half of all members must run"
        return Check.failed(NAME, "the members have no leader, so nothing can be written", do)
    if lost:
        text = f"{len(lost)} of {counted(len(healths), 'member')} did not answer: {lost[0].error}"
        return Check.warning(NAME, text, "start the member, or remove it from etcd_endpoints")
    fullest = max(up, key=lambda health: health.size / (health.quota or DEFAULT_QUOTA))
    quota = fullest.quota or DEFAULT_QUOTA
    space = f"{fullest.size // _MEBI} of {quota // _MEBI} MiB used"
    if fullest.size >= _NEAR * quota:
        do = f"run `etcdctl defrag`, and {_COMPACT}; at 100 % etcd refuses all writes"
        return Check.warning(NAME, f"the quota of {fullest.endpoint} is nearly used: {space}", do)
    return Check.ok(NAME, f"{counted(len(up), 'member')} of version {listed(_versions(up))}, {space}")


def history(seen: History) -> Check:
    """Judge whether old changes are dropped: without compaction a store grows until its quota is used."""
    if seen.is_whole and seen.revision > _LONG:
        text = f"all {seen.revision} changes since the creation of the store are kept"
        return Check.warning(HISTORY, text, _COMPACT)
    return Check.ok(HISTORY, f"revision {seen.revision}")


def _versions(healths: Sequence[MemberHealth]) -> list[str]:
    return sorted({health.version for health in healths})
