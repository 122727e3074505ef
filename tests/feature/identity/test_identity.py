"""Who is let in, who is not, and what each sees of it: over real sockets, against the whole server."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from certs.contract import Names, Usage
from certs.issuers.authority import CertificateAuthority
from certs.keys.pair import issue_pair
from meshwright.mesh.names import TrustDomain
from tests.meshes import texts

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
    """Prove that a client is refused, is told why in a word and no more, and that metrics say why."""
    async with server.client(pair) as client:
        assert await client.ended() == REFUSED
        told = dict(await client.call.trailing_metadata())
        assert sorted(told) == ["date", "meshwright-reason"]
        assert told["meshwright-reason"] == reason
    assert await server.metric(f'meshwright_xds_streams_refused_total{{reason="{reason}"}}') == 1
    assert await server.metric('meshwright_xds_streams_opened_total{protocol="delta"}') == 0


async def test_a_proxy_whose_certificate_and_workload_are_known_is_served(serve: Serve) -> None:
    """The positive control of every refusal here, and what is remembered of it."""
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


async def test_the_server_s_own_probes_are_no_handshakes(serve: Serve) -> None:
    """One was made before it was ready; somebody else's connection is counted, whatever becomes of it."""
    server = await serve(workload("one"))
    assert await server.metric("meshwright_xds_handshakes_total") == 0
    async with server.client(None) as client:
        assert (await client.ended())[0] is grpc.StatusCode.UNAVAILABLE
    assert await server.metric("meshwright_xds_handshakes_total") >= 1


async def test_a_client_without_certificate_ends_in_the_handshake(serve: Serve) -> None:
    """It never opens a stream; the handshake is counted."""
    server = await serve(workload("one"))
    async with server.client(None) as client:
        assert (await client.ended())[0] is grpc.StatusCode.UNAVAILABLE
    assert await server.metric("meshwright_xds_handshakes_total") >= 1
    assert await server.metric('meshwright_xds_streams_opened_total{protocol="delta"}') == 0


async def test_a_certificate_of_another_authority_ends_in_the_handshake(serve: Serve, tmp_path: Path) -> None:
    """The same names below another root are nothing here."""
    server = await serve(workload("one"))
    now = datetime.now(UTC)
    other = CertificateAuthority.open(tmp_path / "other", TrustDomain("cluster.local"), now)
    pair = issue_pair(other, Usage.PROXY, Names(NAME), timedelta(hours=1), now)
    async with server.client(pair) as client:
        assert (await client.ended())[0] is grpc.StatusCode.UNAVAILABLE
    assert await server.metric("meshwright_xds_handshakes_total") >= 1
    assert await server.metric('meshwright_xds_streams_opened_total{protocol="delta"}') == 0


async def test_an_expired_certificate_ends_in_the_handshake(serve: Serve) -> None:
    """Issued two hours ago for one hour; the handler's own check is a unit test of the authenticator."""
    server = await serve(workload("one"))
    async with server.client(server.certificate(NAME, lived=timedelta(hours=2))) as client:
        assert (await client.ended())[0] is grpc.StatusCode.UNAVAILABLE
    assert await server.metric('meshwright_xds_streams_opened_total{protocol="delta"}') == 0


async def test_a_common_name_of_another_shape_is_refused(serve: Serve) -> None:
    """Two labels are no proxy's name, though our authority signed them."""
    server = await serve(workload("one"))
    await _refused_as(server, server.certificate("one.store", issued=False), "bad_common_name")


async def test_a_certificate_that_is_not_in_the_ledger_is_refused(serve: Serve) -> None:
    """Signed by our authority, and for a workload that exists, but never issued."""
    server = await serve(workload("one"))
    await _refused_as(server, server.certificate(NAME, issued=False), "not_issued")


async def test_a_service_certificate_opens_no_stream(serve: Serve) -> None:
    """What serves between workloads does not serve here."""
    server = await serve(workload("one"))
    now = datetime.now(UTC)
    names = Names("service-1", uris=("spiffe://cluster.local/ns/shop/sa/store",))
    pair = issue_pair(server.authority, Usage.SERVICE, names, timedelta(hours=1), now)
    await _refused_as(server, pair, "wrong_usage")


