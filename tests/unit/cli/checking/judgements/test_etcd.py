"""Tests of the judgements of an etcd."""

import pytest

from meshwright.cli.checking.judgements.check import Check
from meshwright.cli.checking.judgements.etcd import history, members
from meshwright.etcd.health_values import History, MemberHealth

MEBI = 1024 * 1024
COMPACT = "start all members of etcd with --auto-compaction-retention=1h"


def up(name: str, size: int = 20, quota: int = 2048, **fields: object) -> MemberHealth:
    """Return the health of a member that answers, with sizes in MiB."""
    facts: dict[str, object] = {"version": "3.6.1", "has_leader": True} | fields
    return MemberHealth(f"https://{name}:2379", size=size * MEBI, quota=quota * MEBI, **facts)  # type: ignore[arg-type]


DOWN = MemberHealth("https://c:2379", error="etcd at https://c:2379 does not answer Status in time")


@pytest.mark.parametrize(
    ("healths", "check"),
    [
        (
            [up("a"), up("b", size=30)],
            Check.ok("etcd", "2 members of version 3.6.1, 30 of 2048 MiB used"),
        ),
        (
            [up("a", size=1000, quota=0)],
            Check.ok("etcd", "1 member of version 3.6.1, 1000 of 2048 MiB used"),
        ),
        (
            [up("a"), up("b"), DOWN],
            Check.warning(
                "etcd",
                f"1 of 3 members did not answer: {DOWN.error}",
                "start the member, or remove it from etcd_endpoints",
            ),
        ),
        ([DOWN], Check.failed("etcd", f"no member answers: {DOWN.error}", "see the log of etcd")),
        (
            [up("a", has_leader=False), DOWN],
            Check.failed(
                "etcd",
                "the members have no leader, so nothing can be written",
                "start the other members: more than half of all members must run",
            ),
        ),
        (
            [up("a"), up("b", size=1700)],
            Check.warning(
                "etcd",
                "the quota of https://b:2379 is nearly used: 1700 of 2048 MiB used",
                f"run `etcdctl defrag`, and {COMPACT}; at 100 % etcd refuses all writes",
            ),
        ),
        (
            [up("a", alarms=("memberID:1 alarm:NOSPACE",))],
            Check.failed(
                "etcd",
                "etcd has an alarm: memberID:1 alarm:NOSPACE",
                "see the log of etcd; after `etcdctl compact` and `etcdctl defrag` run "
                "`etcdctl alarm disarm`",
            ),
        ),
    ],
)
def test_members_are_judged_by_the_worst(healths: list[MemberHealth], check: Check) -> None:
    """A lost member is a warning, because the others serve; without a leader nothing is written."""
    assert members(healths) == check


@pytest.mark.parametrize(
    ("seen", "check"),
    [
        (History(20_000, is_whole=False), Check.ok("etcd history", "revision 20000")),
        (History(9_000, is_whole=True), Check.ok("etcd history", "revision 9000")),
        (
            History(20_000, is_whole=True),
            Check.warning(
                "etcd history", "all 20000 changes since the creation of the store are kept", COMPACT
            ),
        ),
    ],
)
def test_store_without_compaction_is_a_warning(seen: History, check: Check) -> None:
    """A new store may still have its whole history."""
    assert history(seen) == check
