"""Tests of the pages over HTTP: JSON for programs, HTML for browsers, known hosts only."""

import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from certs.ledger.entry import LedgerEntry
from meshwright.admin import jsonable
from meshwright.admin.http import json_responses as answering
from meshwright.admin.jsonable import Document, pieces
from meshwright.admin.pages import debug, routes, site
from meshwright.mesh.objects import SourcedObject
from xds.protocol.resources.snapshot import Snapshot

PATHS = ["/debug/proxy", "/debug/proxy/show", "/debug/xds", "/debug/xds/diff", "/debug/published"]
PATHS += [
    "/debug/policies",
    "/debug/traffic",
    "/debug/topology",
    "/debug/access",
    "/debug/explain",
    "/debug/connectivity",
    "/debug/certs",
    "/debug/config",
    "/debug/loop",
    "/debug/sources",
]


@pytest.fixture
async def client(reading: Any, now: Any) -> AsyncIterator[TestClient[Any, Any]]:
    """Serve the pages of the small mesh."""
    reading.the_snapshot = Snapshot.of([])
    app = site.application(routes.pages(reading, lambda: now), ("mesh.example",), lambda: now)
    async with TestClient(TestServer(app)) as test_client:
        yield test_client


async def test_index_lists_every_page(client: TestClient[Any, Any]) -> None:
    """The index lists every page, and each listed page exists."""
    assert list(await (await client.get("/debug")).json()) == PATHS
    for path in ["/", "/debug", "/debug/", *PATHS]:
        response = await client.get(path)
        assert (response.status, response.content_type) == (200, "application/json")


async def test_pages_for_browsers_allow_only_our_own_script(client: TestClient[Any, Any]) -> None:
    """The Content-Security-Policy allows only our own script, which is served with its media type."""
    for path in ["/debug", *PATHS]:
        response = await client.get(path, headers={"Accept": "text/html,*/*"})
        text = await response.text()
        assert (response.status, response.content_type) == (200, "text/html")
        assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
        policy = response.headers["Content-Security-Policy"].split("; ")
        assert {"script-src 'self'", "connect-src 'self'"} <= {*policy}
        assert not [item for item in policy if "unsafe" in item or "*" in item]
        assert text.count("<script") == text.count('<script src="/debug/live.js" defer></script>') == 1
        assert 'href="/debug/certs"' in text
    script = await client.get("/debug/live.js")
    assert (script.status, script.content_type) == (200, "text/javascript")
    assert script.headers["X-Content-Type-Options"] == "nosniff"


