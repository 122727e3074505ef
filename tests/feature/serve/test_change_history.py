"""Tests of one change from the file to the acknowledgement: its push, its causes, and its display."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes.credentials import issue_each
from benchmarks.processes.plane import ControlPlane, control_plane
from meshwright.cli.errors import ServerRefused
from meshwright.cli.socket.client import ask
from tests.feature.serve.delta_sidecar import Sidecar
from tests.meshes import texts
from tests.tools.deadline import HANG_SECONDS, until
from tests.tools.forked_cli import Command, Typed
from xds.protocol.resources.resource import ROUTE

STORE, BUYER = "11111111.store.shop", "22222222.buyer.shop"
MESH = texts.joined(
    texts.service("store"),
    texts.workload(
        "store-1",
        "10.0.0.1",
        app="store",
        account="store",
        uuid='"11111111"',
        spec="service: store, ports: [{port: 8080}]",
    ),
    texts.workload(
        "buyer-1", "10.0.0.2", app=None, account="buyer", uuid='"22222222"', spec="service: buyer"
    ),
    texts.route_group(
        "books",
        texts.match("buy", "/buy", "methods: [GET]"),
        texts.match("sell", "/sell", "methods: [POST]"),
    ),
)
TARGET = texts.target("buyers", "buyer", "store", texts.http("books", "buy"))
NAME = "rds-inbound.8080"
CAUSE = {
    "object": "TrafficTarget shop/buyers",
    "origin": "buyers.yaml:1 (document 1)",
    "change": "changed",
}


class Rejecting(Sidecar):
    """A sidecar that rejects the next routes on request."""

    rejects = False

    async def _say(self, type_url: str, **fields: Any) -> None:
        if self.rejects and type_url == ROUTE and "response_nonce" in fields:
            self.rejects = False
            fields["error_detail"] = {"code": 13, "message": "no such regex"}
        await super()._say(type_url, **fields)


@dataclass
class Running:
    """A running server with a sidecar of the store. The buyer's sidecar never connects."""

    mesh: Path
    state: Path
    plane: ControlPlane
    sidecar: Rejecting
    typed: Typed

    def ask(self, path: str, **query: str) -> Any:
        """Send a request as the command does."""
        return ask(self.state, "GET", path, query)

    def command(self, *arguments: str) -> str:
        """Run a command, and return its output."""
        command = Command(self.mesh, (*arguments, "--state", str(self.state)), {})
        done = self.typed.run(command, HANG_SECONDS)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def change(self) -> dict[str, Any]:
        """Admit other requests. Return the newest push of routes once it is acknowledged."""
        known = len(self.routes()) + self.sidecar.rejects
        (self.mesh / "buyers.yaml").write_text(TARGET.replace("[buy]", "[buy, sell]"))

        def acknowledged() -> bool:
            pushes = self.routes()
            return len(pushes) > known and pushes[0]["answer"] == "ack"

        await until(acknowledged)
        return self.routes()[0]

    def routes(self) -> list[dict[str, Any]]:
        """Return the pushes of routes, newest first. Listeners are also sent when routes admit less."""
        return [push for push in self.ask("/debug/xds", proxy=STORE)["pushes"] if push["type"] == "route"]


@pytest.fixture
def served(tmp_path: Path, typed: Typed) -> Iterator[Running]:
    """Serve the mesh, with certificates for both sidecars."""
    mesh, state = tmp_path / "mesh", tmp_path / "state"
    for path in (mesh, tmp_path / "tls"):
        path.mkdir()
    (mesh / "mesh.yaml").write_text(MESH)
    (mesh / "buyers.yaml").write_text(TARGET)
    issue_each(state, tmp_path / "tls", [STORE, BUYER])
    with control_plane(mesh, state, measured=False) as (plane, _):
        yield Running(mesh, state, plane, Rejecting(STORE), typed)


@pytest.fixture
async def running(served: Running) -> AsyncIterator[Running]:
    """The server with the store's connected sidecar, which has all resources."""
    tls = served.state.with_name("tls")
    task = asyncio.create_task(served.sidecar.run(served.plane.ads, tls), name="sidecar")

    def complete() -> bool:
        (store, _) = served.ask("/debug/proxy")["proxies"]
        synced = {"cluster", "secret", "listener", "route"}
        here = {name for name, state in store["sync"].items() if state == "synced"}
        return synced <= here and bool(
            store["admitted"]
        )  # otherwise its admission joins the wave of the change

    await until(complete)
    yield served
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_push_names_the_file_and_object_that_changed(running: Running) -> None:
    """The push has the cause, both versions of the resource, its size and its times."""
    push = await running.change()
    (wave,) = push["trigger"]["waves"]
    assert (push["trigger"]["why"], wave["causes"], wave["more"]) == ("change", [CAUSE], 0)
    (changed,) = push["changed"]
    assert (push["type"], push["protocol"], changed["name"]) == ("route", "delta", NAME)
    assert changed["from"] != changed["to"]
    assert (push["added"], push["removed"], push["again"]) == ([], [], 0)
    assert push["bytes"] > 0
    assert push["seconds"] >= 0  # the ACK may come before the sender has noted that it sent
    assert push["seconds_from_event"] > 0
    first = running.ask("/debug/xds", proxy=STORE)["pushes"][-1]
    assert first["trigger"] == {"why": "subscribed", "waves": []}


