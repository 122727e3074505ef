"""What the pages say, whole values."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from admin import debug
from admin.reading import ProxyStanding, ProxyState
from xds.status import StreamStatus, SyncState
from xds.wire import Rejection


def _all_pages(reading: Any, now: Any) -> dict[str, Callable[[], debug.Document]]:
    return {
        "xds": lambda: debug.xds(reading),
        "proxy": lambda: debug.proxies(reading),
        "certs": lambda: debug.certificates(reading, now),
        "policies": lambda: debug.policies(reading),
        "config": lambda: debug.config(reading),
        "access": lambda: debug.access(reading),
        "sources": lambda: debug.sources(reading, now),
    }


def test_no_page_shows_a_key(reading: Any, now: Any) -> None:
    """Every page is JSON, and the one key there is stands in none of them."""
    for page in _all_pages(reading, now).values():
        text = json.dumps(page())
        assert "SECRET" not in text
        assert "PRIVATE KEY" not in text


def test_pages_before_the_first_view_are_empty_and_not_errors(now: Any, empty_reading: Any) -> None:
    """A server that has just begun can be asked everything."""
    shown = {name: page() for name, page in _all_pages(empty_reading, now).items()}
    assert shown["proxy"] == {"proxies": []}
    assert shown["access"] == {"access": []}
    assert shown["config"] == {"mesh_config": None, "settings": {"mesh": "m"}}


def test_a_stream_is_shown_with_each_type(stream_of: Callable[..., StreamStatus]) -> None:
    """Version, nonce, last sent, the error of a NACK, names."""
    status = stream_of(3, (SyncState.REJECTED, Rejection(3, "bad listener")))
    assert debug.stream(status) == {
        "stream": 3,
        "proxy": "uuid-1.store.shop",
        "node": "uuid-1.store.shop",
        "user_agent": "envoy 1.40.0",
        "peer": "[::1]:5",
        "protocol": "delta",
        "since": "2026-01-02T03:04:05.000Z",
        "served": True,
        "types": {
            "cluster": {
                "type_url": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
                "state": "nacked",
                "version": "v2",
                "nonce": "7",
                "last_sent": "2026-01-02T03:04:05.000Z",
                "acknowledged_version": "v1",
                "error": {"code": 3, "message": "bad listener", "resources": ["a"]},
                "wildcard": True,
                "names": ["a"],
            }
        },
    }


def test_the_worst_of_a_proxy_s_streams_counts(stream_of: Callable[..., StreamStatus]) -> None:
    """One stream in step does not hide another that is not."""
    synced = stream_of(1, (SyncState.SYNCED, None))
    pending = stream_of(2, (SyncState.PENDING, None))
    nacked = stream_of(3, (SyncState.REJECTED, None))
    assert debug.sync([synced]) == {"cluster": "synced"}
    assert debug.sync([synced, pending]) == {"cluster": "pending"}
    assert debug.sync([nacked, pending, synced]) == {"cluster": "nacked"}


def test_a_reconnected_delta_client_that_needs_nothing_is_in_step(
    stream_of: Callable[..., StreamStatus],
) -> None:
    """Unless it is held: then it waits for everything."""
    assert debug.sync([stream_of(1, (SyncState.ASKED, None))]) == {"cluster": "synced"}
    assert debug.sync([stream_of(1, (SyncState.ASKED, None), served=False)]) == {"cluster": "asked"}


def test_a_connected_proxy_is_shown(reading: Any) -> None:
    """Who, where, since when, and in which step."""
    assert debug.proxies(reading) == {
        "proxies": [
            {
                "uuid": "uuid-1",
                "service": "store",
                "namespace": "shop",
                "cn": "uuid-1.store.shop",
                "state": "connected",
                "held": False,
                "address": "127.0.0.1:5",
                "since": "2026-01-02T03:04:05.000Z",
                "workload": "shop/store-1",
                "identity": "shop/store",
                "streams": 1,
                "protocol": "delta",
                "sync": {"cluster": "synced"},
            }
        ]
    }


def test_a_proxy_that_is_connected_and_cannot_be_served_is_held(
    reading: Any, stream_of: Callable[..., StreamStatus], now: Any
) -> None:
    """It is not one that is expected: something must be said of its workload."""
    name = reading.the_proxies[0].name
    standing = ProxyStanding(name, ProxyState.CONNECTED, "", now, known=False)
    shown = debug.proxy(standing, [stream_of(1, served=False)], reading.view())
    assert (shown["held"], shown["workload"], shown["address"]) == (True, None, None)


def test_certificates_are_shown_by_what_they_say(reading: Any, now: Any) -> None:
    """Service certificates with their URI, and the ledger."""
    assert debug.certificates(reading, now + timedelta(days=2)) == {
        "service_certificates": [
            {
                "identity": "shop/store",
                "serial": "abc",
                "uri": "spiffe://cluster.local/ns/shop/sa/store",
                "dns_names": ["store.shop.svc.cluster.local"],
                "not_before": "2026-01-02T02:04:05.000Z",
                "not_after": "2026-01-03T02:04:05.000Z",
                "seconds_left": 23 * 3600 - 2 * 86400,
            }
        ],
        "proxy_certificates": [
            {
                "cn": "uuid-1.store.shop",
                "serial": "ab",
                "state": "claimed",
                "issued_at": "2026-01-02T03:04:05.000Z",
                "not_after": "2026-01-03T03:04:05.000Z",
                "claimed_at": "2026-01-02T03:04:05.000Z",
                "revoked_at": None,
                "expired": True,
            }
        ],
    }


def test_policies_are_shown_with_origin_and_problems(reading: Any) -> None:
    """Objects in force by kind; the problem in parts and as one line."""
    shown: Any = debug.policies(reading)
    assert [(each["kind"], each["name"], each["stale"]) for each in shown["objects"]] == [
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


def test_a_source_shows_its_age(reading: Any, now: Any) -> None:
    """Since its last full read."""
    assert debug.sources(reading, now) == {
        "sources": [
            {
                "name": "directory",
                "last_event": "2026-01-02T03:04:05.000Z",
                "last_full_read": "2026-01-02T03:04:02.000Z",
                "age_seconds": 3.0,
                "error": None,
                "error_since": None,
            }
        ]
    }


def test_access_says_who_may_call_what_and_why(reading: Any) -> None:
    """HTTP rules open the HTTP port for these requests, and the TCP port for nobody."""
    shown: Any = debug.access(reading)
    assert [
        (each["source"], each["port"], each["allowed"], each["by"], each["requests"])
        for each in shown["access"]
    ] == [
        ("shop/buyer", 80, True, ["TrafficTarget shop/buyers"], ["GET,PUT /buy", "* * x-kind=b.*"]),
        ("shop/buyer", 90, False, [], None),
        ("shop/store", 80, False, [], []),
        ("shop/store", 90, False, [], None),
    ]


def test_hosts_are_lines_of_names_by_address(reading: Any) -> None:
    """One service, one virtual address; short name within its namespace alone."""
    shown: Any = debug.hosts_lines(reading.view(), "shop")
    (line,) = shown["hosts"]
    assert line["names"] == ["store", "store.shop", "store.shop.svc", "store.shop.svc.cluster.local"]


def test_peers_addresses_are_plain() -> None:
    """Without gRPC's scheme and escapes."""
    shown = [debug.plain_address(peer) for peer in ("ipv4:1.2.3.4:5", "ipv6:%5B::1%5D:5", "unix:/a", "")]
    assert shown == ["1.2.3.4:5", "[::1]:5", "unix:/a", ""]
