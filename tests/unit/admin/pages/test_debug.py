"""Tests of the debug pages, by whole values."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from meshwright.admin.jsonable import Document
from meshwright.admin.pages import debug
from meshwright.admin.pages.mesh.certificates import certificates
from meshwright.admin.pages.mesh.sources import sources
from meshwright.admin.pages.proxies.proxies import proxies
from meshwright.admin.pages.proxies.streams import streams


def _all_pages(reading: Any, now: Any) -> dict[str, Callable[[], Document]]:
    return {
        "xds": lambda: streams(reading),
        "proxy": lambda: {"proxies": list(proxies(reading, reading.ledger(), now))},
        "certs": lambda: asyncio.run(certificates(reading, now)),
        "policies": lambda: asyncio.run(debug.policies(reading)),
        "config": lambda: debug.config(reading),
        "loop": lambda: debug.loop(reading),
        "access": lambda: debug.access(reading),
        "sources": lambda: sources(reading, now),
    }


def test_pages_contain_no_private_key(reading: Any, now: Any) -> None:
    """No page contains the private key of the reading, and every page is JSON."""
    for page in _all_pages(reading, now).values():
        text = json.dumps(page())
        assert "SECRET" not in text
        assert "PRIVATE KEY" not in text


def test_pages_before_the_first_view_are_empty(now: Any, empty_reading: Any) -> None:
    """A server that has just started answers all pages, with empty lists instead of errors."""
    shown = {name: page() for name, page in _all_pages(empty_reading, now).items()}
    assert shown["proxy"] == {"proxies": []}
    assert shown["access"] == {"access": []}
    assert shown["config"] == {
        "mesh_config": None,
        "settings": {"mesh": "m"},
        "listening": {"http": "127.0.0.1:9091"},
    }


def test_late_moments_are_shown(reading: Any) -> None:
    """Each late moment shows its time, its length and the phase of the wave."""
    moment = {"at": "2026-01-02T03:04:05.000Z", "seconds": 0.042, "doing": "computing"}
    assert debug.loop(reading) == {"late": [moment]}


async def test_policies_are_shown_with_origin_and_problems(reading: Any) -> None:
    """Objects in force are sorted by kind; a problem is shown in parts and as one line."""
    shown: Any = await debug.policies(reading)
    assert [(item["kind"], item["name"], item["stale"]) for item in shown["objects"]] == [
        ("HTTPRouteGroup", "routes", False),
        ("Service", "store", False),
        ("TrafficTarget", "buyers", False),
        ("Workload", "buyer-1", False),
        ("Workload", "store-1", False),
    ]
    assert shown["problems"] == [
        {
            "severity": "error",
            "code": "MW1",
            "origin": "f.yaml:9 (document 2)",
            "object": "K n/x",
            "field": "spec.a",
            "value": "1",
            "expected": "two",
            "line": "MW1 f.yaml:9 (document 2): K n/x: spec.a is 1: two",
        }
    ]
    assert shown["failures"] == [{"group": "shop/store|store|00", "error": "ValueError: x", "kept": True}]


def test_access_shows_each_pair_with_its_requests_and_reasons(reading: Any) -> None:
    """HTTP rules permit these requests at the HTTP port, and allow no caller at the TCP port."""
    shown: Any = debug.access(reading)
    assert [
        (item["source"], item["port"], item["allowed"], item["by"], item["requests"])
        for item in shown["access"]
    ] == [
        ("shop/buyer", 80, True, ["TrafficTarget shop/buyers"], ["GET,PUT /buy", "* * x-kind=b.*"]),
        ("shop/buyer", 90, False, [], None),
        ("shop/store", 80, False, [], []),
        ("shop/store", 90, False, [], None),
    ]


def test_hosts_are_one_line_of_names_per_service(reading: Any) -> None:
    """A service has one line with all its names; the short name is included for its own namespace."""
    shown: Any = debug.hosts_lines(reading.view(), "shop")
    (line,) = shown["hosts"]
    assert line["names"] == ["store", "store.shop", "store.shop.svc", "store.shop.svc.cluster.local"]
