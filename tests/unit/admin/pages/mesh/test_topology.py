"""The topology as it is answered: what a lying proxy can do to it."""

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
    *(texts.account(each) for each in ("buyer", "store", "liar")),
    *(texts.service(each) for each in ("buyer", "store", "liar")),
    texts.workload("buyer", "10.0.0.1"),
    texts.workload("store", "10.0.0.2", account="store"),
    texts.workload("liar", "10.0.0.3", account="liar"),
    texts.route_group("routes", texts.match("all")),
    texts.target("buyers", "buyer", "store", texts.http("routes")),
)
WELL, FAILED = Figures((0, 100, 0, 0, 0)), Figures((0, 0, 0, 0, 1000))


@dataclass
class Reading:
    """A mesh whose proxies have reported."""

    mesh: View = field(default_factory=lambda: view(*MESH))
    told: Traffic = field(default_factory=Traffic)

    def view(self) -> View:
        """Return the mesh."""
        return self.mesh

    def traffic(self) -> Traffic:
        """Return what was reported."""
        return self.told

    def proxies(self) -> tuple[()]:
        """Return no proxy."""
        return ()

    def streams(self) -> tuple[()]:
        """Return no stream."""
        return ()

    def report(self, by: str, *called: str, figures: Figures = WELL, namespace: str = "shop") -> None:
        """Have a proxy of a service report calls."""
        rows = tuple(
            (Calls(Kind.EDGE, Direction.OUTBOUND, Protocol.HTTP, CalledPort(namespace, each, 80)), figures)
            for each in called
        )
        self.told.take(ProxyName.parse(f"one.{by}.shop"), Report("a", 1, 10.0, rows), time.monotonic())


async def answered(reading: Reading, **query: str) -> dict[str, Any]:
    """Return what the page and the API answer."""
    return dict(await topology(reading, query, NOW))  # type: ignore[arg-type]


async def rows(reading: Reading, of: RowKind, **query: str) -> dict[str, Any]:
    """Return what is answered of rows."""
    return dict(await stat(reading, of, query, NOW))  # type: ignore[arg-type]


def verdicts(found: dict[str, Any]) -> dict[str, str]:
    """Return the verdict of each node."""
    return {each["id"]: each["verdict"] for each in found["nodes"]}


async def test_a_proxy_that_may_not_call_a_service_cannot_make_it_look_failed() -> None:
    """Its word is shown as what it is: not allowed by policy, not verified."""
    reading = Reading()
    reading.report("buyer", "store")
    before = verdicts(await answered(reading))
    reading.report("liar", "store", "buyer", figures=FAILED)
    found = await answered(reading)
    assert verdicts(found) == before
    marks = {(e["source"], e["destination"]): (e["allowed"], e["verified"]) for e in found["edges"]}
    assert marks == {
        ("shop/buyer", "shop/store"): (True, True),
        ("shop/liar", "shop/store"): (False, False),
        ("shop/liar", "shop/buyer"): (False, False),
    }
    by_namespace = await answered(reading, by="namespace")
    assert verdicts(by_namespace) == {"shop": before["shop/liar"]}


async def test_a_caller_that_policy_allows_is_believed() -> None:
    """The negative control: calls that fail by those who may call make a service look failed."""
    reading = Reading()
    reading.report("buyer", "store", figures=FAILED)
    assert verdicts(await answered(reading))["shop/store"] == "failed"


async def test_rows_of_services_are_told_by_callers_that_policy_allows() -> None:
    """Nor does the word of one that may not call make a row of a service."""
    reading = Reading()
    reading.report("liar", "store", figures=FAILED)
    assert (await rows(reading, RowKind.SERVICES))["rows"] == []
    reading.report("buyer", "store")
    (row,) = (await rows(reading, RowKind.SERVICES))["rows"]
    assert (row["requests"], row["success"]) == (100, 1.0)


async def test_long_answers_have_pages() -> None:
    """Edges and rows are answered from one on, so many at most, with how many there are in all."""
    reading = Reading()
    reading.report("liar", *(f"s{number:03}" for number in range(90)), namespace="")
    whole = await answered(reading)
    assert whole["edges_in_all"] == len(whole["edges"]) == 91
    part = await answered(reading, limit="10", offset="85")
    assert (part["edges_in_all"], part["edges"]) == (91, whole["edges"][85:])
    found = await rows(reading, RowKind.EDGES, limit="2", offset="1")
    assert (found["rows_in_all"], len(found["rows"])) == (90, 2)


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "-1"}, {"limit": "x"}, {"offset": "1e3"}, {"limit": "9" * 5000}]
)
async def test_a_page_that_is_none_is_refused(query: dict[str, str]) -> None:
    """The answer names the parameter and what would be right."""
    with pytest.raises(web.HTTPBadRequest) as refused:
        await topology(Reading(), query, NOW)  # type: ignore[arg-type]
    assert next(iter(query)) in refused.value.reason
    assert "must be a number from" in refused.value.reason


class Counting(dict[Any, Any]):
    """Edges that count how many of them were looked at."""

    looked_at = 0

    def items(self) -> Any:
        """Yield all, and count them."""
        for each in super().items():
            self.looked_at += 1
            yield each


def test_the_verdicts_of_all_nodes_take_one_look_at_each_edge() -> None:
    """A proxy that reports thousands of names does not keep the page from answering."""
    names = [("made-up", f"s{number}") for number in range(500)]
    edges = Counting({(("shop", "liar"), each): Seen(figures=FAILED) for each in names})
    found = _nodes(Graph({each: Proxies() for each in names}, edges), "service")
    assert edges.looked_at == len(found) == 500
