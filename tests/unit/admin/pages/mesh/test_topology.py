"""Tests of the topology page and API: the effect of false reports by a proxy."""

import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from catalog.store.view import View
from meshwright.admin.pages.mesh.topology import _nodes, topology
from meshwright.admin.pages.mesh.traffic import stat
from meshwright.admin.topology.graph import Calls as Seen
from meshwright.admin.topology.graph import Graph, Proxies
from meshwright.mesh.identity import ProxyName
from meshwright.traffic.statistics import (
    CalledPort,
    Calls,
    Direction,
    Figures,
    Kind,
    Protocol,
    Report,
    RowKind,
)
from meshwright.traffic.traffic import Traffic
from tests.meshes import texts
from tests.meshes.views import view
from tests.unit.conftest import NOW

MESH = (
    *(texts.account(item) for item in ("buyer", "store", "liar")),
    *(texts.service(item) for item in ("buyer", "store", "liar")),
    texts.workload("buyer", "10.0.0.1"),
    texts.workload("store", "10.0.0.2", account="store"),
    texts.workload("liar", "10.0.0.3", account="liar"),
    texts.route_group("routes", texts.match("all")),
    texts.target("buyers", "buyer", "store", texts.http("routes")),
)
WELL, FAILED = Figures((0, 100, 0, 0, 0)), Figures((0, 0, 0, 0, 1000))


@dataclass
class Reading:
    """Fake reading of a mesh whose proxies have reported traffic."""

    mesh: View = field(default_factory=lambda: view(*MESH))
    told: Traffic = field(default_factory=Traffic)

    def view(self) -> View:
        """Return the mesh."""
        return self.mesh

    def traffic(self) -> Traffic:
        """Return the reported traffic."""
        return self.told

    def proxies(self) -> tuple[()]:
        """Return no proxies."""
        return ()

    def streams(self) -> tuple[()]:
        """Return no streams."""
        return ()

    def report(self, by: str, *called: str, figures: Figures = WELL, namespace: str = "shop") -> None:
        """Record a report of calls by a proxy of a service."""
        rows = tuple(
            (Calls(Kind.EDGE, Direction.OUTBOUND, Protocol.HTTP, CalledPort(namespace, item, 80)), figures)
            for item in called
        )
        self.told.take(ProxyName.parse(f"one.{by}.shop"), Report("a", 1, 10.0, rows), time.monotonic())


async def answered(reading: Reading, **query: str) -> dict[str, Any]:
    """Return the topology, as the page and the API show it."""
    return dict(await topology(reading, query, NOW))  # type: ignore[arg-type]


async def rows(reading: Reading, of: RowKind, **query: str) -> dict[str, Any]:
    """Return the statistics by rows of a kind."""
    return dict(await stat(reading, of, query, NOW))  # type: ignore[arg-type]


def verdicts(result: dict[str, Any]) -> dict[str, str]:
    """Return the verdict of each node."""
    return {node["id"]: node["verdict"] for node in result["nodes"]}


async def test_proxy_without_permission_cannot_make_a_service_look_failed() -> None:
    """Calls that policy refuses are marked as not allowed and not verified.

    They do not change a node's verdict.
    """
    reading = Reading()
    reading.report("buyer", "store")
    before = verdicts(await answered(reading))
    reading.report("liar", "store", "buyer", figures=FAILED)
    result = await answered(reading)
    assert verdicts(result) == before
    marks = {(e["source"], e["destination"]): (e["allowed"], e["verified"]) for e in result["edges"]}
    assert marks == {
        ("shop/buyer", "shop/store"): (True, True),
        ("shop/liar", "shop/store"): (False, False),
        ("shop/liar", "shop/buyer"): (False, False),
    }
    by_namespace = await answered(reading, by="namespace")
    assert verdicts(by_namespace) == {"shop": before["shop/liar"]}


async def test_report_of_an_allowed_caller_makes_a_service_look_failed() -> None:
    """Negative control: failing calls of an allowed caller make the called service look failed."""
    reading = Reading()
    reading.report("buyer", "store", figures=FAILED)
    assert verdicts(await answered(reading))["shop/store"] == "failed"


async def test_rows_of_services_use_reports_of_allowed_callers_only() -> None:
    """Reports of a caller without permission make no row of a service."""
    reading = Reading()
    reading.report("liar", "store", figures=FAILED)
    assert (await rows(reading, RowKind.SERVICES))["rows"] == []
    reading.report("buyer", "store")
    (row,) = (await rows(reading, RowKind.SERVICES))["rows"]
    assert (row["requests"], row["success"]) == (100, 1.0)


async def test_long_answers_are_paged() -> None:
    """Edges and rows are answered from an offset up to a limit, together with their total number."""
    reading = Reading()
    reading.report("liar", *(f"s{number:03}" for number in range(90)), namespace="")
    whole = await answered(reading)
    assert whole["edges_in_all"] == len(whole["edges"]) == 91
    part = await answered(reading, limit="10", offset="85")
    assert (part["edges_in_all"], part["edges"]) == (91, whole["edges"][85:])
    result = await rows(reading, RowKind.EDGES, limit="2", offset="1")
    assert (result["rows_in_all"], len(result["rows"])) == (90, 2)


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "-1"}, {"limit": "x"}, {"offset": "1e3"}, {"limit": "9" * 5000}]
)
async def test_invalid_limit_or_offset_is_refused(query: dict[str, str]) -> None:
    """The error names the parameter and the accepted range."""
    with pytest.raises(web.HTTPBadRequest) as refused:
        await topology(Reading(), query, NOW)  # type: ignore[arg-type]
    assert next(iter(query)) in refused.value.reason
    assert "must be a number from" in refused.value.reason


class Counting(dict[Any, Any]):
    """Edges that count how often one of them is read."""

    looked_at = 0

    def items(self) -> Any:
        """Yield all edges, and count them."""
        for item in super().items():
            self.looked_at += 1
            yield item


def test_verdicts_of_all_nodes_read_each_edge_once() -> None:
    """The work is linear in the edges. A proxy that reports thousands of names cannot block the page."""
    names = [("made-up", f"s{number}") for number in range(500)]
    edges = Counting({(("shop", "liar"), name): Seen(figures=FAILED) for name in names})
    result = _nodes(Graph({name: Proxies() for name in names}, edges), "service")
    assert edges.looked_at == len(result) == 500
