"""Tests of the document driver over real sockets: access, versions, and enforcement by a consumer."""

import asyncio
import contextlib
import json
import os
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest

from certs.contract import Names, Usage
from certs.keys.pair import issue_pair
from meshwright.controller import driver_runner
from meshwright.controller.app import run
from meshwright.controller.errors import StartupError
from meshwright.controller.settings.settings import load
from meshwright.mesh.names import TrustDomain
from tests.feature.drivers.consumer import enforcing, mutual
from tests.meshes import texts
from tests.tools.own_authority import own_authority

Start = Callable[..., Any]
Read = Callable[..., Any]
NAME = "one.store.shop"
ENVOY = "two.store.shop"
FRIEND = "spiffe://cluster.local/ns/shop/sa/friend"
NET = f"127.{90 + os.getpid() % 2}.{os.getpid() // 2 % 250}"
POLICY = texts.joined(
    texts.tcp_route("any", 18080), texts.target("friends", "friend", "store", texts.tcp("any"))
)


def workload(uuid: str = "one", driver: str = "document", host: int = 1) -> str:
    """Return the manifest of a workload with a driver. An empty name means the mesh's default driver."""
    text = f"{texts.DRIVER}: {driver}" if driver else ""
    more = f"service: store, ports: [{{port: 18080, protocol: http}}], applicationAddress: {NET}.101"
    return texts.workload(uuid, f"{NET}.{host}", app="store", account="store", spec=more, annotations=text)


async def test_document_has_an_etag_and_changes_with_the_policy(documents: Start, read: Read) -> None:
    """A current ETag gets 304, and a waiting request gets the changed document."""
    server = await documents(workload())
    async with read(server, server.certificate(NAME)) as get:
        status, first, body = await get()
        assert status == 200
        (port,) = json.loads(body)["document"]["inbound"]
        assert (port["address"], port["port"], port["admitted"]) == (f"{NET}.1", 18080, [])
        assert await get(first) == (304, first, b"")
        waiting = asyncio.ensure_future(get(first, wait=30))
        server.write(workload(), POLICY)
        status, second, body = await waiting
        assert (status, second != first) == (200, True)
        assert json.loads(body)["document"]["inbound"][0]["admitted"] == [FRIEND]
        assert (await get(second))[0] == 304


async def test_document_reader_is_listed_as_a_proxy(documents: Start, read: Read) -> None:
    """A reader is pending until its request has the new ETag.

    The pages show no key, and the certificate is claimed.
    """
    server = await documents(workload())

    async def shown() -> tuple[str, dict[str, str]]:
        (proxy,) = (await server.ask("GET", "/debug/proxy"))["proxies"]
        return proxy["state"], proxy["sync"]

    assert await shown() == ("expected", {})
    async with read(server, server.certificate(NAME)) as get:
        _, etag, _ = await get()
        assert await shown() == ("connected", {"document": "pending"})
        await get(etag)
        assert await shown() == ("connected", {"document": "synced"})
    (reader,) = (await server.ask("GET", "/debug/documents"))["readers"]
    assert reader == {"proxy": NAME, "waiting": False, "given": etag.strip('"'), "confirmed": etag.strip('"')}
    page = json.dumps(await server.ask("GET", f"/debug/documents?proxy={NAME}"))
    assert f"{NET}.1" in page
    assert "PRIVATE KEY" not in page
    (entry,) = (await server.ask("GET", "/debug/certs"))["proxy_certificates"]
    assert entry["state"] == "claimed"


async def test_reader_with_an_invalid_certificate_is_refused(
    documents: Start, read: Read, tmp_path: Path
) -> None:
    """A missing or foreign certificate fails the handshake, and an unissued certificate gets 403."""
    server = await documents(workload())
    other = own_authority(tmp_path / "other", TrustDomain("cluster.local"), datetime.now(UTC))
    foreign = issue_pair(other, Usage.PROXY, Names(NAME), timedelta(hours=1), datetime.now(UTC))
    for pair in (None, foreign):
        async with read(server, pair) as get:
            with pytest.raises(aiohttp.ClientError):
                await get()
    async with read(server, server.certificate(NAME, issued=False)) as get:
        assert (await get())[0] == 403
    assert await server.metric('meshwright_xds_streams_refused_total{reason="not_issued"}') == 1


