"""Tests of the verdicts in the records that a server follows."""

import itertools
from typing import Any

import pytest
from structlog.testing import capture_logs

from certs.shared_records.domains import key_of_proxy
from meshwright.controller.sharing.rejections.feed import RejectionFeed, StoredRejections
from meshwright.delivery.quarantine.verdict_fields import with_verdicts
from meshwright.mesh.identity import ProxyName
from meshwright.records.content import Content
from meshwright.records.contract import Changes, Record, ReplicaId, Revision
from tests.unit.transfer.meshes import verdict
from xds.cache import NodeKey

NODE = NodeKey("a1.cart.shop")
KEY = key_of_proxy(ProxyName.parse(NODE))
VERDICT = verdict(NODE, "0b1f")


class Scene:
    """A feed, and records that change."""

    def __init__(self) -> None:
        self.wakes = 0
        self.feed = RejectionFeed(self._wake)
        self._counts = itertools.count(1)

    def _wake(self) -> None:
        self.wakes += 1

    def hear(self, fields: Any, *, is_list: bool = False, form: int = 1) -> list[StoredRejections]:
        """Hear of the record with these fields."""
        content = Content(fields, ReplicaId("r"), next(self._counts), form=form).encode()
        return self.hear_changes(Changes((Record(KEY, content, Revision("1")),)), is_list=is_list)

    def hear_changes(self, changes: Changes, *, is_list: bool = False) -> list[StoredRejections]:
        """Hear of changes, and return what the server takes."""
        self.feed.hear(changes, is_list)
        return list(self.feed.take())


@pytest.fixture
def scene() -> Scene:
    """A feed that has heard nothing."""
    return Scene()


def test_verdicts_and_their_end_are_heard(scene: Scene) -> None:
    """A change of a record without verdicts, before and after, does not wake the receiver."""
    assert (scene.hear({"certificates": {}}), scene.wakes) == ([], 0)
    [stored] = scene.hear(with_verdicts(None, [VERDICT]))
    assert (stored.node, dict(stored.verdicts)) == (NODE, {VERDICT.unit: VERDICT})
    [ended] = scene.hear({})
    assert (ended.node, dict(ended.verdicts)) == (NODE, {})
    assert scene.hear({}) == []
    assert scene.wakes == 2


def test_record_that_is_gone_has_no_verdicts(scene: Scene) -> None:
    """Also if a later list lacks the record."""
    scene.hear(with_verdicts(None, [VERDICT]))
    assert scene.hear_changes(Changes(removed=(KEY,))) == [StoredRejections(NODE)]
    scene.hear(with_verdicts(None, [VERDICT]), is_list=True)
    assert scene.hear_changes(Changes(), is_list=True) == [StoredRejections(NODE)]
    assert scene.hear_changes(Changes(removed=(KEY,))) == []


def test_record_of_a_newer_form_keeps_the_last_verdicts(scene: Scene) -> None:
    """The ledger logs the key of such a record."""
    scene.hear(with_verdicts(None, [VERDICT]))
    assert scene.hear({}, form=2) == []
    broken = Record(KEY, b'{"rejected"', Revision("2"))
    assert scene.hear_changes(Changes((broken,))) == []
    assert scene.hear({}) != []


def test_unreadable_verdict_is_logged_once(scene: Scene) -> None:
    """The line has the key of the record, and the others are in force."""
    fields: Any = with_verdicts({"rejected": {"bad": 1}}, [VERDICT])
    with capture_logs() as logs:
        [stored] = scene.hear(fields)
        scene.hear({**fields, "more": 1})
    assert list(stored.verdicts) == [VERDICT.unit]
    [line] = logs
    assert (line["event"], line["key"]) == ("rejections of a proxy cannot be read", KEY)
    assert line["reason"].startswith("rejected, unit bad: ")
