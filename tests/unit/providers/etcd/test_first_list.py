"""Tests of the begin of a source in etcd, when the list arrives at the end of the patience."""

import contextlib
from datetime import UTC, datetime, timedelta
from typing import cast

from meshwright.etcd.client import Client
from meshwright.etcd.values import KeyValue, Page
from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.providers.etcd.names import ObjectNames
from meshwright.providers.etcd.source import EtcdSource
from tests.meshes import texts
from tests.unit.etcd.test_feed import Script, at

NAMES = ObjectNames("cluster.local")
OLD, NEW = (ObjectKey(SERVICE, Namespace("shop"), name) for name in ("old", "new"))


def _item(key: ObjectKey) -> KeyValue:
    return KeyValue(NAMES.name_of(key), texts.service(key.name).encode(), 2, 2)


def _source(*kept: KeyValue) -> EtcdSource:
    """Return a source without patience; the list arrives in the same turn of the event loop."""
    store = Script([[Page((_item(NEW),), at(2), more=False)]], [[at(2)]])
    return EtcdSource(
        cast("Client", store),
        contextlib.nullcontext(),
        NAMES,
        lambda: datetime.now(UTC),
        patience=timedelta(0),
        kept=kept,
    )


async def test_list_wins_over_the_objects_of_before() -> None:
    """Nothing would replace the objects of an earlier run later, because the feed delivers differences."""
    source = _source(_item(OLD))
    await source.first()
    assert list(source.objects()) == [NEW]


async def test_list_without_objects_of_before_is_a_begin() -> None:
    """A list that has arrived is no reason to give up."""
    source = _source()
    await source.first()
    assert list(source.objects()) == [NEW]
