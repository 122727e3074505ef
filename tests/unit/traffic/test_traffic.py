"""Tests of traffic reports: their counts, retention and limits."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.identity import ProxyName
from meshwright.traffic.cells import Cells, Grain
from meshwright.traffic.statistics import (
    OTHERS,
    CalledPort,
    Calls,
    Direction,
    Figures,
    Kind,
    Protocol,
    Report,
)
from meshwright.traffic.traffic import MOST_ROWS, Caller, Traffic, every_seconds

BUYER = ProxyName.parse("one.buyer.shop")
AGAIN = ProxyName.parse("two.buyer.shop")
SHOP = Caller("shop", "buyer")
TO_STORE = Calls(Kind.EDGE, Direction.OUTBOUND, Protocol.HTTP, CalledPort("shop", "store", 80))
COMING = Calls(Kind.EDGE, Direction.INBOUND, Protocol.HTTP, CalledPort("", "", 8080))


def requests(count: int) -> Figures:
    """Return the figures of so many successful requests."""
    return Figures((0, count, 0, 0, 0))


def report(number: int, *rows: tuple[Calls, Figures], run: str = "a") -> Report:
    """Return a report of ten seconds."""
    return Report(run, number, 10.0, rows)


def seen(traffic: Traffic, seconds: float, now: float) -> dict[tuple[Caller, Calls], int]:
    """Return the number of recent requests by caller and call."""
    return {key: figures.requests for key, figures in traffic.by_source(seconds, now).summed().items()}


def test_report_is_counted_once_by_its_run_and_number() -> None:
    """A report that is sent again is ignored; a restarted agent has another run and starts with 1."""
    traffic = Traffic()
    for item in (report(1, (TO_STORE, requests(3))), report(1, (TO_STORE, requests(3)))):
        traffic.take(BUYER, item, 100.0)
    traffic.take(BUYER, report(2, (TO_STORE, requests(4))), 101.0)
    assert seen(traffic, 60, 105) == {(SHOP, TO_STORE): 7}
    traffic.take(BUYER, report(1, (TO_STORE, requests(5)), run="b"), 102.0)
    traffic.take(AGAIN, report(1, (TO_STORE, requests(1))), 102.0)
    assert seen(traffic, 60, 105) == {(SHOP, TO_STORE): 13}
    by_proxy = traffic.by_proxy(60, 105).summed()
    every = Calls(Kind.EDGE, Direction.OUTBOUND, Protocol.HTTP, OTHERS)
    assert by_proxy == {(BUYER, every): requests(12), (AGAIN, every): requests(1)}


def test_report_is_kept_for_an_hour_and_then_deleted() -> None:
    """Windows of 60, 600 and 3600 s include a report until it is too old; no entry is left in the end."""
    traffic = Traffic()
    traffic.take(BUYER, report(1, (TO_STORE, requests(3))), 0.0)
    assert seen(traffic, 60, 30) == {(SHOP, TO_STORE): 3}
    assert seen(traffic, 60, 90) == {}
    assert seen(traffic, 600, 590) == {(SHOP, TO_STORE): 3}
    assert seen(traffic, 3600, 3590) == {(SHOP, TO_STORE): 3}
    assert traffic.reporting(10) == 1
    assert traffic.reporting(60) == 0
    assert seen(traffic, 3600, 4200) == {}
    traffic.by_proxy(60, 4200)
    assert traffic.entries == 0


def test_rows_of_a_report_beyond_the_limit_are_counted_together() -> None:
    """Memory is limited to MOST_ROWS rows and one for OTHERS, and no request is lost from the sum."""
    many = [
        (Calls(Kind.EDGE, Direction.OUTBOUND, Protocol.HTTP, CalledPort("x", f"s{n}", 80)), requests(1))
        for n in range(1000)
    ]
    traffic = Traffic()
    traffic.take(BUYER, report(1, *many), 0.0)
    result = traffic.by_source(60, 1).summed()
    assert len(result) == MOST_ROWS + 1
    assert sum(figures.requests for figures in result.values()) == 1000
    others = Calls(Kind.EDGE, Direction.OUTBOUND, Protocol.HTTP, OTHERS)
    assert result[SHOP, others].requests == 1000 - MOST_ROWS


def test_number_of_entries_in_all_cells_is_limited() -> None:
    """The oldest entries are dropped first; a full cell counts its known keys and leaves out new ones."""
    cells = Cells[str]((Grain(10, 6), Grain(60, 60)), most=40)
    for at in range(0, 600, 10):
        cells.add([(f"{n}", requests(1)) for n in range(10)], float(at))
        assert len(cells) <= 40
    assert {figures.requests for figures in cells.since(5, 595).summed().values()} == {1}
    cells.add([(f"new-{n}", requests(1)) for n in range(100)], 600.0)
    assert (len(cells) <= 40, cells.left_out) == (True, 160)


def forged(first: int, count: int) -> list[tuple[Calls, Figures]]:
    """Return rows of services that a proxy has invented."""
    return [
        (Calls(Kind.EDGE, Direction.OUTBOUND, Protocol.HTTP, CalledPort("x", f"s{n}", 80)), requests(1))
        for n in range(first, first + count)
    ]


def test_proxy_with_many_rows_displaces_no_rows_of_other_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of each proxy are limited, so the many reports of one proxy leave room for others."""
    monkeypatch.setattr("meshwright.traffic.traffic.MOST", 15_000)  # so that few reports would fill it
    traffic = Traffic()
    for number in range(40):
        traffic.take(BUYER, report(number + 1, *forged(256 * number, 256)), number * 5)
    cart = ProxyName.parse("one.cart.shop")
    for number in range(20):
        traffic.take(cart, report(number + 1, *forged(7 * number, 7)), 200.0)
    result = traffic.by_source(3600, 201.0).summed()
    assert Counter(caller.service for caller, _ in result) == {"buyer": MOST_ROWS + 1, "cart": 140}
    assert (
        sum(figures.requests for (caller, _), figures in result.items() if caller.service == "buyer")
        == 40 * 256
    )
    assert traffic.left_out == 0


