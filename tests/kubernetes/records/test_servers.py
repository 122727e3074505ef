"""Tests of two real servers of one mesh, which share their state on a real API server."""

import asyncio
import contextlib
import http.client
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import grpc
import pytest

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from tests.feature.identity.grpc_machine import Machine, join
from tests.feature.serve.delta_sidecar import Sidecar
from tests.kubernetes.tools.accounts import Accounts, Rule
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.shop import FIRST
from tests.tools import libyaml
from tests.tools.deadline import wait_until
from tests.tools.forked_cli import Typed
from tests.tools.program import Program, Server
from tools.ports import free_port
from tools.real_parts.cluster import RunningCluster
from xds.protocol.resources.resource import LISTENER, SECRET

DOCS: Final = Path(__file__).parents[3] / "docs" / "kubernetes"
ROLES: Final = ("rbac.yaml", "shared-store.yaml")
SECONDS: Final = 60.0
REVOKED_SECONDS: Final = 10.0
"""Longest time until a revocation at one server ends the stream at another: goal 1 s, on a busy machine."""


@dataclass
class Replica:
    """One server of the mesh, with its own state directory."""

    program: Program
    flags: tuple[str, ...]
    server: Server | None = None

    def start(self) -> None:
        """Start the server, and return once it serves."""
        self.server = self.program.serve(*self.flags)

    @property
    def running(self) -> Server:
        """Return the running server."""
        assert self.server is not None
        return self.server

    def run(self, *arguments: str) -> str:
        """Run a command with this server; return its output."""
        status, out, complaint = self.program.run(*arguments, "--state", str(self.program.state))
        assert status == 0, complaint
        return out

    def token(self, name: ProxyName, out: Path) -> str:
        """Create a join token with one use for a proxy."""
        named = ("--uuid", str(name.uuid), "--service", str(name.service), "--namespace", str(name.namespace))
        self.run("certs", "token", "create", *named, "--uses", "1", "--out", str(out), "--anyway")
        return out.read_text().strip()

    def serial(self, name: ProxyName) -> str:
        """Return the serial of a proxy's first certificate."""
        lines = [line for line in self.run("certs", "list").splitlines() if str(name) in line]
        return next(word for line in lines for word in line.split() if _is_hex(word))

    def issued(self, name: ProxyName, folder: Path) -> Path:
        """Issue a certificate; return the folder with certificate, key and root."""
        named = ("--uuid", str(name.uuid), "--service", str(name.service), "--namespace", str(name.namespace))
        self.run("certs", "issue-proxy", *named, "--out", str(folder), "--anyway")
        for end in ("pem", "key"):
            shutil.copy(folder / f"proxy.{end}", folder / f"{name}.{end}")
        return folder

    async def join(
        self, roots: bytes, token: str, machine: Machine | None = None
    ) -> tuple[grpc.StatusCode, Machine, Any]:
        """Join with a token, by default as a new machine; return status, machine and answer."""
        at = HostPort.parse(self.running.bound["enrolment"])
        authority = SimpleNamespace(trust_bundle=lambda: roots)
        target = SimpleNamespace(bound=SimpleNamespace(enrolment={"enrolment": at}), authority=authority)
        machine = machine or Machine()
        answered = await join(target, machine, token)
        return answered.code, machine, answered

    @asynccontextmanager
    async def stream(self, name: ProxyName, folder: Path) -> AsyncIterator["Stream"]:
        """Connect a sidecar to this server for the block."""
        sidecar = Sidecar(str(name))
        task = asyncio.create_task(sidecar.run(str(self.running.bound["ads"]), folder))
        try:
            yield Stream(sidecar, task)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, grpc.aio.AioRpcError):
                await task


