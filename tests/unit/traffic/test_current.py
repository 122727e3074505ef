"""Tests of the rows that are computed from counted calls."""

from meshwright.mesh.identity import ProxyName
from meshwright.traffic.current import Row, RowFilter, of_proxies, rows
from meshwright.traffic.statistics import (
    OTHERS,
    CalledPort,
    Calls,
    Direction,
    Figures,
    Kind,
    Protocol,
    RowKind,
)
from meshwright.traffic.traffic import BySource, Caller

IN, OUT, HTTP, TCP = Direction.INBOUND, Direction.OUTBOUND, Protocol.HTTP, Protocol.TCP
BUYER, STORE = Caller("shop", "buyer"), Caller("shop", "store")
TO_STORE, TO_BANK, V2 = (
    CalledPort("shop", "store", 80),
    CalledPort("pay", "bank", 80),
    CalledPort("shop", "v2", 80),
)
PORT, OTHER_PORT = CalledPort("", "", 8080), CalledPort("", "", 9090)


def counted(requests: int) -> Figures:
    """Return the figures of so many requests."""
    return Figures((0, requests, 0, 0, 0))


FOUND: dict[BySource, Figures] = {
    (BUYER, Calls(Kind.EDGE, OUT, HTTP, TO_STORE)): counted(1),
    (BUYER, Calls(Kind.EDGE, OUT, HTTP, TO_BANK)): counted(2),
    (STORE, Calls(Kind.EDGE, OUT, HTTP, TO_BANK)): counted(4),
    (BUYER, Calls(Kind.EDGE, OUT, HTTP, OTHERS)): counted(8),
    (STORE, Calls(Kind.EDGE, IN, HTTP, PORT)): counted(16),
    (STORE, Calls(Kind.EDGE, IN, HTTP, OTHER_PORT)): counted(32),
    (STORE, Calls(Kind.EDGE, IN, TCP, OTHER_PORT)): counted(0),
    (BUYER, Calls(Kind.BACKEND, OUT, HTTP, V2)): counted(64),
    (STORE, Calls(Kind.ROUTE, IN, HTTP, PORT, "shop/api.get")): counted(128),
    (BUYER, Calls(Kind.ROUTE, OUT, HTTP, TO_BANK, "pay/all")): counted(256),
}


def test_service_is_counted_by_its_own_sidecars_or_else_by_its_callers() -> None:
    """Inbound figures come first; the bank has none, so the figures of its callers are used.

    The ports of a service are added up, and calls to OTHERS belong to no service.
    """
    bank, store = CalledPort("pay", "bank", 0), CalledPort("shop", "store", 0)
    assert rows(RowKind.SERVICES, FOUND) == (
        Row(None, bank, OUT, HTTP, counted(6)),
        Row(None, store, IN, HTTP, counted(48)),
        Row(None, store, IN, TCP, counted(0)),
    )


def test_edges_are_counted_by_the_callers_sidecar() -> None:
    """Only the caller's sidecar knows both ends of an edge."""
    assert rows(RowKind.EDGES, FOUND) == (
        Row(BUYER, OTHERS, OUT, HTTP, counted(8)),
        Row(BUYER, TO_BANK, OUT, HTTP, counted(2)),
        Row(STORE, TO_BANK, OUT, HTTP, counted(4)),
        Row(BUYER, TO_STORE, OUT, HTTP, counted(1)),
    )


def test_rows_of_routes_and_backends_have_the_ends_that_are_known() -> None:
    """An inbound route has its service's port and no caller; a backend has its caller."""
    assert rows(RowKind.ROUTES, FOUND) == (
        Row(BUYER, TO_BANK, OUT, HTTP, counted(256), route="pay/all"),
        Row(None, CalledPort("shop", "store", 8080), IN, HTTP, counted(128), route="shop/api.get"),
    )
    assert rows(RowKind.BACKENDS, FOUND) == (Row(BUYER, None, OUT, HTTP, counted(64), backend=V2),)


def test_proxies_have_a_row_for_each_direction() -> None:
    """Inbound and outbound calls of each proxy are separate rows, sorted by proxy."""
    one, two = (ProxyName.parse(f"{item}.store.shop") for item in ("one", "two"))
    every = Calls(Kind.EDGE, OUT, HTTP, OTHERS), Calls(Kind.EDGE, IN, HTTP, OTHERS)
    result = {(two, every[0]): counted(1), (one, every[0]): counted(2), (one, every[1]): counted(3)}
    assert of_proxies(result) == (
        Row(None, None, IN, HTTP, counted(3), proxy=one),
        Row(None, None, OUT, HTTP, counted(2), proxy=one),
        Row(None, None, OUT, HTTP, counted(1), proxy=two),
    )


def test_rows_are_filtered_by_whole_names_of_their_ends() -> None:
    """The filter `pa` does not match `pay`; an apex matches only with its backends in `behind`."""
    every = rows(RowKind.EDGES, FOUND)
    assert RowFilter().select(every) == every
    assert [row.source for row in RowFilter(destination="pay/bank").select(every)] == [BUYER, STORE]
    assert [row.destination for row in RowFilter(source="shop/store").select(every)] == [TO_BANK]
    assert [row.destination for row in RowFilter(service="shop/store").select(every)] == [TO_BANK, TO_STORE]
    assert len(RowFilter(namespace="pay").select(every)) == 2
    assert RowFilter(namespace="pa").select(every) == ()
    backends = rows(RowKind.BACKENDS, FOUND)
    assert len(RowFilter(service="shop/v2").select(backends)) == 1
    assert RowFilter(destination="shop/apex").select(backends) == ()
    assert len(RowFilter(destination="shop/apex", behind=frozenset({"shop/v2"})).select(backends)) == 1
    store = rows(RowKind.SERVICES, FOUND)
    assert len(RowFilter(service="shop/store").select(store)) == 2