async def test_ledger_is_read_outside_the_event_loop(
    client: TestClient[Any, Any], reading: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is read in another thread. The file grows with the certificates and would block the loop."""
    read = list[threading.Thread]()

    def ledger() -> tuple[LedgerEntry, ...]:
        read.append(threading.current_thread())
        return ()

    monkeypatch.setattr(reading, "ledger", ledger)
    one = "proxy=uuid-1"
    asked = "from=shop/buyer&to=shop/store:80"
    for path in ["/debug", *PATHS, *(f"/debug/{each}?{one}" for each in ("proxy", "proxy/show", "xds"))]:
        for accepted in ("*/*", "text/html"):
            assert (await client.get(path, headers={"Accept": accepted})).status == 200
    assert (await client.get(f"/debug/connectivity?{asked}")).status == 200
    assert len(read) >= 5
    assert threading.current_thread() not in read


async def test_long_page_is_encoded_outside_the_event_loop(
    client: TestClient[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long page is encoded as JSON in another thread, because thousands of certificates are megabytes."""
    monkeypatch.setattr(jsonable, "HANDFUL", 1)  # so that each page counts as long
    wrote = list[threading.Thread]()

    def noted(document: Document) -> Iterator[str]:
        wrote.append(threading.current_thread())
        return pieces(document)

    monkeypatch.setattr(answering, "pieces", noted)
    for path in PATHS:
        await client.get(path)
    assert len(wrote) == len(PATHS)
    assert threading.current_thread() not in wrote


async def test_short_page_needs_no_thread(
    client: TestClient[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short page is encoded without a thread, so that it works while all threads wait for a disk."""

    def wrote(document: Document) -> Iterator[str]:
        raise AssertionError(document)

    monkeypatch.setattr(answering, "pieces", wrote)
    client_responses = [
        await client.get(path) for path in ("/debug", "/debug/loop", "/debug/sources", "/debug/nothing")
    ]
    assert [client_response.status for client_response in client_responses] == [200, 200, 200, 404]


async def test_objects_are_encoded_outside_the_event_loop(
    client: TestClient[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of policies encodes all objects in force in another thread, because a mesh can be large."""
    wrote = list[threading.Thread]()

    def sourced(sourced_object: SourcedObject) -> Document:
        wrote.append(threading.current_thread())
        return {"name": sourced_object.key.name}

    monkeypatch.setattr(debug, "sourced", sourced)
    shown = await (await client.get("/debug/policies")).json()
    assert len(wrote) == len(shown["objects"]) > 0
    assert threading.current_thread() not in wrote


@pytest.mark.parametrize("wanted", ["uuid-1", "uuid-1.store.shop"])
async def test_proxy_is_found_by_uuid_and_by_name(client: TestClient[Any, Any], wanted: str) -> None:
    """A proxy is found by UUID and by common name, and shown with its configuration by type."""
    shown = await (await client.get("/debug/proxy", params={"proxy": wanted})).json()
    assert shown["cn"] == "uuid-1.store.shop"
    assert list(shown["configuration"]) == ["cluster", "endpoint", "secret", "listener", "route"]


async def test_call_is_explained_with_steps_and_missing_objects(client: TestClient[Any, Any]) -> None:
    """The answer has steps with origins, missing objects and manifests; an invalid question gets 400."""
    asked = {"from": "shop/buyer", "to": "shop/store:80", "path": "/sell"}
    shown = await (await client.get("/debug/explain", params=asked)).json()
    assert (shown["answer"], [item["kind"] for item in shown["missing"]]) == (
        "refused",
        ["HTTPRouteGroup", "TrafficTarget"],
    )
    assert (shown["policy"], shown["in_force"]) == ("refused", "unknown")
    assert shown["in_force_because"] == ["uuid-2.buyer.shop is not connected"]
    objects = [(item["object"], item["origin"]) for step in shown["steps"] for item in step["objects"]]
    assert ("TrafficTarget shop/buyers", "mesh.yaml:31 (document 5)") in objects
    messages = [(item["object"], item["decides"], item["manifest"]["kind"]) for item in shown["objects"]]
    assert messages == [
        ("TrafficTarget shop/buyers", False, "TrafficTarget"),
        ("HTTPRouteGroup shop/routes", False, "HTTPRouteGroup"),
    ]
    response = await client.get("/debug/explain", params={"from": "x"})
    assert response.status == 400
    assert await response.json() == {"error": "from is 'x': must be <namespace>/<service account>"}


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (
            "/debug/proxy?proxy=nobody",
            "proxy 'nobody' does not exist; known proxies: shop/store-1 (uuid-1.store.shop)",
        ),
        ("/debug/proxy/show?section=routes", "proxy is missing: ?proxy="),
        (
            "/debug/proxy/show?proxy=uuid-1&section=x",
            "section 'x' is unknown: must be one of listeners, routes",
        ),
        ("/debug/xds?proxy=uuid-1&resource=x", "resource is 'x': must be <type>/<name>"),
        ("/debug/xds/diff?proxy=uuid-1", "type is missing: ?proxy="),
        (
            "/debug/xds/diff?proxy=uuid-1&type=x&name=y",
            "type 'x' is unknown: must be one of cluster, endpoint",
        ),
    ],
)
async def test_missing_proxy_or_resource_is_404_with_one_sentence(
    client: TestClient[Any, Any], path: str, sentence: str
) -> None:
    """A missing or invalid parameter gets 404 with one sentence in JSON."""
    response = await client.get(path)
    assert response.status == 404
    assert (await response.json())["error"].startswith(sentence)


async def test_pushes_of_a_proxy_are_shown_with_the_objects_of_a_resource(
    client: TestClient[Any, Any],
) -> None:
    """A proxy's streams and pushes are shown, and the objects of a named resource."""
    asked = {"proxy": "store-1", "resource": "route/rds-inbound.8080"}
    shown = await (await client.get("/debug/xds", params=asked)).json()
    assert (shown["proxy"], len(shown["streams"]), len(shown["pushes"])) == ("uuid-1.store.shop", 1, 1)
    assert shown["objects"] == [
        {"object": "TrafficTarget shop/buyers", "origin": "mesh.yaml:31 (document 5)"}
    ]


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:1", 200), ("mesh.example", 200), ("[::1]:9092", 200), ("evil.example", 421)],
)
async def test_requests_for_unknown_hosts_get_421(
    client: TestClient[Any, Any], host: str, status: int
) -> None:
    """A request for an unknown host gets 421, because an attacker's DNS name can resolve to this server."""
    response = await client.get("/debug/certs", headers={"Host": host})
    assert response.status == status


async def test_pages_accept_no_commands(client: TestClient[Any, Any]) -> None:
    """The pages have no commands, because these are served on the Unix socket alone."""
    assert (await client.post("/certs/revoke", json={"serial": "ab"})).status == 404
    assert (await client.post("/debug/certs")).status == 405