@dataclass
class Stream:
    """A sidecar's stream."""

    sidecar: Sidecar
    task: asyncio.Task[None]

    def addresses(self) -> set[str]:
        """Return the addresses of all endpoints that the sidecar has."""
        return {address for found in self.sidecar.endpoints.values() for address in found}

    def secrets(self) -> dict[str, bytes]:
        """Return the secrets that the sidecar was sent, by name."""
        return {
            resource.name: resource.resource.value
            for response in self.sidecar.responses
            if response.type_url == SECRET
            for resource in response.resources
        }

    def is_served(self) -> bool:
        """Return whether listeners and everything requested have arrived."""
        types = {response.type_url for response in self.sidecar.responses}
        return LISTENER in types and self.sidecar.has_all()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds; the stream must not end before."""

        def is_so() -> bool:
            assert not self.task.done(), "the stream has ended"
            return holds()

        await until(is_so)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    await asyncio.to_thread(wait_until, holds, SECONDS)


@pytest.fixture
def replicas(
    shared_cluster: RunningCluster, kubectl: Kubectl, home: str, typed: Typed, tmp_path: Path
) -> Iterator[tuple[Replica, Replica]]:
    """Return two servers that are not started yet, with the roles of our manifests only."""
    accounts = Accounts(shared_cluster, replace(kubectl, namespace=home), tmp_path / "accounts")
    account = accounts.make("meshwright", _rules("ClusterRole"))
    accounts.allow(account, _rules("Role"), everywhere=False)
    kubeconfig, made = account.kubeconfig, []
    kubectl.apply(custody(home))
    for name in ("a", "b"):
        program = Program(tmp_path / name / "state", tmp_path / name / "files", typed)
        program.reads = ()
        program.environment["POD_NAMESPACE"] = home
        flags = (
            *("--kubernetes", "--kubeconfig", str(kubeconfig)),
            *("--namespaces", kubectl.namespace, "--set", "store=kubernetes"),
            *("--set", "enrolment_address=127.0.0.1:0", "--set", "enrolment_proofs=join-token"),
        )
        made.append(Replica(program, flags))
    one, two = made
    yield one, two
    for replica in made:
        replica.program.end()


def custody(namespace: str) -> dict[str, Any]:
    """Return the Secret of our manifest."""
    documents = libyaml.load_all((DOCS / "shared-store.yaml").read_text("utf-8"))
    [secret] = [item for item in documents if item["kind"] == "Secret"]
    return {**secret, "metadata": {**secret["metadata"], "namespace": namespace}}


def _rules(kind: str) -> list[Rule]:
    documents = [item for name in ROLES for item in libyaml.load_all((DOCS / name).read_text("utf-8"))]
    return [rule for item in documents if item["kind"] == kind for rule in item["rules"]]


async def test_two_servers_are_one_mesh(
    replicas: tuple[Replica, Replica], buyer: ProxyName, tmp_path: Path
) -> None:
    """A proxy moves between servers that started at once, is revoked, and outlives a killed server."""
    one, two = replicas
    await asyncio.gather(asyncio.to_thread(one.start), asyncio.to_thread(two.start))
    buyers = await asyncio.to_thread(one.issued, buyer, tmp_path / "buyer")
    others = await asyncio.to_thread(
        two.issued, ProxyName.parse(f"other.buyer.{buyer.namespace}"), tmp_path / "other"
    )
    roots = (buyers / "ca.pem").read_bytes()
    assert roots == (others / "ca.pem").read_bytes()

    # The shop joins at one server, with a token of the other one, and is connected to that one only.
    shop = ProxyName.parse(f"shop-{buyer.namespace}.shop.{buyer.namespace}")
    token = await asyncio.to_thread(one.token, shop, tmp_path / "token")
    code, machine, answered = await two.join(roots, token)
    assert code is grpc.StatusCode.OK, answered
    shops = tmp_path / "shop"
    shops.mkdir()
    (shops / f"{shop}.pem").write_bytes(answered.certificate.chain_pem)
    (shops / f"{shop}.key").write_bytes(machine.pem)
    (shops / "ca.pem").write_bytes(roots)
    for replica in replicas:
        assert (await replica.join(roots, token))[0] is grpc.StatusCode.PERMISSION_DENIED

    async with one.stream(shop, shops), one.stream(buyer, buyers) as here, two.stream(buyer, buyers) as there:
        for stream in (here, there):
            await stream.until(partial(_is_at_first, stream))
        assert here.secrets() == there.secrets() != {}

    async with two.stream(shop, shops) as moved, two.stream(buyer, buyers) as there:
        await moved.until(moved.is_served)
        await there.until(lambda: there.addresses() == {FIRST})
        serial = await asyncio.to_thread(one.serial, buyer)
        await asyncio.to_thread(one.run, "certs", "revoke", serial)
        async with asyncio.timeout(REVOKED_SECONDS):
            await asyncio.wait((there.task,))

        one.running.process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(one.running.process.wait, SECONDS)
        alone = tuple(flag.replace("store=kubernetes", "store=directory") for flag in one.flags)
        sentence = await asyncio.to_thread(one.program.refused, *alone)
        assert "are in a store of several servers" in sentence
        shutil.rmtree(one.program.state)
        assert not moved.task.done()
        await asyncio.to_thread(one.start)
        async with one.stream(shop, shops) as back, one.stream(buyer, buyers) as refused:
            await back.until(back.is_served)
            assert back.secrets() == moved.secrets() != {}
            await until(refused.task.done)
            assert not refused.sidecar.responses
    await asyncio.to_thread(one.running.stop)
    await asyncio.to_thread(two.running.stop)


def _is_at_first(stream: Stream) -> bool:
    """Return whether a sidecar has everything, and the shop's only endpoint."""
    return stream.addresses() == {FIRST} and stream.is_served()


