"""Tests of our server with gRPC's own xDS client, which makes real calls."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import grpc
import grpc.aio
import pytest

from tests.conformance.control_plane import ControlPlane, Keys
from tests.conformance.resources import Json, api_listener, cluster, endpoints, route
from tests.tools.deadline import until
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, Resource
from xds.stream_status import SyncState

TARGET = "who.mesh"


async def backend(name: str, ends: AsyncExitStack) -> int:
    """Start a gRPC server that answers with its name; return the port."""

    async def ask(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        return name.encode()

    server = grpc.aio.server()
    handler = grpc.method_handlers_generic_handler(
        "demo.Who", {"Ask": grpc.unary_unary_rpc_method_handler(ask)}
    )
    server.add_generic_rpc_handlers((handler,))
    port = int(server.add_insecure_port("127.0.0.1:0"))
    await server.start()
    ends.push_async_callback(server.stop, 0)
    return port


def bootstrap(port: int, keys: Keys) -> Json:
    """Return the client's bootstrap for our server, over mutual TLS."""
    files = {
        "ca_certificate_file": str(keys.ca_file),
        "certificate_file": str(keys.certificate_file),
        "private_key_file": str(keys.key_file),
    }
    us = {
        "server_uri": f"127.0.0.1:{port}",
        "channel_creds": [{"type": "tls", "config": files}],
        "server_features": ["xds_v3"],
    }
    return {"xds_servers": [us], "node": {"id": "client", "locality": {"region": "r", "zone": "z"}}}


class Caller:
    """The client program."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, plane: ControlPlane, folder: Path, ends: AsyncExitStack) -> Self:
        """Start a client that ends with the exit stack."""
        file = folder / "bootstrap.json"
        file.write_text(json.dumps(bootstrap(plane.port, plane.keys)))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("grpc_client.py")),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={**os.environ, "GRPC_XDS_BOOTSTRAP": str(file)},
        )

        async def end() -> None:
            if process.returncode is None:
                process.kill()
            await process.communicate()

        ends.push_async_callback(end)
        return cls(process)

    async def call(self, target: str = TARGET) -> str:
        """Make a call; return the answering backend, or the error's code and message."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{target}\n".encode())
        async with asyncio.timeout(60):
            return (await self._process.stdout.readline()).decode().strip()

    async def answered_by(self, name: str) -> None:
        """Call until that backend answers."""

        async def answers() -> bool:
            return await self.call() == name

        await until(answers)


def configuration(cluster_name: str, *ports: int) -> tuple[Resource, ...]:
    """Return the resources that lead calls to backends."""
    return (
        api_listener(TARGET),
        route(cluster_name),
        cluster(cluster_name),
        endpoints(cluster_name, *ports),
    )


async def calling(plane: ControlPlane, ends: AsyncExitStack, folder: Path) -> tuple[Caller, int]:
    """Start a client whose calls the backend `first` answers; return both."""
    first = await backend("first", ends)
    plane.publish(*configuration("c1", first))
    caller = await Caller.start(plane, folder, ends)
    assert await caller.call() == "first"
    await plane.settled()
    return caller, first


@pytest.fixture
async def plane(keys: Keys, ends: AsyncExitStack) -> ControlPlane:
    """Start a control plane."""
    return await ControlPlane.begin(keys, ends)


async def test_o10_grpc_calls_follow_endpoints_a_cluster_swap_and_a_restart(
    plane: ControlPlane, ends: AsyncExitStack, tmp_path: Path
) -> None:
    """No call fails while endpoints move, the cluster is swapped and the server restarts, over mutual TLS."""
    caller, first = await calling(plane, ends, tmp_path)
    second = await backend("second", ends)
    for type_url in (LISTENER, ROUTE, CLUSTER, ENDPOINT):
        status = plane.type_status(type_url)
        assert status is not None
        assert (status.state, status.wildcard, len(status.names)) == (SyncState.SYNCED, False, 1)

    plane.publish(*configuration("c1", second))
    await caller.answered_by("second")
    # A client that names its clusters learns of the new one from the route: the old one stays until then.
    plane.publish(*configuration("c2", first), cluster("c1"), endpoints("c1", second))
    assert await caller.call() in {"first", "second"}
    await caller.answered_by("first")
    await plane.update(*configuration("c2", first))

    await plane.stop()
    assert await caller.call() == "first"
    await plane.start()
    await plane.settled()
    assert await caller.call() == "first"
    plane.publish(*configuration("c2", second))
    await caller.answered_by("second")


async def test_n1_grpc_client_rejects_an_unusable_cluster_and_recovers(
    plane: ControlPlane, ends: AsyncExitStack, tmp_path: Path
) -> None:
    """A cluster with an unsupported policy is a NACK, and calls go on as before.

    A valid cluster ends the rejection.
    """
    caller, first = await calling(plane, ends, tmp_path)
    second = await backend("second", ends)

    bad = cluster("c1", policy="CLUSTER_PROVIDED")
    plane.publish(api_listener(TARGET), route("c1"), bad, endpoints("c1", first))

    def is_rejected() -> bool:
        status = plane.type_status(CLUSTER)
        return status is not None and status.state is SyncState.REJECTED

    await until(is_rejected)
    assert await caller.call() == "first"
    plane.publish(*configuration("c1", second))
    await caller.answered_by("second")
    await until(lambda: not is_rejected())


async def test_w9_grpc_client_loses_a_removed_listener_at_once(
    plane: ControlPlane, ends: AsyncExitStack, tmp_path: Path
) -> None:
    """A response that lists everything (W9) removes what it lacks.

    Calls succeed again once the listener is back.
    """
    caller, first = await calling(plane, ends, tmp_path)

    plane.publish(*configuration("c1", first)[1:])

    async def fails() -> bool:
        return (await caller.call()).startswith("UNAVAILABLE")

    await until(fails)
    plane.publish(*configuration("c1", first))
    await caller.answered_by("first")
