"""Tests of client authentication over real sockets against the whole server: admission and refusals."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from certs.contract import Names, Usage
from certs.keys.pair import issue_pair
from meshwright.mesh.names import TrustDomain
from tests.meshes import texts
from tests.tools.own_authority import own_authority

Serve = Callable[..., Awaitable[Any]]
NAME = "one.store.shop"
CLUSTERS = {"shop/store|18080|local"}
REFUSED = (
    grpc.StatusCode.PERMISSION_DENIED,
    "the stream is refused: see the log of the control plane",
)


def workload(uuid: str, service: str = "store", host: int = 1) -> str:
    """Return the manifest of a workload with a sidecar."""
    more = (
        f"service: {service}, ports: [{{port: 18080, protocol: http}}], applicationAddress: 127.0.41.{host}"
    )
    return texts.workload(uuid, f"127.0.40.{host}", app="store", account="store", spec=more)


async def _refused_as(server: Any, pair: Any, reason: str) -> None:
    """Assert that a client is refused with exactly this reason, in trailers and in metrics."""
    async with server.client(pair) as client:
        assert await client.ended() == REFUSED
        fields = dict(await client.call.trailing_metadata())
        assert sorted(fields) == ["date", "meshwright-reason"]
        assert fields["meshwright-reason"] == reason
    assert await server.metric(f'meshwright_xds_streams_refused_total{{reason="{reason}"}}') == 1
    assert await server.metric('meshwright_xds_streams_opened_total{protocol="delta"}') == 0


async def test_proxy_with_a_known_certificate_and_workload_is_served(serve: Serve) -> None:
    """The proxy gets its clusters, and its certificate is recorded as claimed.

    This is the positive control.
    """
    server = await serve(workload("one"))
    pair = server.certificate(NAME)
    assert await server.proxies() == {NAME: "expected"}
    async with server.client(pair) as client:
        await client.ask(NAME)
        assert await client.names() == CLUSTERS
        assert await server.proxies() == {NAME: "connected"}
    await server.until({NAME: "disconnected"})
    (entry,) = (await server.ask("GET", "/debug/certs"))["proxy_certificates"]
    assert (entry["serial"], entry["state"]) == (pair.leaf.serial, "claimed")


async def test_probes_of_the_server_itself_are_not_counted_as_handshakes(serve: Serve) -> None:
    """The server probes itself before it is ready. A handshake of another client is counted."""
    server = await serve(workload("one"))
    assert await server.metric("meshwright_xds_handshakes_total") == 0
    async with server.client(None) as client:
        assert (await client.ended())[0] is grpc.StatusCode.UNAVAILABLE
    assert await server.metric("meshwright_xds_handshakes_total") >= 1


async def test_client_without_a_certificate_fails_in_the_handshake(serve: Serve) -> None:
    """No stream is opened, and the handshake is counted."""
    server = await serve(workload("one"))
    async with server.client(None) as client:
        assert (await client.ended())[0] is grpc.StatusCode.UNAVAILABLE
    assert await server.metric("meshwright_xds_handshakes_total") >= 1
    assert await server.metric('meshwright_xds_streams_opened_total{protocol="delta"}') == 0


async def test_certificate_of_another_authority_fails_in_the_handshake(serve: Serve, tmp_path: Path) -> None:
    """The same names below another root are not trusted."""
    server = await serve(workload("one"))
    now = datetime.now(UTC)
    other = own_authority(tmp_path / "other", TrustDomain("cluster.local"), now)
    pair = issue_pair(other, Usage.PROXY, Names(NAME), timedelta(hours=1), now)
    async with server.client(pair) as client:
        assert (await client.ended())[0] is grpc.StatusCode.UNAVAILABLE
    assert await server.metric("meshwright_xds_handshakes_total") >= 1
    assert await server.metric('meshwright_xds_streams_opened_total{protocol="delta"}') == 0


async def test_expired_certificate_fails_in_the_handshake(serve: Serve) -> None:
    """The certificate was issued two hours ago for one hour.

    A unit test covers the authenticator's own check.
    """
    server = await serve(workload("one"))
    async with server.client(server.certificate(NAME, lived=timedelta(hours=2))) as client:
        assert (await client.ended())[0] is grpc.StatusCode.UNAVAILABLE
    assert await server.metric('meshwright_xds_streams_opened_total{protocol="delta"}') == 0


async def test_common_name_with_two_labels_is_refused(serve: Serve) -> None:
    """A common name of two labels is no proxy name, although our authority signed the certificate."""
    server = await serve(workload("one"))
    await _refused_as(server, server.certificate("one.store", issued=False), "bad_common_name")


async def test_certificate_missing_in_the_ledger_is_refused(serve: Serve) -> None:
    """The certificate is signed by our authority for an existing workload, but was never issued."""
    server = await serve(workload("one"))
    await _refused_as(server, server.certificate(NAME, issued=False), "not_issued")


async def test_service_certificate_opens_no_stream(serve: Serve) -> None:
    """A certificate for calls between workloads does not authenticate a proxy."""
    server = await serve(workload("one"))
    now = datetime.now(UTC)
    names = Names("service-1", uris=("spiffe://cluster.local/ns/shop/sa/store",))
    pair = issue_pair(server.authority, Usage.SERVICE, names, timedelta(hours=1), now)
    await _refused_as(server, pair, "wrong_usage")


async def test_revoked_certificate_is_refused(serve: Serve) -> None:
    """The revocation uses the socket, as the command does."""
    server = await serve(workload("one"))
    pair = server.certificate(NAME)
    answer = await server.ask("POST", "/certs/revoke", {"serial": pair.leaf.serial})
    assert answer == {"name": NAME, "serial": pair.leaf.serial, "joined_by": None}
    await _refused_as(server, pair, "revoked")


async def test_revocation_ends_an_open_stream(serve: Serve) -> None:
    """The certificate of an open stream is checked again at an interval."""
    server = await serve(workload("one"), recheck_seconds=0.05)
    pair = server.certificate(NAME)
    async with server.client(pair) as client:
        await client.ask(NAME)
        assert await client.names() == CLUSTERS
        await server.ask("POST", "/certs/revoke", {"serial": pair.leaf.serial})
        assert await client.ended() == REFUSED
    assert await server.metric('meshwright_xds_streams_refused_total{reason="revoked"}') == 1


async def test_certificate_for_another_service_than_the_workloads_is_refused(serve: Serve) -> None:
    """The UUID alone is not sufficient."""
    server = await serve(workload("one", service="other"))
    await _refused_as(server, server.certificate(NAME), "other_workload")


@pytest.mark.parametrize(("node", "accepted"), [(NAME, True), ("one", True), ("two.store.shop", False)])
async def test_node_id_must_be_the_certificates_name_or_uuid(serve: Serve, node: str, accepted: bool) -> None:
    """A client cannot use another proxy's node id to get that proxy's configuration."""
    server = await serve(workload("one"), workload("two", host=2))
    async with server.client(server.certificate(NAME)) as client:
        await client.ask(node)
        if accepted:
            assert await client.names() == CLUSTERS
        else:
            assert await client.ended() == REFUSED
            reason = 'meshwright_xds_streams_refused_total{reason="other_node"}'
            assert await server.metric(reason) == 1


async def test_unknown_workload_gets_no_response_until_it_appears(serve: Serve) -> None:
    """Not even an empty response is sent before the manifest exists."""
    server = await serve()
    async with server.client(server.certificate(NAME)) as client:
        await client.ask(NAME)
        await server.until({NAME: "connected"})
        (held,) = (await server.ask("GET", "/debug/proxy"))["proxies"]
        assert (held["held"], held["workload"]) == (True, None)
        assert await server.metric('meshwright_xds_responses_total{type="cluster"}') == 0
        server.write(workload("one"))
        assert await client.names() == CLUSTERS
        assert await server.counted('meshwright_xds_responses_total{type="cluster"}', 1) == 1


async def test_stream_of_an_unknown_workload_ends_at_the_deadline(serve: Serve) -> None:
    """The status UNAVAILABLE makes the client retry, and no response was sent."""
    server = await serve(held_seconds=0.2)
    async with server.client(server.certificate(NAME)) as client:
        await client.ask(NAME)
        code, words = await client.ended()
        assert (code, words) == (
            grpc.StatusCode.UNAVAILABLE,
            "the configuration of this proxy is not ready yet",
        )
    assert await server.metric('meshwright_xds_responses_total{type="cluster"}') == 0


async def test_deleted_workload_leaves_its_proxy_unchanged(serve: Serve) -> None:
    """Neither an empty response nor a removal is sent, also after the workload returns."""
    server = await serve(workload("one"), workload("two", host=2))
    async with server.client(server.certificate(NAME)) as client:
        await client.ask(NAME)
        assert await client.names() == CLUSTERS
        server.write(workload("two", host=2))
        await server.until({NAME: "connected", "two.store.shop": "expected"})
        while any(item["workload"] for item in await _named(server, NAME)):
            pass
        server.write(workload("one"), workload("two", host=2), workload("three", host=3))
        await server.until({NAME: "connected", "two.store.shop": "expected", "three.store.shop": "expected"})
    assert await server.metric('meshwright_xds_responses_total{type="cluster"}') == 1


async def _named(server: Any, name: str) -> list[dict[str, Any]]:
    proxies = (await server.ask("GET", "/debug/proxy"))["proxies"]
    return [proxy for proxy in proxies if proxy["cn"] == name]


async def test_two_streams_of_one_certificate_are_independent(serve: Serve) -> None:
    """A hot restart has two streams. The end of one leaves the other connected and updated."""
    server = await serve(workload("one"))
    pair = server.certificate(NAME)
    async with server.client(pair) as second:
        async with server.client(pair) as first:
            for client in (first, second):
                await client.ask(NAME)
                assert await client.names() == CLUSTERS
        while (await _named(server, NAME))[0]["streams"] != 1:
            pass
        assert await server.proxies() == {NAME: "connected"}
        # Another target port is another cluster, which the remaining stream must receive.
        server.write(workload("one"), port=18081)
        assert await second.names() == {"shop/store|18081|local"}


async def test_streams_of_one_certificate_are_limited(serve: Serve) -> None:
    """The stream above the limit is refused, and the first one stays."""
    server = await serve(workload("one"), streams_per_certificate=1)
    pair = server.certificate(NAME)
    async with server.client(pair) as first:
        await first.ask(NAME)
        assert await first.names() == CLUSTERS
        async with server.client(pair) as second:
            assert (await second.ended())[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await server.proxies() == {NAME: "connected"}