def test_proxy_that_calls_other_services_has_new_rows_after_300_seconds() -> None:
    """Without a new share, calls to the new services would be counted under OTHERS for ever."""
    traffic = Traffic()
    traffic.take(BUYER, report(1, *forged(0, 256)), 0.0)
    traffic.take(BUYER, report(2, *forged(1000, 1)), 299.0)
    traffic.take(BUYER, report(3, *forged(1000, 1)), 300.0)
    named = Calls(Kind.EDGE, Direction.OUTBOUND, Protocol.HTTP, CalledPort("x", "s1000", 80))
    assert traffic.by_source(3600, 301.0).summed()[SHOP, named].requests == 1


STEPS = st.lists(
    st.tuples(st.floats(0, 400), st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=4)),
    max_size=30,
)


@given(STEPS, st.sampled_from([60, 300, 900, 3600]))
def test_figures_of_a_window_exceed_it_by_at_most_one_cell(
    steps: list[tuple[float, list[tuple[str, int]]]], window: int
) -> None:
    """The figures include every report in the window, and none older than the window and one cell."""
    cells, messages, now = Cells[str]((Grain(10, 12), Grain(60, 15), Grain(300, 12)), 10_000), [], 0.0
    for pause, rows in steps:
        now += pause
        cells.add([(key, requests(count)) for key, count in rows], now)
        messages.append((now, rows))
    result = Counter({key: figures.requests for key, figures in cells.since(window, now).summed().items()})
    cell = 10 if window <= 120 else 60 if window <= 900 else 300
    least, most = Counter[str](), Counter[str]()
    for at, rows in messages:
        for key, count in rows:
            least[key] += count if at > now - window else 0
            most[key] += count if at > now - window - cell else 0
    assert least <= result <= most


def test_sums_stay_at_the_largest_value_that_an_entry_holds() -> None:
    """Implausibly large figures must not overflow: at most 2**32 - 1 requests and 2**64 - 1 bytes."""
    cells = Cells[str]((Grain(10, 1),), 10)
    for _ in range(4):
        cells.add([("a", Figures((0, 2**31, 0, 0, 0), sent_bytes=2**63))], 0.0)
    (figures,) = cells.since(10, 1).summed().values()
    assert figures == Figures((0, 2**32 - 1, 0, 0, 0), sent_bytes=2**64 - 1)


def test_seconds_of_a_window_are_those_that_its_cells_cover() -> None:
    """A rate is divided by these seconds; a first report covers its own ten seconds."""
    traffic = Traffic()
    assert traffic.by_source(60, 100.0).seconds == 60
    traffic.take(BUYER, report(1, (TO_STORE, requests(3))), 101.0)
    assert traffic.by_source(60, 102.0).seconds == 10
    traffic.take(BUYER, report(2, (TO_STORE, requests(3))), 111.0)
    assert traffic.by_source(60, 112.0).seconds == 12
    assert traffic.by_source(60, 165.0).seconds == 65


@pytest.mark.parametrize(
    ("proxies", "expected"), [(0, 10), (1, 10), (33, 10), (200, 60), (1000, 300), (100_000, 600)]
)
def test_report_interval_grows_with_the_number_of_proxies(proxies: int, expected: int) -> None:
    """With up to 2000 proxies the control plane gets about three reports a second at most."""
    assert every_seconds(proxies) == expected
