"""Tests of `/debug/connectivity`: the facts about a call in the small mesh."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from catalog.store.settings import EndpointAdmission
from catalog.store.smi import http_route_groups
from catalog.store.view import MeshSettings, View
from meshwright.admin.pages.calls.connectivity import connectivity
from meshwright.admin.pages.calls.fields import QueryError
from meshwright.admin.proxy_names import NothingToShow
from meshwright.delivery.quarantine.exclusions import LeftOut
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey

ASK = {"from": "shop/buyer", "to": "shop/store:80", "path": "/buy"}
STORE = ProxyName.parse("uuid-1.store.shop")


async def test_connectivity_shows_both_sidecars_and_the_endpoint(reading: Any, now: datetime) -> None:
    """Both sidecars have their state, versions and the push that delivered the rule.

    The endpoint has its address.
    """
    result: Any = await connectivity(reading, ASK, (), now)
    (caller,), (called,), (endpoint,) = result["callers"], result["called"], result["endpoints"]
    assert result["explained"]["policy"] == "allowed"
    assert (result["protocol"], result["turned_down"]) == ("http", None)
    assert (caller["proxy"], caller["stands"]) == ("uuid-2.buyer.shop", "not connected")
    assert caller["interception"] == "transparent"
    assert (called["proxy"], called["workload"], called["stands"]) == (
        "uuid-1.store.shop",
        "shop/store-1",
        "in step",
    )
    assert called["types"]["cluster"] == {
        "state": "synced",
        "version": "v2",
        "acknowledged_version": "v1",
    }
    assert (called["brought"]["type"], called["brought"]["answer"]) == ("route", "ack")
    assert endpoint == {
        "service": "shop/store",
        "address": "10.0.0.1:8080",
        "identity": "shop/store",
        "workloads": ["shop/store-1"],
        "proxies": ["uuid-1.store.shop"],
        "given": False,
        "withheld": "",
        "application": "127.0.0.1:8080",
    }


async def test_connectivity_reads_the_state_of_all_proxies_once(
    reading: Any, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of all proxies is read once for any number of sidecars. The reading holds the event loop."""
    looked = Counter[str]()

    def counted(name: str) -> Callable[[], object]:
        look = getattr(reading, name)

        def looking() -> object:
            looked[name] += 1
            return look()

        return looking

    of_all = ("proxies", "streams", "left_out")
    for name in of_all:
        monkeypatch.setattr(reading, name, counted(name))
    result: Any = await connectivity(reading, ASK, (), now)
    assert len({item["proxy"] for item in (*result["callers"], *result["called"])}) == 2
    assert looked == dict.fromkeys(of_all, 1)


async def test_endpoint_that_is_not_admitted_is_withheld(reading: Any, source: Any, now: datetime) -> None:
    """An endpoint that is not admitted gets no traffic, so its sidecar is not one of the called sidecars."""
    settings = MeshSettings(endpoint_admission=EndpointAdmission.READY)
    reading.the_view = View.build(source.objects(), settings)
    result: Any = await connectivity(reading, ASK, (), now)
    (endpoint,) = result["endpoints"]
    assert endpoint["withheld"] == "its sidecar has not accepted its inbound listeners"
    assert result["called"] == []


async def test_missing_part_of_a_sidecar_is_named_only_if_the_call_needs_it(
    reading: Any, view: View, now: datetime
) -> None:
    """A match that was left out for a sidecar is named only for calls that need this match."""
    routes = ObjectKey(HTTP_ROUTE_GROUP, Namespace("shop"), "routes")
    group = http_route_groups(view)[PolicyKey(Namespace("shop"), "routes")]
    (match,) = (http_match for http_match in group.matches if http_match.name == "buy")
    out = replace(reading, the_left_out=(LeftOut(routes, match, (STORE,), "no", certain=True),))

    async def lacks(*headers: str, caller: str = "shop/buyer") -> object:
        result: Any = await connectivity(out, ASK | {"from": caller}, headers, now)
        return result["called"][0]["lacks"]

    assert await lacks() == [
        (
            "uuid-1.store.shop is served without match buy of HTTPRouteGroup shop/routes, which the "
            "proxy rejects: no"
        )
    ]
    assert await lacks("x-kind: book") == []
    assert await lacks(caller="shop/nobody") == []


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        (
            {"to": "shop/stroe:80"},
            NothingToShow,
            "Service shop/stroe does not exist (similar names: shop/store).",
        ),
        ({"to": "shop/store:81"}, NothingToShow, "Service shop/store has no port 81. Its ports: 80, 90."),
        (
            {"to": "shop/store"},
            QueryError,
            "to is 'shop/store': must end with :PORT; the Service has the ports 80, 90",
        ),
        ({"to": "203.0.113.1:443"}, QueryError, "to is '203.0.113.1:443', outside the mesh"),
        ({"from": "x"}, QueryError, "from is 'x': must be <namespace>/<service account>"),
    ],
)
async def test_error_of_an_invalid_question_suggests_valid_values(
    reading: Any, now: datetime, asked: dict[str, str], error: type[Exception], said: str
) -> None:
    """The error of an invalid question suggests a similar name, the Service's ports or the expected form."""
    with pytest.raises(error, match=re.escape(said)):
        await connectivity(reading, ASK | asked, (), now)