async def test_push_shows_its_objects_and_the_difference_of_versions(running: Running) -> None:
    """The default difference is that of the push. An unknown version is refused with the stored ones."""
    push = await running.change()
    (changed,) = push["changed"]
    shown = running.ask("/debug/xds", proxy="store-1", resource=f"route/{NAME}")
    behind = {item["object"]: item["origin"] for item in shown["objects"]}
    assert behind["TrafficTarget shop/buyers"] == CAUSE["origin"]
    assert "HTTPRouteGroup shop/books" in behind
    asked = {"proxy": "store-1", "type": "route", "name": NAME}
    diff = running.ask("/debug/xds/diff", **asked)
    assert (diff["from"], diff["to"]) == (changed["from"], changed["to"])
    added = "".join(line for line in diff["diff"] if line.startswith("+"))
    assert '"regex": "/sell"' in added
    assert (
        '"regex": "/buy"' not in added
    )  # the other match has its own statistics now, because there are several
    back = running.ask("/debug/xds/diff", **asked, **{"from": changed["to"], "to": changed["from"]})
    assert "/sell" in "".join(line for line in back["diff"] if line.startswith("-"))
    with pytest.raises(
        ServerRefused,
        match=f"version nope of route {NAME} is not stored any more; stored versions: {changed['from']}",
    ):
        running.ask("/debug/xds/diff", **asked, **{"from": "nope"})


async def test_commands_show_proxies_routes_and_history_in_mesh_terms(running: Running) -> None:
    """The table has the state of each proxy.

    Sections name services and objects, and unknown names are refused.
    """
    await running.change()
    lines = running.command("proxies").splitlines()
    assert [line.split()[0] for line in lines] == ["PROXY", "11111111", "22222222"]
    assert "synced" in lines[1]
    assert lines[2].endswith("never connected")
    routes = running.command("proxy", "show", "store-1", "routes")
    may = "inbound 8080: shop/buyer may send GET /buy, POST /sell (TrafficTarget shop/buyers)"
    assert may in routes
    history = running.command("proxy", "show", "1111", "history").splitlines()
    assert any(
        f"changed {NAME}" in line and "TrafficTarget shop/buyers changed (buyers.yaml:1" in line
        for line in history
    )
    result = json.loads(running.command("proxy", "show", STORE, "secrets", "--json"))
    names = {secret["name"]: secret["serial"] for secret in result["secrets"]}
    assert list(names) == ["root-cert:cluster.local", "service-cert:shop/store"]
    assert all(names.values())
    with pytest.raises(ServerRefused, match=r"proxy 'stor' does not exist; known proxies: "):
        running.ask("/debug/proxy/show", proxy="stor")


async def test_rejection_names_the_objects_behind_the_rejected_route(running: Running) -> None:
    """The proxy returns to the last good version, and its row names the objects at fault."""
    running.sidecar.rejects = True
    restored = await running.change()
    rejected = running.routes()[1]
    assert (rejected["answer"], rejected["error"]) == ("nack", {"code": 13, "message": "no such regex"})
    assert rejected["trigger"]["waves"][0]["causes"] == [CAUSE]
    (bad,), (good,) = rejected["changed"], restored["changed"]
    assert (good["name"], good["from"], good["to"]) == (NAME, bad["to"], bad["from"])
    (wave,) = restored["trigger"]["waves"]
    assert [cause["object"] for cause in wave["causes"]] == [f"rejection {STORE}"]
    # The restored route admits less, so the listener is sent once more, and answered (O11).
    behind = {"cluster": "synced", "listener": "synced", "route": "nacked", "secret": "synced"}
    await until(lambda: running.ask("/debug/proxy")["proxies"][0]["sync"] == behind)
    (store, _) = running.ask("/debug/proxy")["proxies"]
    assert store["why"].startswith("route rejected: ")
    assert "TrafficTarget shop/buyers (buyers.yaml:1 (document 1))" in store["why"]


async def test_times_from_event_to_push_and_ack_are_measured(running: Running) -> None:
    """A change is measured, but a response to a subscription is not."""
    names = ("meshwright_event_to_send_seconds_count", "meshwright_event_to_ack_seconds_count")

    def counted() -> list[float]:
        result = running.plane.metrics()
        return [result[(name,)] for name in names]

    assert counted() == [0, 0]
    await running.change()
    await until(lambda: min(counted()) > 0)  # the ACK may come before the sender has noted that it sent
    assert counted() == [1, 1]
