"""What is known of the sidecars that a call goes by: what they have acknowledged, lack, or may have."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from catalog.explain.enforcement import ExcludedPolicy, Sidecar
from meshwright.admin.pages.calls.sidecars import known_sidecars
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.delivery.quarantine.exclusions import LeftOut
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from xds.protocol.resources.resource import ROUTE, ResourceName
from xds.stream_status import StreamStatus, SyncState

NAME = ProxyName.parse("uuid-1.store.shop")
StreamOf = Callable[..., StreamStatus]
BUYERS = ObjectKey(TRAFFIC_TARGET, Namespace("shop"), "buyers")
ROUTES = (ROUTE, ResourceName("rds-inbound.8080"))


def standing(state: ProxyState, now: datetime) -> tuple[ProxyStatus, ...]:
    """Return where the proxy stands."""
    return (ProxyStatus(NAME, state, "", now, known=True),)


@pytest.mark.parametrize("state", [ProxyState.EXPECTED, ProxyState.DISCONNECTED])
def test_one_that_is_not_connected(empty_reading: Any, now: datetime, state: ProxyState) -> None:
    """It may have what it had when it went; so may one that nobody knows."""
    reading = replace(empty_reading, the_proxies=standing(state, now))
    stranger = ProxyName.parse("u.s.n")
    assert known_sidecars(reading, [NAME, stranger]) == {
        NAME: Sidecar("is not connected"),
        stranger: Sidecar("is not connected"),
    }


@pytest.mark.parametrize(
    ("served", "state", "failure", "unknown"),
    [
        (True, SyncState.SYNCED, "", ""),
        (False, SyncState.SYNCED, "", "has no configuration yet"),
        (True, SyncState.PENDING, "", "has not acknowledged the last response yet (cluster)"),
        (
            True,
            SyncState.SYNCED,
            "x",
            "keeps its previous configuration, because the new one cannot be computed: x",
        ),
    ],
)
def test_one_that_is_here(
    empty_reading: Any,
    stream_of: StreamOf,
    now: datetime,
    served: bool,
    state: SyncState,
    failure: str,
    unknown: str,
) -> None:
    """It has what it was sent last, if it said so."""
    reading = replace(
        empty_reading,
        the_proxies=standing(ProxyState.CONNECTED, now),
        the_streams=(stream_of(1, (state, None), served=served),),
        the_failure=failure,
    )
    assert known_sidecars(reading, [NAME]) == {NAME: Sidecar(unknown)}


def test_one_that_refuses_a_part(empty_reading: Any, stream_of: StreamOf, now: datetime) -> None:
    """It has the rest, and what is left out of it is known; a rejection that no part explains is not."""
    part = LeftOut(BUYERS, None, (NAME,), "no", certain=True)
    elsewhere = LeftOut(BUYERS, None, (ProxyName.parse("u.s.n"),), "no", certain=True)
    known = {
        "the_proxies": standing(ProxyState.CONNECTED, now),
        "the_streams": (stream_of(1, (SyncState.SYNCED, None)),),
        "the_rejected": (ROUTES,),
    }
    explained = replace(empty_reading, the_left_out=(part,), **known)
    assert known_sidecars(explained, [NAME]) == {NAME: Sidecar("", (ExcludedPolicy(BUYERS, None, "no"),))}
    unexplained = replace(empty_reading, the_left_out=(elsewhere,), **known)
    said = "rejects route rds-inbound.8080 and keeps the last good version"
    assert known_sidecars(unexplained, [NAME]) == {NAME: Sidecar(said)}
