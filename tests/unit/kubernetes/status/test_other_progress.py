"""Tests of the progress of rollouts over all servers of a mesh."""

import pytest

from meshwright.kubernetes.status.conditions.conditions import conditions
from meshwright.kubernetes.status.other_progress import (
    ObjectProgress,
    ProgressElsewhere,
    UnreadableProgressError,
    decode_progress,
    encode_progress,
)
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from tests.unit.admin.conftest import NOW

KEY = ObjectKey(TRAFFIC_TARGET, Namespace("shop"), "buyers")
OTHER = ObjectKey(TRAFFIC_TARGET, Namespace("shop"), "others")


def of(applied: int, total: int, generation: int = 2, key: ObjectKey = KEY) -> ObjectProgress:
    """Return the progress of an object."""
    return ObjectProgress(key, generation, applied, total)


NOBODY = ProgressElsewhere()
ANSWERED = NOBODY.answered({"b": [of(1, 2)], "c": [of(3, 3)], "d": []}, [])


@pytest.mark.parametrize(
    ("elsewhere", "own", "expected"),
    [
        (ANSWERED, Progress(1, 1), Progress(5, 6, "4 servers")),
        (ANSWERED, Progress(0, 0), Progress(4, 5, "4 servers")),
        (ANSWERED, None, Progress(4, 5, "4 servers")),
        pytest.param(
            NOBODY.answered({"b": [of(2, 2, generation=1)]}, []),
            Progress(1, 1),
            Progress(1, 1, "2 servers", ("b",)),
            id="read an older generation",
        ),
        pytest.param(
            NOBODY.answered({"b": []}, ["c"]),
            Progress(1, 1),
            Progress(1, 1, "3 servers", ("c",)),
            id="no answer",
        ),
        pytest.param(
            ANSWERED.answered({}, ["b", "c"]),
            Progress(1, 1),
            Progress(5, 6, "3 servers", ("b",)),
            id="complete before it fell silent",
        ),
        pytest.param(
            ANSWERED.answered({"c": [of(3, 3)]}, []), Progress(1, 1), Progress(4, 4, "2 servers"), id="gone"
        ),
        pytest.param(NOBODY.answered({"b": []}, ["c"]), None, None, id="no change seen"),
    ],
)
def test_progress_of_all_servers(
    elsewhere: ProgressElsewhere, own: Progress | None, expected: Progress | None
) -> None:
    """Each proxy counts at its server; a server whose proxies are not known keeps the change incomplete."""
    assert elsewhere.progress(KEY, own, 2) == expected


def test_changed_objects() -> None:
    """Only objects with another progress are reported again."""
    assert ANSWERED.changed_since(ANSWERED) == frozenset()
    after = ANSWERED.answered({"b": [of(2, 2), of(0, 1, key=OTHER)], "c": [of(3, 3)], "d": []}, [])
    assert after.changed_since(ANSWERED) == {KEY, OTHER}
    assert (ANSWERED.is_pending, after.is_pending) == (True, True)
    done = ANSWERED.answered({"b": [of(2, 2)]}, [])
    assert done.changed_since(ANSWERED) == {KEY}
    assert not done.is_pending
    assert done.answered({}, ["b"]).is_pending


def test_status_of_a_leader_without_proxies() -> None:
    """The proxies of other servers count, and a silent server leaves the change pending."""
    where, to = "2 servers", "connected to 2 servers"
    for progress, expected in (
        (Progress(2, 2, where), ("True", "Applied", f"applied by 2 of 2 proxies {to}")),
        (Progress(1, 2, where), ("False", "Pending", f"applied by 1 of 2 proxies {to}")),
        (Progress(0, 0, where), ("True", "NoProxyConcerned", f"no proxy {to} needed a change")),
        (
            Progress(0, 0, where, ("b",)),
            ("False", "Pending", f"applied by 0 of 0 proxies {to}; unknown at b"),
        ),
    ):
        condition = conditions((), progress, 2, (), NOW, server="a")[2]
        assert (condition.status, condition.reason, condition.message) == expected


def test_progress_arrives_as_it_was() -> None:
    """Other servers may have a newer version."""
    items = (of(1, 2), of(0, 0, key=OTHER))
    assert decode_progress(encode_progress(items)) == items
    with pytest.raises(UnreadableProgressError):
        decode_progress(b"{}")
