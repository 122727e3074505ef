"""Tests of taps: the choices that sidecars get, and the requests that subscribers get."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import Namespace, Port, ServiceAccountName, ServiceName
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.tap import TapChoice, TappedRequest
from meshwright.traffic.taps import (
    MOST_TAPS,
    PER_SECOND,
    WAITING,
    Taps,
    TapSubscription,
    TapTable,
    TooManyTaps,
)

SHOP = ServiceKey(Namespace("shop"), ServiceName("shop"))
BANK = ServiceKey(Namespace("shop"), ServiceName("bank"))
ONE, OTHER, BANKER = (ProxyName.parse(f"{item}.shop") for item in ("one.shop", "two.shop", "one.bank"))
ALICE, BOB = (ServiceIdentity(Namespace("shop"), ServiceAccountName(item)) for item in ("alice", "bob"))
REQUEST = TappedRequest(
    at=datetime(2026, 1, 1, tzinfo=UTC),
    caller=ALICE,
    address="10.0.0.1",
    port=Port(8080),
    method="GET",
    authority="shop",
    path="/books/one",
    status=200,
    grpc_status=None,
    flags=(),
    details="via_upstream",
    policy="shop/books",
    seconds=0.1,
    received_bytes=0,
    sent_bytes=3,
)


def _taps() -> tuple[Taps, list[object]]:
    """Return taps without subscribers, and the list of changes that they report."""
    behind = {ONE: (SHOP,), OTHER: (SHOP,), BANKER: (BANK,)}
    table, changes = TapTable(), list[object]()
    taps = Taps(table, lambda proxy: behind.get(proxy, ()), lambda: changes.append(dict(table.tapped())))
    return taps, changes


def _nobody() -> None:
    """Do nothing."""


def test_sidecars_get_the_choices_of_all_taps_of_their_service() -> None:
    """Each choice is listed once, and the service disappears with the end of its last tap."""
    taps, changes = _taps()
    posts = TapChoice(methods=("POST",))
    first = taps.begin(TapSubscription(SHOP, posts), _nobody)
    same = taps.begin(TapSubscription(SHOP, posts, ONE, range(500, 600)), _nobody)
    every = taps.begin(TapSubscription(SHOP), _nobody)
    for tap in (first, every, same):
        taps.end(tap)
    assert changes == [
        {SHOP: (posts,)},
        {SHOP: (TapChoice(), posts)},
        {SHOP: (posts,)},
        {},
    ]


@pytest.mark.parametrize(
    ("watched", "fits"),
    [
        (TapSubscription(SHOP), True),
        (TapSubscription(BANK), False),
        (TapSubscription(SHOP, TapChoice((ALICE, BOB), ("GET",), "/books"), ONE, range(200, 201)), True),
        (TapSubscription(SHOP, TapChoice(callers=(BOB,))), False),
        (TapSubscription(SHOP, TapChoice(methods=("POST",))), False),
        (TapSubscription(SHOP, TapChoice(path_prefix="/book/")), False),
        (TapSubscription(SHOP, proxy=OTHER), False),
        (TapSubscription(SHOP, statuses=range(500, 600)), False),
    ],
)
def test_tap_receives_only_requests_that_match_its_subscription(watched: TapSubscription, fits: bool) -> None:
    """A sidecar reports requests for all taps, so each tap is filtered by the control plane too."""
    taps, _ = _taps()
    tap = taps.begin(watched, _nobody)
    taps.handle_report(ONE, [REQUEST], 0.0)
    assert tap.take() == ([(ONE, REQUEST)] if fits else [], 0)


def test_proxy_reports_requests_of_its_own_services_only() -> None:
    """`handle_report` returns False for a proxy of another service, for an unknown proxy, and without taps.

    The result tells the proxy to end its stream.
    """
    taps, _ = _taps()
    tap = taps.begin(TapSubscription(SHOP), _nobody)
    stranger = ProxyName.parse("x.shop.shop")
    assert [taps.handle_report(proxy_name, [REQUEST], 0.0) for proxy_name in (ONE, BANKER, stranger)] == [
        True,
        False,
        False,
    ]
    assert tap.take() == ([(ONE, REQUEST)], 0)
    taps.end(tap)
    assert not taps.handle_report(ONE, [REQUEST], 0.0)


def test_tap_keeps_limited_requests_per_second_and_in_total() -> None:
    """Requests beyond PER_SECOND or WAITING are dropped, and each is counted as lost once."""
    taps, _ = _taps()
    tap = taps.begin(TapSubscription(SHOP), _nobody)
    other = taps.begin(TapSubscription(SHOP, statuses=range(500, 600)), _nobody)
    taps.handle_report(ONE, [REQUEST] * (PER_SECOND + 7), 1.5)
    result, lost = tap.take()
    assert (len(result), lost) == (PER_SECOND, 7)
    taps.handle_report(ONE, [REQUEST] * 3, 1.9)
    assert tap.take() == ([], 3)
    for second in range(2, 2 + WAITING // PER_SECOND):
        taps.handle_report(ONE, [REQUEST] * PER_SECOND, second)
    taps.handle_report(ONE, [REQUEST] * 5, 100.0)
    result, lost = tap.take()
    assert (len(result), lost) == (WAITING, 5)
    assert other.take() == ([], 0)


def test_subscriber_is_notified_of_matching_requests_only() -> None:
    """A request of another service leads to no notification."""
    taps, noticed = _taps()[0], list[str]()
    taps.begin(TapSubscription(SHOP), lambda: noticed.append("it"))
    taps.handle_report(ONE, [REQUEST], 0.0)
    taps.handle_report(BANKER, [REQUEST], 0.0)
    assert noticed == ["it"]


def test_tap_beyond_the_limit_is_refused() -> None:
    """A refused tap changes nothing, and a new tap is accepted once another one has ended."""
    taps, changes = _taps()
    first, *_ = [taps.begin(TapSubscription(SHOP), _nobody) for _ in range(MOST_TAPS)]
    with pytest.raises(TooManyTaps):
        taps.begin(TapSubscription(BANK), _nobody)
    assert changes == [{SHOP: (TapChoice(),)}]
    taps.end(first)
    assert taps.begin(TapSubscription(BANK), _nobody).watched == TapSubscription(BANK)


def test_request_without_a_client_certificate_matches_no_chosen_caller() -> None:
    """A choice without callers includes such a request."""
    unknown = replace(REQUEST, caller=None)
    assert TapChoice().fits(unknown)
    assert not TapChoice(callers=(ALICE,)).fits(unknown)