async def test_reader_with_a_revoked_certificate_is_refused_at_once(documents: Start, read: Read) -> None:
    """A waiting request ends with 403 too, so that it gets no later document."""
    server = await documents(workload())
    pair = server.certificate(NAME)
    async with read(server, pair) as get:
        _, etag, _ = await get()
        waiting = asyncio.ensure_future(get(etag, wait=50))
        while not any(
            reader["waiting"] for reader in (await server.ask("GET", "/debug/documents"))["readers"]
        ):
            await asyncio.sleep(0.01)
        await server.ask("POST", "/certs/revoke", {"serial": pair.leaf.serial})
        assert (await waiting)[0] == 403
        assert (await get())[0] == 403


async def test_reader_without_a_workload_waits_for_its_document(documents: Start, read: Read) -> None:
    """The reader gets 404, and its waiting request gets the document when the workload appears."""
    server = await documents()
    async with read(server, server.certificate(NAME)) as get:
        assert (await get())[0] == 404
        waiting = asyncio.ensure_future(get(wait=30))
        server.write(workload())
        assert (await waiting)[0] == 200


async def test_each_driver_refuses_proxies_of_the_other_driver(documents: Start, read: Read) -> None:
    """A workload belongs to one driver, so the other refuses its valid certificate."""
    server = await documents(workload(), workload("two", driver="", host=2))
    async with read(server, server.certificate(ENVOY)) as get:
        assert (await get())[0] == 403
    async with server.client(server.certificate(NAME)) as client:
        assert await client.ended() == (
            grpc.StatusCode.PERMISSION_DENIED,
            "the stream is refused: see the log of the control plane",
        )
    assert await server.metric('meshwright_xds_streams_refused_total{reason="other_driver"}') == 2
    async with server.client(server.certificate(ENVOY)) as client:
        await client.ask(ENVOY)
        assert await client.names() == {"shop/store|18080|local"}


async def test_rule_that_a_document_cannot_express_is_reported(documents: Start, read: Read) -> None:
    """A rule by path admits no caller, and the problem names the Workload and the TrafficTarget."""
    by_path = texts.joined(
        texts.target("friends", "friend", "store", texts.http("paths")),
        texts.route_group("paths", texts.match("one", "/one")),
    )
    server = await documents(workload(), by_path)
    async with read(server, server.certificate(NAME)) as get:
        assert json.loads((await get())[2])["document"]["inbound"][0]["admitted"] == []
    lines = [problem["line"] for problem in (await server.ask("GET", "/debug/policies"))["problems"]]
    (line,) = [item for item in lines if item.startswith("MW3003")]
    assert "Workload shop/one" in line
    assert "http-routes, which TrafficTarget shop/friends needs" in line


async def test_consumer_enforces_its_document(documents: Start, read: Read, tmp_path: Path) -> None:
    """An admitted caller reaches the application.

    Another caller with an equally valid certificate does not.
    """
    server = await documents(workload(), POLICY)
    async with read(server, server.certificate(NAME)) as get:
        _, _, body = await get()

    async def application(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"pong" if await reader.readexactly(4) == b"ping" else b"what")
        writer.close()

    async def call(account: str) -> bytes:
        uri = f"spiffe://cluster.local/ns/shop/sa/{account}"
        names = Names(account, dns_names=(), uris=(uri,))
        pair = issue_pair(server.authority, Usage.SERVICE, names, timedelta(hours=1), datetime.now(UTC))
        held = {
            "privateKey": pair.key.reveal().decode(),
            "certificateChain": pair.chain_pem.decode(),
            "trustBundle": server.authority.trust_bundle().decode(),
        }
        context = mutual(held, ssl.PROTOCOL_TLS_CLIENT, tmp_path)
        reader, writer = await asyncio.open_connection(f"{NET}.1", 18080, ssl=context)
        try:
            writer.write(b"ping")
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    behind = await asyncio.start_server(application, f"{NET}.101", 18080)
    async with behind, enforcing(body, tmp_path):
        assert await call("friend") == b"pong"
        assert await call("stranger") == b""


