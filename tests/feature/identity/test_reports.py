"""Tests of agents' reports over a real connection, and of the statistics that the API shows."""

import math
from typing import Any

import aiohttp
import grpc
import pytest
from jsonschema import Draft202012Validator

from meshwright.admin.api.statistics import STAT
from protos.meshwright.enrolment.v1 import enrolment_pb2 as wire
from tests.feature.identity.conftest import serve
from tests.feature.identity.grpc_machine import REPORT, call, channel
from tests.feature.identity.test_enrolment import PORTS, Serve
from tests.feature.identity.test_identity import NAME, workload

__all__ = ["serve"]

TIMES = (0, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0)
TO_BANK = wire.Edge(
    direction=wire.OUTBOUND,
    protocol=wire.HTTP,
    called=wire.Called(namespace="shop", service="bank", port=80),
    requests=wire.Requests(by_class=(0, 2, 0, 0, 1), by_time=TIMES, seconds=0.1),
    connections=wire.Connections(opened=1, sent_bytes=300, received_bytes=4000),
)
COMING_IN = wire.Edge(
    direction=wire.INBOUND,
    protocol=wire.HTTP,
    called=wire.Called(port=18080),
    requests=wire.Requests(by_class=(0, 9, 0, 0, 0), grpc_failed=3),
)
BEHIND = wire.Backend(
    called=wire.Called(namespace="shop", service="bank-v2", port_name="http"),
    requests=wire.Requests(by_class=(0, 2, 0, 0, 1)),
    connections=wire.Connections(failed=2),
    retries=1,
)
ROUTE = wire.Route(
    direction=wire.INBOUND,
    called=wire.Called(port=18080),
    name="shop/api.get",
    requests=wire.Requests(by_class=(0, 5, 0, 0, 0)),
)


def said(**more: Any) -> bytes:
    """Return a report with rows of every kind."""
    fields: dict[str, Any] = {
        "run": "a",
        "number": 1,
        "seconds": 10.0,
        "edges": [TO_BANK, COMING_IN],
        "backends": [BEHIND],
        "routes": [ROUTE],
    }
    return wire.ReportRequest(**(fields | more)).SerializeToString()


async def test_reported_counts_are_shown_for_the_certificates_proxy(serve: Serve) -> None:
    """Every kind of row is shown. A repeated report is counted once, and the certificate names the source."""
    server = await serve(workload("one"), **PORTS)
    async with channel(server, "renewal", server.certificate(NAME)) as opened:
        for _ in range(2):  # a repeated report, as after a lost answer, is counted once
            answered = await call(opened, REPORT, said())
            assert wire.ReportResponse.FromString(answered.message).next_after_seconds == 10

    async def rows(of: str, query: str = "") -> list[dict[str, object]]:
        result = await server.ask("GET", f"/api/v1/stat/{of}{query}")
        Draft202012Validator(STAT).validate(result)
        assert result["reporting"] == {"proxies": 1, "connected": 0, "every_seconds": 10}
        return [{name: value for name, value in row.items() if value} for row in result["rows"]]

    bank = {"namespace": "shop", "service": "bank", "port": 80}
    store = {"namespace": "shop", "service": "store"}
    (edge,) = await rows("edges")
    rate = edge.pop("per_second")
    assert isinstance(rate, float)
    assert 0.1 < rate <= 0.3
    assert edge == {
        "source": store,
        "destination": bank,
        "direction": "outbound",
        "protocol": "http",
        "requests": 3,
        "success": 0.666667,
        "failures": 1,
        "by_class": {"1xx": 0, "2xx": 2, "3xx": 0, "4xx": 0, "5xx": 1},
        "p50_ms": 8.8,
        "p95_ms": 92.5,
        "p99_ms": 98.5,
        "connections": 1,
        "sent_bytes": 300,
        "received_bytes": 4000,
    }
    services = [(row["destination"], row["direction"], row["success"]) for row in await rows("services")]
    # No policy allows calls to the bank, so the caller's report alone makes no row.
    assert services == [(store | {"port": None}, "inbound", 0.666667)]
    (backend,) = await rows("backends")
    assert (backend["backend"], backend["retries"], backend["connections_failed"]) == (
        bank | {"service": "bank-v2", "port": "http"},
        1,
        2,
    )
    (route,) = await rows("routes")
    assert (route["route"], route["destination"], route["requests"]) == (
        "shop/api.get",
        store | {"port": 18080},
        5,
    )
    proxies = [(row["proxy"], row["direction"], row["requests"]) for row in await rows("proxies")]
    assert proxies == [(NAME, "inbound", 9), (NAME, "outbound", 3)]
    assert await rows("edges", "?from=shop/store&to=shop/bank&window=3600&namespace=shop") != []
    for nothing in ("from=shop/bank", "to=shop/store", "namespace=sho", "service=shop/api"):
        assert await rows("edges", "?" + nothing) == []


