"""Tests of streams as they are shown, by whole values."""

from collections.abc import Callable

from meshwright.admin.pages.proxies.streams import stream, sync
from meshwright.sidecars.addresses import plain_address
from xds.protocol.wire import Rejection
from xds.stream_status import StreamStatus, SyncState


def test_stream_is_shown_with_each_type(stream_of: Callable[..., StreamStatus]) -> None:
    """Each type shows its version, nonce, time of the last response, rejection and names."""
    status = stream_of(3, (SyncState.REJECTED, Rejection(3, "bad listener")))
    assert stream(status) == {
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


def test_state_of_a_type_is_the_worst_of_all_streams(stream_of: Callable[..., StreamStatus]) -> None:
    """One stream in sync does not hide another that is pending or rejected."""
    synced = stream_of(1, (SyncState.SYNCED, None))
    pending = stream_of(2, (SyncState.PENDING, None))
    nacked = stream_of(3, (SyncState.REJECTED, None))
    assert sync([synced]) == {"cluster": "synced"}
    assert sync([synced, pending]) == {"cluster": "pending"}
    assert sync([nacked, pending, synced]) == {"cluster": "nacked"}


def test_reconnected_delta_client_without_changes_is_in_sync(
    stream_of: Callable[..., StreamStatus],
) -> None:
    """A delta client that asked and needs nothing is in sync.

    A held client is not, because it waits for its configuration.
    """
    assert sync([stream_of(1, (SyncState.ASKED, None))]) == {"cluster": "synced"}
    assert sync([stream_of(1, (SyncState.ASKED, None), served=False)]) == {"cluster": "asked"}


def test_peer_addresses_are_shown_without_scheme_and_escapes() -> None:
    """An address of a peer is shown without gRPC's scheme and percent-encoding."""
    shown = [plain_address(peer) for peer in ("ipv4:1.2.3.4:5", "ipv6:%5B::1%5D:5", "unix:/a", "")]
    assert shown == ["1.2.3.4:5", "[::1]:5", "unix:/a", ""]
