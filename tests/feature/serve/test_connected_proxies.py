"""Tests that resources are computed for connected proxies only, over real streams."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.feature.serve.delta_sidecar import Sidecar
from tests.meshes import texts
from tests.tools.deadline import until
from tests.tools.forked_cli import Typed
from tests.tools.program import PROXIES, Program, Server
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER

SECONDS = 30.0
MADE = ("meshwright_resources_encoded_total", "meshwright_groups", "meshwright_service_certificates")


def _name(uuid: str) -> str:
    return f"{uuid}.store.shop"


@pytest.fixture
def mesh(tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """The program with three proxies in three groups, each of which may call the others."""
    program = Program(tmp_path / "state", tmp_path, typed)
    workloads = (
        texts.workload(
            f"w-{each}", f"10.0.0.{number}", app="store", account=each, uuid=each, spec="service: store"
        )
        for number, each in enumerate(PROXIES, 1)
    )
    service = texts.service("store", texts.port(80, 18080))
    (program.mesh / "mesh.yaml").write_text(texts.joined(service, texts.PERMISSIVE, *workloads))
    for each in PROXIES:
        program.issue(each)
        for end in ("pem", "key"):
            shutil.copy(program.files / each / f"proxy.{end}", program.files / each / f"{_name(each)}.{end}")
    yield program
    program.end()


def _made(server: Server) -> list[float]:
    return [server.metric(item) for item in MADE]


@contextlib.asynccontextmanager
async def _connected(program: Program, server: Server, sidecar: Sidecar) -> AsyncIterator[Sidecar]:
    """Connect a sidecar within the block."""
    files: Path = program.files / sidecar.name.split(".")[0]
    task = asyncio.create_task(sidecar.run(str(server.bound["ads"]), files))
    yield sidecar
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _served(sidecar: Sidecar) -> bool:
    return {CLUSTER, LISTENER, ENDPOINT} <= {response.type_url for response in sidecar.responses}


async def test_group_is_computed_for_its_first_stream_and_dropped_after_its_last(mesh: Program) -> None:
    """Without a connected proxy nothing is encoded or certified.

    After the last stream the group is kept for 0.5 s.
    """
    server = mesh.serve("--set", "lingering_seconds=0.5")
    assert server.get("/healthz/ready")[0] == 200
    assert _made(server) == [0.0, 0.0, 0.0]
    assert not (mesh.state / "services").exists()
    async with _connected(mesh, server, Sidecar(_name("one"))) as sidecar:
        await until(lambda: _served(sidecar))
        await until(lambda: _made(server)[1:] == [1.0, 1.0])
        encoded = _made(server)[0]
        assert encoded > 0
    await until(lambda: _made(server)[1:] == [0.0, 0.0])
    assert _made(server)[0] == encoded


async def test_proxies_that_connect_at_once_are_all_served(mesh: Program) -> None:
    """Each of the three groups and its certificate is made."""
    server = mesh.serve()
    async with contextlib.AsyncExitStack() as stack:
        sidecars = [
            await stack.enter_async_context(_connected(mesh, server, Sidecar(_name(proxy))))
            for proxy in PROXIES
        ]
        await until(lambda: all(map(_served, sidecars)))
        await until(lambda: _made(server)[1:] == [3.0, 3.0])


async def test_reconnected_proxy_is_sent_no_resource_that_it_holds(mesh: Program) -> None:
    """After a restart of the server only endpoints are sent again (rule O4)."""
    server = mesh.serve()
    async with _connected(mesh, server, Sidecar(_name("one"))) as first:
        await until(lambda: _served(first) and len(first.kinds()) >= 5)
    server.stop()
    server = mesh.serve()
    async with _connected(mesh, server, Sidecar(_name("one"), first.held())) as again:
        await until(lambda: _made(server)[1] == 1.0)
        (mesh.mesh / "new.yaml").write_text(texts.service("new", texts.port(81, 18081)))
        await until(lambda: any(again.held().get(CLUSTER, ())))
        sent = again.held()
    twice = {kind: sent.get(kind, {}).items() & held.items() for kind, held in first.held().items()}
    assert {kind for kind, versions in twice.items() if versions} <= {ENDPOINT}


async def test_pages_show_the_resources_of_an_absent_proxy(mesh: Program) -> None:
    """The group is computed for the page and not kept. A diff of the same directory finds no change."""
    server, at = mesh.serve(), ("--state", str(mesh.state))
    status, shown, complaint = mesh.run("proxy", "show", *at, "one", "--json")
    assert status == 0, complaint
    assert json.loads(shown)["state"] == "expected"
    status, shown, complaint = mesh.run("diff", *at, str(mesh.mesh))
    assert (status, shown) == (0, "0 proxies would change, 3 would not\n"), complaint
    assert _made(server)[1:] == [0.0, 0.0]
    async with _connected(mesh, server, Sidecar(_name("one"))) as sidecar:
        await until(lambda: _served(sidecar))
        status, shown, complaint = mesh.run("diff", *at, str(mesh.mesh))
        assert (status, shown) == (0, "0 proxies would change, 3 would not\n"), complaint
