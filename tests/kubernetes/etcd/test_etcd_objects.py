"""A mesh whose objects are in a real etcd: written by commands, and followed by a real server."""

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from meshwright.controller.sharing.store.etcd_connection import EtcdConnection
from meshwright.etcd.access import Access
from meshwright.etcd.client import Client
from meshwright.etcd.values import KeyValue
from meshwright.mesh.kinds import HTTP_ROUTE, SERVICE
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.providers.contract import SourceError
from meshwright.providers.etcd import last_objects
from meshwright.providers.etcd.names import ObjectNames
from meshwright.providers.etcd.source import EtcdSource
from tests.kubernetes.etcd.members import RealMember
from tests.meshes import texts
from tests.tools.deadline import until, wait_until
from tests.tools.forked_cli import Typed
from tests.tools.program import Program, Server

NAMES: Final = ObjectNames("cluster.local")
PREFIX: Final = b"/meshwright/cluster.local/objects/"
SECONDS: Final = 60.0
SPLIT: Final = texts.split("web", "web", ("web", 1))
MESH: Final = texts.joined(
    texts.account("web"),
    texts.service("web"),
    texts.workload("web", "10.0.0.1"),
    SPLIT,
    texts.split("bad", "web", ("web", -1)),
)


def web(name: str = "web") -> ObjectKey:
    """Return the key of a Service."""
    return ObjectKey(SERVICE, Namespace("shop"), name)


@pytest.fixture
def program(own_member: RealMember, typed: Typed, tmp_path: Path) -> Iterator[Program]:
    """Return a program whose only source is the member."""
    made = Program(tmp_path / "state", tmp_path / "files", typed)
    made.reads = ("--set", "etcd_objects=yes")
    made.environment["MESHWRIGHT_ETCD_ENDPOINTS"] = own_member.url
    yield made
    made.end()


def _source(server: Server) -> dict[str, int]:
    """Return the numbers of objects of the source etcd."""
    with urllib.request.urlopen(f"http://{server.bound['debug']}/api/v1/sources", timeout=SECONDS) as answer:
        sources = json.load(answer)["sources"]
    (found,) = (source for source in sources if source["name"] == "etcd")
    return dict(found["objects"])


def _problems(server: Server) -> set[str]:
    return {line["code"] for line in server.said("problem in etcd")}


def test_objects_are_applied_shown_and_deleted(own_member: RealMember, program: Program) -> None:
    """One server with its own state serves a mesh without files and without a cluster."""
    mesh = program.files / "applied.yaml"
    mesh.write_text(MESH)
    status, out, complaint = program.run("apply", "-f", str(mesh))
    assert (status, out.splitlines()) == (
        1,
        [
            "serviceaccount/web created",
            "service/web created",
            "workload.meshwright.dev/web created",
            "trafficsplit.split.smi-spec.io/web created",
        ],
    )
    assert complaint.splitlines() == [
        "applied.yaml:20 (document 5): TrafficSplit shop/bad is invalid:",
        "  - spec.backends[0].weight is -1: must be a whole number from 0 to 4294967295 (MW1013)",
        "meshwright: 1 of 5 manifests refused",
    ]
    server = program.serve()
    assert _source(server) == {"good": 4, "stale": 0, "refused": 0}

    status, out, _ = program.run("check", "--state", str(program.state), "--json")
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert (checks["etcd"]["status"], checks["etcd history"]["status"]) == ("ok", "ok"), checks

    # Values that are written by hand: each is a problem of its own, and the others stay in force.
    own_member.put(NAMES.name_of(web()), b"a: [")
    own_member.put(PREFIX + b"oops", b"x")
    server.until(lambda: {"MW1101", "MW1107", "MW1115"} <= _problems(server))
    assert _source(server) == {"good": 3, "stale": 1, "refused": 0}
    assert program.run("get", "services", "-n", "shop")[1].splitlines()[1].split() == [
        *("shop", "service/web", "6", "invalid:", "line", "2", "must", "be", "valid", "YAML:"),
        *("did", "not", "find", "expected", "node", "content"),
    ]
    own_member.delete(PREFIX + b"oops", PREFIX + b"oops0")

    # An object that is applied again is mended, also after the history was compacted.
    own_member.compact()
    assert program.run("apply", "-f", str(mesh))[1].splitlines() == [
        "serviceaccount/web unchanged",
        "service/web configured",
        "workload.meshwright.dev/web unchanged",
        "trafficsplit.split.smi-spec.io/web unchanged",
    ]
    server.until(lambda: len(server.said("problem resolved")) >= 3)
    assert _source(server) == {"good": 4, "stale": 0, "refused": 0}
    assert program.run("get", "TrafficSplit", "web", "-n", "shop", "-o", "yaml") == (0, SPLIT, "")

    # A deletion that harms the mesh is done, with a warning.
    status, out, complaint = program.run("delete", "Service", "web", "-n", "shop")
    assert (status, out) == (0, "service/web deleted\n")
    assert complaint.startswith("Warning: MW")
    assert "TrafficSplit shop/web" in complaint
    wait_until(lambda: _source(server)["good"] == 3, SECONDS)
    own_member.kill()
    status, _, complaint = program.run("get", "all", "-A")
    assert (status, complaint.count("\n")) == (2, 0)
    assert complaint.startswith(f"etcd at {own_member.url} ")