async def test_a_revoked_certificate_is_refused(serve: Serve) -> None:
    """Revoked through the socket, as the command line does."""
    server = await serve(workload("one"))
    pair = server.certificate(NAME)
    answer = await server.ask("POST", "/certs/revoke", {"serial": pair.leaf.serial})
    assert answer == {"name": NAME, "serial": pair.leaf.serial, "joined_by": None}
    await _refused_as(server, pair, "revoked")


async def test_revoking_a_certificate_ends_the_stream_that_lives_on_it(serve: Serve) -> None:
    """Who a client is, is asked again while its stream lives."""
    server = await serve(workload("one"), recheck_seconds=0.05)
    pair = server.certificate(NAME)
    async with server.client(pair) as client:
        await client.ask(NAME)
        assert await client.names() == CLUSTERS
        await server.ask("POST", "/certs/revoke", {"serial": pair.leaf.serial})
        assert await client.ended() == REFUSED
    assert await server.metric('meshwright_xds_streams_refused_total{reason="revoked"}') == 1


async def test_a_certificate_that_names_another_service_than_its_workload_is_refused(serve: Serve) -> None:
    """The UUID alone does not let anybody in."""
    server = await serve(workload("one", service="other"))
    await _refused_as(server, server.certificate(NAME), "other_workload")


@pytest.mark.parametrize(("node", "accepted"), [(NAME, True), ("one", True), ("two.store.shop", False)])
async def test_a_node_id_must_be_the_certificate_s_name_or_its_uuid(
    serve: Serve, node: str, accepted: bool
) -> None:
    """A client may not call itself another proxy, and gets nothing if it does."""
    server = await serve(workload("one"), workload("two", host=2))
    async with server.client(server.certificate(NAME)) as client:
        await client.ask(node)
        if accepted:
            assert await client.names() == CLUSTERS
        else:
            assert await client.ended() == REFUSED
            reason = 'meshwright_xds_streams_refused_total{reason="other_node"}'
            assert await server.metric(reason) == 1


async def test_an_unknown_workload_is_held_silent_and_served_once_it_appears(serve: Serve) -> None:
    """Nothing is sent until the manifest is there, not even an empty answer."""
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


async def test_a_workload_that_never_appears_ends_the_stream_at_the_deadline(serve: Serve) -> None:
    """The client is told to come back, and has got nothing."""
    server = await serve(held_seconds=0.2)
    async with server.client(server.certificate(NAME)) as client:
        await client.ask(NAME)
        code, words = await client.ended()
        assert (code, words) == (
            grpc.StatusCode.UNAVAILABLE,
            "the configuration of this proxy is not ready yet",
        )
    assert await server.metric('meshwright_xds_responses_total{type="cluster"}') == 0


async def test_a_workload_that_vanishes_leaves_its_proxy_with_what_it_had(serve: Serve) -> None:
    """Neither an empty answer nor a removal is sent; when it is back, so are changes."""
    server = await serve(workload("one"), workload("two", host=2))
    async with server.client(server.certificate(NAME)) as client:
        await client.ask(NAME)
        assert await client.names() == CLUSTERS
        server.write(workload("two", host=2))
        await server.until({NAME: "connected", "two.store.shop": "expected"})
        while any(each["workload"] for each in await _named(server, NAME)):
            pass
        server.write(workload("one"), workload("two", host=2), workload("three", host=3))
        await server.until({NAME: "connected", "two.store.shop": "expected", "three.store.shop": "expected"})
    assert await server.metric('meshwright_xds_responses_total{type="cluster"}') == 1


async def _named(server: Any, name: str) -> list[dict[str, Any]]:
    proxies = (await server.ask("GET", "/debug/proxy"))["proxies"]
    return [each for each in proxies if each["cn"] == name]


async def test_two_streams_of_one_certificate_live_and_end_apart(serve: Serve) -> None:
    """Hot restart: both are served, and the end of the first leaves the second connected and in step."""
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
        # Another target port is another cluster: the stream that is left must hear of it.
        server.write(workload("one"), port=18081)
        assert await second.names() == {"shop/store|18081|local"}


async def test_streams_of_one_certificate_are_bounded(serve: Serve) -> None:
    """One more than allowed is turned away; the others stay."""
    server = await serve(workload("one"), streams_per_certificate=1)
    pair = server.certificate(NAME)
    async with server.client(pair) as first:
        await first.ask(NAME)
        assert await first.names() == CLUSTERS
        async with server.client(pair) as second:
            assert (await second.ended())[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await server.proxies() == {NAME: "connected"}
