"""Tests of the tables of traffic statistics."""

import io

import pytest
from rich.console import Console

from meshwright.cli.printing.responses import Found
from meshwright.cli.printing.statistics import figures_tables, remark

STORE: dict[str, object] = {"namespace": "shop", "service": "store", "port": 80}
BUYER = {"namespace": "shop", "service": "buyer"}
EDGE: dict[str, object] = {
    "source": BUYER,
    "destination": STORE,
    "proxy": None,
    "route": None,
    "backend": None,
    "direction": "outbound",
    "protocol": "http",
    "per_second": 2.04,
    "success": 0.98333,
    "failures": 2,
    "p50_ms": 3.1,
    "p95_ms": 8.7,
    "p99_ms": None,
    "retries": 4,
    "connections": 1,
}


def printed(of: str, *rows: Found) -> list[list[str]]:
    """Return the lines of a table, split into cells."""
    out = io.StringIO()
    (table,) = figures_tables(of, {"rows": list(rows)})
    Console(file=out, width=240).print(table)
    return [line.split() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("of", "row", "cells"),
    [
        ("edges", EDGE, ["shop/buyer", "shop/store:80", "http"]),
        ("services", EDGE | {"destination": STORE | {"port": None}}, ["shop/store", "http"]),
        ("proxies", EDGE | {"proxy": "one.buyer.shop"}, ["one.buyer.shop", "outbound", "http"]),
        ("routes", EDGE | {"route": "shop/api.get", "source": None}, ["shop/api.get", "shop/store:80", "-"]),
        ("backends", EDGE | {"backend": {**STORE, "service": "v2"}}, ["shop/buyer", "shop/v2:80", "4"]),
    ],
)
def test_each_kind_of_row_has_its_own_columns(of: str, row: dict[str, object], cells: list[str]) -> None:
    """The first columns depend on the kind, and the figures after them are the same."""
    header, line = printed(of, row)
    assert line == [*cells, "98.33%", "2.0", "3.1ms", "8.7ms", "-", "2", "1"]
    assert len(header) == len(line)


def test_missing_figures_are_shown_as_a_dash() -> None:
    """A row without answers has no success rate, and TCP has no request rate."""
    _, line = printed("edges", EDGE | {"protocol": "tcp", "success": None, "p50_ms": None, "p95_ms": None})
    assert line[3:] == ["-", "-", "-", "-", "-", "2", "1"]


@pytest.mark.parametrize(
    ("told", "here", "expected"),
    [
        (2, 2, ""),
        (3, 2, ""),
        (1, 2, "only 1 of 2 connected proxies have reported statistics recently"),
        (None, None, ""),
    ],
)
def test_missing_reports_of_proxies_are_remarked(told: object, here: object, expected: str) -> None:
    """The remark prevents that missing reports are taken for missing traffic."""
    assert remark({"reporting": {"proxies": told, "connected": here}}) == expected