ROUTE: Final = """apiVersion: gateway.networking.k8s.io/v1
kind: {kind}
metadata: {{name: web, namespace: shop}}
spec:
  parentRefs: [{{group: "", kind: Service, name: web}}]
  rules: [{{backendRefs: [{{name: web, port: 80}}]}}]
"""


def test_routes_of_the_gateway_api_are_applied_and_a_refused_edit_removes_one(
    own_member: RealMember, program: Program
) -> None:
    """The last good form of a route does not stay, unlike that of other kinds. SMI's TCPRoute is another."""
    smi = "apiVersion: specs.smi-spec.io/v1alpha4\nkind: TCPRoute\nmetadata: {name: web, namespace: shop}\n"
    mesh = program.files / "routes.yaml"
    routes = (ROUTE.format(kind=kind) for kind in ("HTTPRoute", "TCPRoute"))
    mesh.write_text(texts.joined(*routes, smi, texts.service("web")))
    status, out, _ = program.run("apply", "-f", str(mesh))
    assert (status, out.splitlines()) == (
        0,
        [
            "httproute.gateway.networking.k8s.io/web created",
            "tcproute.gateway.networking.k8s.io/web created",
            "tcproute.specs.smi-spec.io/web created",
            "service/web created",
        ],
    )
    server = program.serve()
    assert _source(server) == {"good": 4, "stale": 0, "refused": 0}
    key = ObjectKey(HTTP_ROUTE, Namespace("shop"), "web")
    own_member.put(NAMES.name_of(key), ROUTE.format(kind="HTTPRoute").replace("port", "prot").encode())
    server.until(lambda: "MW1012" in _problems(server))
    assert _source(server) == {"good": 3, "stale": 0, "refused": 1}
    done = program.run("delete", "tcproute.gateway.networking.k8s.io", "web", "-n", "shop")
    assert done[:2] == (0, "tcproute.gateway.networking.k8s.io/web deleted\n")
    assert program.run("get", "tcproutes", "-n", "shop")[1].splitlines()[1].split()[1] == (
        "tcproute.specs.smi-spec.io/web"
    )


class Watched:
    """A source that is followed. `states` has the names and the codes of problems after each change."""

    def __init__(self, source: EtcdSource) -> None:
        self.source = source
        self.states: list[tuple[list[str], list[str]]] = []

    def changed(self) -> None:
        """Keep the objects and problems of a change."""
        self.states.append((self.names(), self.problems()))

    def names(self) -> list[str]:
        """Return the names of the objects in force."""
        return [key.name for key in self.source.objects()]

    def problems(self) -> list[str]:
        """Return the codes of the problems."""
        return [problem.code for problem in self.source.problems()]