BAD: list[tuple[dict[str, object], str]] = [
    ({"run": ""}, "run"),
    ({"run": "x" * 300}, "run"),
    ({"number": 0}, "number"),
    ({"seconds": math.nan}, "seconds"),
    ({"seconds": -1.0}, "seconds"),
    ({"edges": [wire.Edge.FromString(b"\x08\x07\x10\x01")]}, "direction"),
    ({"edges": [wire.Edge(direction=wire.OUTBOUND)]}, "protocol"),
    (
        {"edges": [wire.Edge(direction=wire.OUTBOUND, protocol=wire.HTTP, called=wire.Called(port=65536))]},
        "port",
    ),
    (
        {
            "edges": [
                wire.Edge(direction=wire.OUTBOUND, protocol=wire.HTTP, called=wire.Called(service="x\n"))
            ]
        },
        "service",
    ),
    ({"routes": [wire.Route(direction=wire.INBOUND, name="x" * 300)]}, "route"),
    ({"backends": [wire.Backend(retries=2**40)]}, "retries"),
    ({"backends": [wire.Backend(requests=wire.Requests(by_class=[1, 2]))]}, "by_class"),
    ({"backends": [wire.Backend(requests=wire.Requests(seconds=math.inf))]}, "seconds"),
    ({"backends": [wire.Backend(connections=wire.Connections(sent_bytes=2**63))]}, "sent_bytes"),
]


async def test_invalid_report_is_refused_with_the_field_name(serve: Serve) -> None:
    """No part of an invalid report is counted, and an unissued certificate is refused."""
    server = await serve(workload("one"), **PORTS)
    async with channel(server, "renewal", server.certificate(NAME)) as opened:
        refused = [await call(opened, REPORT, said(**more)) for more, _ in BAD]
        result = [
            (answered.code, name in answered.words) for answered, (_, name) in zip(refused, BAD, strict=True)
        ]
        assert result == [(grpc.StatusCode.INVALID_ARGUMENT, True)] * len(BAD)
        assert (await call(opened, REPORT, b"\xff")).code is grpc.StatusCode.INVALID_ARGUMENT
        assert (await server.ask("GET", "/api/v1/stat/edges"))["rows"] == []
        assert (await call(opened, REPORT, said())).code is grpc.StatusCode.OK
        assert len((await server.ask("GET", "/api/v1/stat/edges"))["rows"]) == 1
    async with channel(server, "renewal", server.certificate(NAME, issued=False)) as opened:
        assert (await call(opened, REPORT, said())).reason == "not_issued"


async def test_reports_of_one_proxy_are_rate_limited(serve: Serve) -> None:
    """Ten reports at once are accepted, then one every two seconds."""
    server = await serve(workload("one"), **PORTS)
    async with channel(server, "renewal", server.certificate(NAME)) as opened:
        codes = [(await call(opened, REPORT, said(number=number))).code for number in range(1, 16)]
    assert codes[:10] == [grpc.StatusCode.OK] * 10
    assert codes[14] is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/stat/edges?window=9", 400, "window is '9': must be 10 to 3600 seconds"),
        ("/stat/edges?window=nan", 400, "window is 'nan'"),
        ("/stat/edges?window=a", 400, "window is 'a'"),
        ("/stat/edges?from=shop", 400, "from is 'shop': must be namespace/service"),
        ("/stat/edges?form=a/b", 400, "unknown parameter 'form': must be one of window, namespace, from"),
        ("/stat/edge", 404, "there is nothing at /api/v1/stat/edge"),
    ],
)
async def test_invalid_statistics_request_is_refused_in_json(
    serve: Serve, path: str, status: int, words: str
) -> None:
    """The error names the valid values, and is JSON for browsers too."""
    server = await serve(workload("one"), **PORTS)
    for accept in ("application/json", "text/html"):
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{server.bound.debug}/api/v1{path}", headers={"Accept": accept}) as answer,
        ):
            assert (answer.status, answer.content_type) == (status, "application/json")
            assert words in (await answer.json())["error"]