def _is_hex(word: str) -> bool:
    return len(word) >= 16 and all(character in "0123456789abcdef" for character in word)


async def test_proxies_are_served_while_the_api_server_is_away(
    replicas: tuple[Replica, Replica], buyer: ProxyName, shared_cluster: RunningCluster, tmp_path: Path
) -> None:
    """A known proxy connects again, and a machine cannot join before the API server is back."""
    one, _ = replicas
    await asyncio.to_thread(one.start)
    folder = await asyncio.to_thread(one.issued, buyer, tmp_path / "buyer")
    roots = (folder / "ca.pem").read_bytes()
    shop = ProxyName.parse(f"shop-{buyer.namespace}.shop.{buyer.namespace}")
    token = await asyncio.to_thread(one.token, shop, tmp_path / "token")
    async with one.stream(buyer, folder) as before:
        await before.until(before.is_served)
    await asyncio.to_thread(shared_cluster.api.kill)
    try:
        await until(lambda: "shared store: " in one.running.get("/healthz/ready")[1])
        assert one.running.get("/healthz/ready")[0] == 200
        async with one.stream(buyer, folder) as during:
            await during.until(during.is_served)
            assert during.secrets() == before.secrets() != {}
        code, _, answered = await one.join(roots, token)
        assert code is grpc.StatusCode.UNAVAILABLE, answered
    finally:
        await asyncio.to_thread(shared_cluster.api.again)
    await until(lambda: "shared store: " not in one.running.get("/healthz/ready")[1])
    assert (await one.join(roots, token))[0] is grpc.StatusCode.OK
    await asyncio.to_thread(one.running.stop)


async def test_records_deleted_by_hand_come_back(
    replicas: tuple[Replica, Replica], buyer: ProxyName, kubectl: Kubectl, home: str, tmp_path: Path
) -> None:
    """All records and the data of the Secret are deleted: streams go on, and a revocation is not undone."""
    one, two = replicas
    await asyncio.gather(asyncio.to_thread(one.start), asyncio.to_thread(two.start))
    buyers = await asyncio.to_thread(one.issued, buyer, tmp_path / "buyer")
    other = ProxyName.parse(f"other.buyer.{buyer.namespace}")
    others = await asyncio.to_thread(two.issued, other, tmp_path / "other")
    serial = await asyncio.to_thread(two.serial, other)
    await asyncio.to_thread(two.run, "certs", "revoke", serial)
    shop = ProxyName.parse(f"shop-{buyer.namespace}.shop.{buyer.namespace}")
    token = await asyncio.to_thread(one.token, shop, tmp_path / "token")
    here = replace(kubectl, namespace=home)
    async with one.stream(buyer, buyers) as stream:
        await stream.until(stream.is_served)
        before = await asyncio.to_thread(_keys_of_records, here)
        secrets = stream.secrets()
        await asyncio.to_thread(here, "delete", "records", "--all")
        emptied = ('[{"op": "remove", "path": "/data"}]',)
        await asyncio.to_thread(
            here, "patch", "secret", "meshwright-custody", "--type", "json", "--patch", *emptied
        )
        await until(lambda: _keys_of_records(here) >= before)
        assert not stream.task.done()
        for replica in replicas:
            async with replica.stream(other, others) as refused:
                await until(refused.task.done)
                assert not refused.sidecar.responses
        code, _, answered = await two.join((buyers / "ca.pem").read_bytes(), token)
        assert code is grpc.StatusCode.OK, answered
        assert (stream.task.done(), stream.secrets()) == (False, secrets)
    event = "the shared store had lost records, and this server has written them again"
    assert event in {line["event"] for replica in replicas for line in replica.running.log()}
    await asyncio.to_thread(one.running.stop)
    await asyncio.to_thread(one.start)
    async with one.stream(buyer, buyers) as back:
        await back.until(back.is_served)
        assert back.secrets() == secrets


