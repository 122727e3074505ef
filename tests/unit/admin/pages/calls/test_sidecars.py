"""Tests of the known state of a call's sidecars: acknowledged, missing or unknown configuration."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from catalog.explain.sidecars import ExcludedPolicy, Sidecar
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
    """Return the proxy `NAME` in the given state."""
    return (ProxyStatus(NAME, state, "", now, known=True),)


@pytest.mark.parametrize("state", [ProxyState.EXPECTED, ProxyState.DISCONNECTED])
def test_disconnected_or_unknown_sidecar_is_not_connected(
    empty_reading: Any, now: datetime, state: ProxyState
) -> None:
    """A disconnected, an expected and an unknown sidecar are all reported as not connected."""
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
        (False, SyncState.SYNCED, "", "does not have a configuration yet"),
        (True, SyncState.PENDING, "", "has not acknowledged the last response yet (cluster)"),
        (
            True,
            SyncState.SYNCED,
            "x",
            "keeps its previous configuration, because the new one cannot be computed: x",
        ),
    ],
)
def test_connected_sidecar_is_known_if_it_acknowledged_its_configuration(
    empty_reading: Any,
    stream_of: StreamOf,
    now: datetime,
    served: bool,
    state: SyncState,
    failure: str,
    unknown: str,
) -> None:
    """A connected sidecar's configuration is known only under two conditions.

    The sidecar acknowledged the last response, and its new configuration could be computed.
    """
    reading = replace(
        empty_reading,
        the_proxies=standing(ProxyState.CONNECTED, now),
        the_streams=(stream_of(1, (state, None), served=served),),
        the_failure=failure,
    )
    assert known_sidecars(reading, [NAME]) == {NAME: Sidecar(unknown)}


def test_sidecar_with_a_rejection_lacks_the_excluded_part(
    empty_reading: Any, stream_of: StreamOf, now: datetime
) -> None:
    """A rejection that an excluded part explains is that part alone.

    An unexplained one keeps the last good version.
    """
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
    text = "rejects route rds-inbound.8080 and keeps the last good version"
    assert known_sidecars(unexplained, [NAME]) == {NAME: Sidecar(text)}