async def _told_after_the_change(documents: Start, recheck_seconds: float) -> list[str]:
    """Return the first removed resources that an Envoy gets after its workload changes its driver."""
    server = await documents(workload("two", driver=""), recheck_seconds=recheck_seconds)
    async with server.client(server.certificate(ENVOY)) as client:
        await client.ask(ENVOY)
        assert await client.names() == {"shop/store|18080|local"}
        server.write(workload("two"))
        with contextlib.suppress(grpc.aio.AioRpcError):
            while (response := await client.call.read()) is not grpc.aio.EOF:
                if response.removed_resources:
                    return list(response.removed_resources)
        assert await client.call.code() is grpc.StatusCode.PERMISSION_DENIED
        return []


async def test_changed_driver_removes_no_resource_from_an_open_stream(documents: Start) -> None:
    """The stream ends with PERMISSION_DENIED before it can remove resources."""
    assert await _told_after_the_change(documents, recheck_seconds=2.0) == []


async def test_shared_snapshots_would_remove_resources_after_a_driver_change(
    documents: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This is the negative control.

    A document has no clusters, which xDS reads as the removal of all clusters.
    """
    monkeypatch.setattr(driver_runner, "OwnSnapshots", lambda snapshots, _types: snapshots)
    # The removal would be sent before the next check of the client.
    assert await _told_after_the_change(documents, recheck_seconds=60.0) == ["shop/store|18080|local"]


async def test_unknown_driver_is_reported_and_affects_only_its_workload(documents: Start) -> None:
    """The problem names the workload and the known drivers. Other workloads are served."""
    server = await documents(workload("one", "pipy"), workload("two", "", host=2))
    lines = [problem["line"] for problem in (await server.ask("GET", "/debug/policies"))["problems"]]
    (line,) = [item for item in lines if item.startswith("MW3001")]
    assert "Workload shop/one: metadata.annotations.meshwright.dev/sidecar-driver is pipy" in line
    assert "known: document, envoy" in line
    async with server.client(server.certificate(ENVOY)) as client:
        await client.ask(ENVOY)
        assert await client.names() == {"shop/store|18080|local"}


async def _cannot_start(tmp_path: Path, addresses: str) -> str:
    (tmp_path / "mesh").mkdir()
    flags: dict[str, object] = {"mesh": tmp_path / "mesh", "state": tmp_path / "state"}
    flags |= dict.fromkeys(("ads_address", "http_address", "debug_address"), "127.0.0.1:0")
    with pytest.raises(StartupError) as refused:
        await run(load(flags | {"driver_addresses": addresses}), asyncio.Event())
    return str(refused.value)


async def test_used_port_of_a_driver_is_a_startup_error(tmp_path: Path) -> None:
    """The error names the driver's server and the address."""
    taken = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    async with taken:
        port = taken.sockets[0].getsockname()[1]
        text = await _cannot_start(tmp_path, f"document=127.0.0.1:{port}")
    assert text.startswith(f"the document server cannot listen on 127.0.0.1 port {port}: ")


async def test_unknown_driver_in_the_settings_is_a_startup_error(tmp_path: Path) -> None:
    """The error names the known drivers."""
    text = await _cannot_start(tmp_path, "pipy=127.0.0.1:0")
    assert text == "driver_addresses: sidecar driver 'pipy' is unknown; known: document, envoy"


async def test_private_key_is_in_no_page_and_no_log(
    documents: Start, read: Read, capsys: pytest.CaptureFixture[str]
) -> None:
    """The key is in the document that the reader gets, but in no debug page and no log line."""
    server = await documents(workload(), POLICY)
    async with read(server, server.certificate(NAME)) as get:
        _, etag, body = await get()
        await get(etag)
    assert b"PRIVATE KEY" in body
    message = ""
    for path in (
        *(await server.ask("GET", "/debug")),
        f"/debug/proxy?proxy={NAME}",
        f"/debug/xds?proxy={NAME}",
    ):
        if path not in ("/debug/proxy/show", "/debug/xds/diff"):  # these need more parameters
            message += json.dumps(await server.ask("GET", path))
    assert NAME in message
    log = capsys.readouterr().out
    assert "document=127.0.0.1:" in log
    for text in (message, log):
        assert "PRIVATE KEY" not in text
        assert json.loads(body)["credentials"]["privateKey"].splitlines()[1] not in text