async def _answer_of(address: str, path: str) -> tuple[int, str]:
    """Return the status and the text of a probe, once the server answers at all."""
    answers = list[tuple[int, str]]()

    def is_answered() -> bool:
        host, _, port = address.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            answers.append((answer.status, answer.read().decode()))
        except OSError:
            return False
        finally:
            connection.close()
        return True

    await until(is_answered)
    return answers[0]


def _keys_of_records(kubectl: Kubectl) -> set[str]:
    """Return the keys of all records of the mesh, without the servers' presence."""
    records = kubectl.get("records")["items"]
    data = kubectl.get("secret", "meshwright-custody").get("data", {})
    keys = {record["spec"]["key"] for record in records} | set(data)
    return {key for key in keys if not key.startswith("replicas/")}


async def test_server_starts_while_the_api_server_is_away(
    replicas: tuple[Replica, Replica],
    buyer: ProxyName,
    shared_cluster: RunningCluster,
    kubectl: Kubectl,
    home: str,
    tmp_path: Path,
) -> None:
    """It serves known proxies, but no revoked one, and is caught up afterwards. An empty one waits."""
    one, two = replicas
    await asyncio.to_thread(one.start)
    folder = await asyncio.to_thread(one.issued, buyer, tmp_path / "buyer")
    roots = (folder / "ca.pem").read_bytes()
    shop = ProxyName.parse(f"shop-{buyer.namespace}.shop.{buyer.namespace}")
    token = await asyncio.to_thread(one.token, shop, tmp_path / "token")
    other = ProxyName.parse(f"other.buyer.{buyer.namespace}")
    others = await asyncio.to_thread(one.issued, other, tmp_path / "other")
    await asyncio.to_thread(one.run, "certs", "revoke", await asyncio.to_thread(one.serial, other))
    async with one.stream(buyer, folder) as before:
        await before.until(before.is_served)
        secrets = before.secrets()
    await asyncio.to_thread(one.running.stop)
    await asyncio.to_thread(shared_cluster.api.kill)
    try:
        await asyncio.to_thread(one.start)
        await until(lambda: "shared store: " in one.running.get("/healthz/ready")[1])
        assert one.running.get("/healthz/ready")[0] == 200
        async with one.stream(buyer, folder) as during:
            await during.until(during.is_served)
            assert during.secrets() == secrets != {}
        async with one.stream(other, others) as revoked:
            await until(revoked.task.done)
            assert not revoked.sidecar.responses
        code, _, answered = await one.join(roots, token)
        assert code is grpc.StatusCode.UNAVAILABLE, answered
        probes = f"127.0.0.1:{free_port('127.0.0.1')}"
        two.flags += (f"--http-address={probes}",)
        waiting = asyncio.create_task(asyncio.to_thread(two.start))
        answers = {path: await _answer_of(probes, f"/healthz/{path}") for path in ("live", "ready")}
        assert answers == {
            "live": (200, "alive\n"),
            "ready": (503, "waiting for: an answer of the shared store\n"),
        }
    finally:
        await asyncio.to_thread(shared_cluster.api.again)
    await waiting
    await until(lambda: "shared store: " not in one.running.get("/healthz/ready")[1])
    assert (await one.join(roots, token))[0] is grpc.StatusCode.OK
    async with two.stream(buyer, folder) as there:
        await there.until(there.is_served)
        assert there.secrets() == secrets
    for replica in replicas:
        await asyncio.to_thread(replica.running.stop)
