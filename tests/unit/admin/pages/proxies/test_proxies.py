"""Tests of proxies as they are shown, by whole values."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from catalog.store.settings import EndpointAdmission
from catalog.store.view import MeshSettings, View
from meshwright.admin.pages.proxies.proxies import NAMED, proxies, proxy
from meshwright.admin.pages.proxies.sync_reason import ProxyEvidence
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.providers.directory.source import DirectorySource
from tests.unit.admin.conftest import NAME
from xds.protocol.resources.resource import LISTENER, ResourceName
from xds.stream_status import StreamStatus


def test_connected_proxy_is_shown_with_all_fields(reading: Any, now: Any) -> None:
    """A connected proxy shows its identity, address, age, workload and state per type."""
    assert list(proxies(reading, reading.ledger(), now)) == [
        {
            "uuid": "uuid-1",
            "service": "store",
            "namespace": "shop",
            "cn": "uuid-1.store.shop",
            "state": "connected",
            "held": False,
            "admitted": True,
            "why": "",
            "ejected_by": [],
            "dead": False,
            "address": "127.0.0.1:5",
            "since": "2026-01-02T03:04:05.000Z",
            "age": "0 s",
            "age_seconds": 0.0,
            "workload": "shop/store-1",
            "pod": None,
            "node": None,
            "identity": "shop/store",
            "streams": 1,
            "protocol": "delta",
            "sync": {"cluster": "synced"},
            "pending_seconds": {},
        }
    ]


def test_proxy_of_a_pod_is_shown_with_its_pod_and_node(reading: Any, tmp_path: Path, now: Any) -> None:
    """The pod and the node are shown, because kubectl needs both."""
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / "pod.yaml").write_text("""
apiVersion: v1
kind: Pod
metadata: {name: store-7d9, namespace: shop, labels: {meshwright.dev/proxy-uuid: uuid-1}}
spec: {serviceAccountName: store, nodeName: worker-2, containers: [{name: a}]}
status: {phase: Running, podIP: 10.244.0.7}
""")
    source = DirectorySource(tmp_path / "pods", lambda: now)
    source.load()
    view = View.build(source.objects(), MeshSettings())
    shown = proxy(reading.the_proxies[0], ProxyEvidence(()), view, now)
    assert [shown[name] for name in ("workload", "pod", "node")] == [
        "shop/store-7d9",
        "shop/store-7d9",
        "worker-2",
    ]


def test_connected_proxy_without_a_workload_is_held(
    reading: Any, stream_of: Callable[..., StreamStatus], now: Any
) -> None:
    """A connected proxy whose workload is unknown is held, with this reason."""
    name = reading.the_proxies[0].name
    standing = ProxyStatus(name, ProxyState.CONNECTED, "", now, known=False)
    shown = proxy(standing, ProxyEvidence((stream_of(1, served=False),)), reading.view(), now)
    assert (shown["held"], shown["workload"], shown["why"]) == (True, None, "held: workload unknown")


def test_list_gives_reasons_for_the_first_rejections_only(reading: Any, now: Any) -> None:
    """Only the first `NAMED` rejections have their reason.

    Each takes time to find, and one bad object can affect all proxies.
    """
    reading.the_proxies = reading.the_proxies * (NAMED + 2)
    reading.the_rejected = ((LISTENER, ResourceName("in")),)
    reading.the_refusals = {
        (NAME, LISTENER, ResourceName("in")): "no: TrafficTarget shop/buyers (mesh.yaml:31)"
    }
    answer = [item["why"] for item in proxies(reading, reading.ledger(), now)]
    named = "listener rejected: no: TrafficTarget shop/buyers (mesh.yaml:31)"
    assert answer == [named] * NAMED + ["listener rejected: in"] * 2


def test_proxy_that_is_not_ready_is_not_admitted(reading: Any, source: Any, now: Any) -> None:
    """A connected proxy in sync is not admitted before it has acknowledged its inbound listeners."""
    settings = MeshSettings(endpoint_admission=EndpointAdmission.READY)
    reading.the_view = View.build(source.objects(), settings)
    (shown,) = proxies(reading, reading.ledger(), now)
    waits = "not admitted yet: its sidecar has not accepted its inbound listeners"
    assert (shown["admitted"], shown["why"]) == (False, waits)


def test_shared_identity_is_shown_with_both_addresses(reading: Any, now: Any) -> None:
    """If two proxies share an identity, the reason lists both addresses."""
    peers = ("ipv4:127.0.0.1:5", "ipv6:%5B::1%5D:6")
    alone = reading.the_proxies
    reading.the_proxies = tuple(replace(item, peers=peers) for item in alone)
    (shown,) = proxies(reading, reading.ledger(), now)
    assert shown["why"] == "2 proxies share this identity: 127.0.0.1:5, [::1]:6"
    reading.the_proxies = alone
    (shown,) = proxies(reading, reading.ledger(), now)
    assert shown["why"] == ""