@asynccontextmanager
async def watching(
    member: RealMember, patience: float = 30.0, saved: list[tuple[KeyValue, ...]] | None = None
) -> AsyncIterator[Watched]:
    """Follow the objects in a member until the end of the block; `saved` has those of earlier runs."""
    kept: list[tuple[KeyValue, ...]] = [()] if saved is None else saved
    client = Client(Access((member.endpoint,)))
    source = EtcdSource(
        client,
        EtcdConnection(client),
        NAMES,
        lambda: datetime.now(UTC),
        hold=timedelta(seconds=0.5),
        patience=timedelta(seconds=patience),
        kept=kept[-1],
        keep=kept.append,
    )
    await source.first()
    result = Watched(source)
    task = asyncio.create_task(source.run(result.changed))
    try:
        yield result
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _put(member: RealMember, name: str) -> None:
    member.put(NAMES.name_of(web(name)), texts.service(name).encode())


async def test_each_write_is_one_change_until_etcd_is_restored(
    own_member: RealMember, tmp_path: Path
) -> None:
    """Objects stay while etcd is away, follow an older snapshot after it, and vanish only after a while."""
    await asyncio.to_thread(_put, own_member, "a")
    async with watching(own_member) as watched:
        assert (watched.names(), watched.states) == (["a"], [])
        await asyncio.to_thread(_put, own_member, "b")
        await until(lambda: watched.names() == ["a", "b"])
        assert watched.states == [(["a", "b"], [])]

        own_member.kill()
        own_member.copy_data(tmp_path / "copy")
        await until(lambda: watched.source.freshness().error != "")
        assert watched.problems() == ["MW1116"]
        assert watched.names() == ["a", "b"]
        await asyncio.to_thread(own_member.again)
        await until(lambda: watched.source.freshness().error == "")
        await until(lambda: watched.problems() == [])

        await asyncio.to_thread(_put, own_member, "c")
        await until(lambda: watched.names() == ["a", "b", "c"])
        own_member.kill()
        own_member.restore(tmp_path / "copy")
        await asyncio.to_thread(own_member.again)
        # The end of the outage is a change of its own, which follows with the watch after the list.
        await until(lambda: watched.names() == ["a", "b"] and watched.problems() == [])

        watched.states.clear()
        await asyncio.to_thread(own_member.compact)
        await asyncio.to_thread(_put, own_member, "d")
        await until(lambda: watched.names() == ["a", "b", "d"])
        assert watched.states == [(["a", "b", "d"], [])]

        await asyncio.to_thread(own_member.delete, PREFIX, PREFIX[:-1] + b"0")
        await until(lambda: watched.problems() == ["MW1110"])
        assert watched.names() == ["a", "b", "d"]
        await until(lambda: watched.names() == [] and watched.problems() == [])


async def test_restart_without_etcd_begins_with_the_objects_of_before(own_member: RealMember) -> None:
    """A first start fails with a sentence; what was deleted meanwhile is gone as soon as etcd answers."""
    saved: list[tuple[KeyValue, ...]] = [()]
    await asyncio.to_thread(_put, own_member, "a")
    async with watching(own_member, saved=saved) as watched:
        await asyncio.to_thread(_put, own_member, "b")
        await until(lambda: watched.names() == ["a", "b"])
    await asyncio.to_thread(own_member.delete, NAMES.name_of(web("b")), NAMES.name_of(web("c")))
    own_member.kill()
    with pytest.raises(SourceError, match=r"^the objects in etcd cannot be listed: "):
        async with watching(own_member, patience=1.0):
            pass
    file = [last_objects.read(last_objects.written(saved[-1]))]
    async with watching(own_member, patience=1.0, saved=file) as watched:
        await until(lambda: watched.problems() == ["MW1116"])
        assert watched.names() == ["a", "b"]
        await asyncio.to_thread(own_member.again)
        await until(lambda: watched.names() == ["a"] and watched.problems() == [])
