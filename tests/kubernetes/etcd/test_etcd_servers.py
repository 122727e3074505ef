"""Three real servers of one mesh on machines, which share their state in three real members of etcd."""

import asyncio
import json
import shutil
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import grpc
import pytest

from meshwright.mesh.identity import ProxyName
from protos.meshwright.etcd.v3 import etcd_pb2 as pb
from tests.feature.identity.grpc_machine import Answered, Machine
from tests.kubernetes.etcd.members import RealMember, Tls, encoded, etcd
from tests.kubernetes.records.test_servers import REVOKED_SECONDS, Replica, Stream, until
from tests.meshes import texts
from tests.tools.forked_cli import Typed
from tests.tools.program import Program
from tools.real_parts.keys import Keys
from tools.real_parts.keys import client as client_context

SHOP: Final = ProxyName.parse("shop-1.shop.shop")
BUYER: Final = ProxyName.parse("buyer-1.buyer.shop")
AT: Final = "10.0.0.1"
MESH: Final = texts.joined(
    texts.account("buyer"),
    texts.account("shop"),
    texts.service("shop"),
    texts.service("buyer"),
    texts.workload("shop", AT, uuid="shop-1"),
    texts.workload("buyer", "10.0.0.9", uuid="buyer-1"),
    texts.route_group("all", texts.match("all", "/.*")),
    texts.target("buyers", "buyer", "shop", texts.http("all")),
)
ROLE: Final = "meshwright"
PASSWORD: Final = "administrator"
TORN: Final = "TLS files cannot be used, the earlier ones stay in use"
LATER: Final = "certificates cannot be signed now: try again later"


@dataclass
class Store:
    """Members of an etcd with users: the administrator, and one with a role for the keys of one mesh."""

    members: list[RealMember]
    keys: Keys

    def flags(self, certificate: str = "client") -> tuple[str, ...]:
        """Return the settings of a server with a client certificate."""
        folder = self.keys.folder
        settings = {
            "store": "etcd",
            "etcd_endpoints": ",".join(member.url for member in self.members),
            "etcd_ca": folder / "ca.crt",
            "etcd_certificate": folder / f"{certificate}.crt",
            "etcd_key": folder / f"{certificate}.key",
        }
        return tuple(word for name, value in settings.items() for word in ("--set", f"{name}={value}"))

    def compact(self) -> None:
        """Drop the history as the administrator, whose certificate the JSON gateway does not know."""
        ca, key, certificate = (
            (self.keys.folder / name).read_bytes() for name in ("ca.crt", "root.key", "root.crt")
        )
        credentials = grpc.ssl_channel_credentials(ca, key, certificate)
        with grpc.secure_channel(self.members[0].endpoint.target, credentials) as channel:
            ask = channel.unary_unary("/etcdserverpb.KV/Range")
            answer = pb.RangeResponse.FromString(ask(pb.RangeRequest(key=b"x").SerializeToString()))
            # In the place of a CompactionRequest, whose field 1 is a number too: the revision.
            request = pb.LeaseGrantRequest(TTL=answer.header.revision)
            channel.unary_unary("/etcdserverpb.KV/Compact")(request.SerializeToString())

    def renew(self, other: Keys) -> None:
        """Replace the CA and all certificates by those of another CA, as an operator does."""
        for path in other.folder.iterdir():
            (self.keys.folder / path.name).write_bytes(path.read_bytes())


def issued(folder: Path) -> Keys:
    """Return a CA with certificates for the members, the administrator, the servers and a stranger."""
    keys = Keys(folder)
    for name, common_name in (("server", "etcd"), ("root", "root"), ("client", ROLE), ("stranger", "other")):
        keys.issue(name, common_name)
    return keys


@pytest.fixture(scope="module")
def store(etcd_part: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return three members that demand a client certificate, whose common name is the user.

    The test that kills members comes last in this file, so that its failure does not harm the others.
    """
    folder = tmp_path_factory.mktemp("etcd-servers")
    keys = issued(folder / "keys")
    flags = (
        *(f"--cert-file={keys.folder}/server.crt", f"--key-file={keys.folder}/server.key"),
        *(f"--trusted-ca-file={keys.folder}/ca.crt", "--client-cert-auth", "--bcrypt-cost=4"),
    )
    with etcd(folder / "members", count=3, tls=Tls(flags, client_context(keys.folder, "root"))) as members:
        first = members[0]
        first.ask("auth/user/add", name="root", password=PASSWORD)
        first.ask("auth/user/grant", user="root", role="root")
        first.ask("auth/user/add", name=ROLE, options={"no_password": True})
        first.ask("auth/role/add", name=ROLE)
        prefix = {"key": encoded(b"/meshwright/cluster.local/")}
        prefix["range_end"] = encoded(b"/meshwright/cluster.local0")
        first.ask("auth/role/grant", name=ROLE, perm={"permType": "READWRITE", **prefix})
        first.ask("auth/user/grant", user=ROLE, role=ROLE)
        first.ask("auth/enable")
        yield Store(members, keys)


@pytest.fixture
def passphrase(tmp_path: Path) -> Path:
    """Return the file with the passphrase of all servers."""
    path = tmp_path / "passphrase"
    path.write_text("the same on all servers\n")
    path.chmod(0o600)
    return path


@contextmanager
def equal_replicas(
    folder: Path, typed: Typed, flags: tuple[str, ...], names: Iterable[str]
) -> Iterator[list[Replica]]:
    """Return servers that are not started yet, with equal directories of manifests; end them afterwards."""
    made = []
    for name in names:
        program = Program(folder / name / "state", folder / name / "files", typed)
        (program.mesh / "mesh.yaml").write_text(MESH)
        made.append(Replica(program, flags))
    yield made
    for replica in made:
        replica.program.end()


@pytest.fixture
def replicas(store: Store, passphrase: Path, typed: Typed, tmp_path: Path) -> Iterator[list[Replica]]:
    """Return three servers that are not started yet, with equal directories of manifests."""
    flags = (
        *store.flags(),
        *("--set", f"key_passphrase_file={passphrase}", "--set", "endpoint_admission=off"),
        *("--set", "enrolment_address=127.0.0.1:0", "--set", "enrolment_proofs=join-token"),
        *("--set", "shutdown_delay_seconds=0", "--set", "shutdown_spread_seconds=0"),
    )
    with equal_replicas(tmp_path, typed, flags, "abc") as made:
        yield made


@dataclass
class Joining:
    """Joins of machines at the servers of one mesh."""

    roots: bytes
    folder: Path
    numbers: int = 0

    async def attempt(self, replica: Replica, token: str, machine: Machine | None = None) -> Answered:
        """Join at a server, as a new machine by default; return the answer."""
        answered: Answered
        _, machine, answered = await replica.join(self.roots, token, machine)
        if answered.code is grpc.StatusCode.OK:
            folder = self.folder / str(SHOP)
            folder.mkdir(exist_ok=True)
            (folder / f"{SHOP}.pem").write_bytes(answered.certificate.chain_pem)
            (folder / f"{SHOP}.key").write_bytes(machine.pem)
            (folder / "ca.pem").write_bytes(self.roots)
        return answered

    async def token(self, replica: Replica) -> str:
        """Make a token with one use at a server."""
        self.numbers += 1
        return await asyncio.to_thread(replica.token, SHOP, self.folder / f"token-{self.numbers}")


def _is_served(stream: Stream) -> bool:
    return stream.addresses() == {AT} and stream.is_served()


def _has_store(replica: Replica) -> bool:
    return "shared store: " not in replica.running.get("/healthz/ready")[1]


def _says_once(replica: Replica, event: str) -> bool:
    return len(replica.running.said(event)) == 1


def _serial(listing: str, name: ProxyName) -> str:
    row = next(line for line in listing.splitlines() if str(name) in line)
    return next(word for word in row.split() if len(word) >= 16 and set(word) <= set("0123456789abcdef"))


async def test_wrong_access_is_one_sentence(
    store: Store, passphrase: Path, typed: Typed, tmp_path: Path
) -> None:
    """A start with a certificate of a user without a role names the missing permission."""
    program = Program(tmp_path / "state", tmp_path / "files", typed)
    sentence = await asyncio.to_thread(
        program.refused, *store.flags("stranger"), "--set", f"key_passphrase_file={passphrase}"
    )
    program.end()
    assert sentence.startswith("the shared store cannot be used: etcd at https://127.0.0.1:")
    assert sentence.endswith(
        " refuses Range: etcdserver: permission denied: grant the user a role with read and write permission "
        "for the prefix of this mesh"
    )


async def test_servers_that_have_read_other_objects_are_named(replicas: list[Replica]) -> None:
    """One of two servers misses a change, as with a mount that is not updated, until it reads it too."""
    one, two = replicas[:2]
    await asyncio.gather(asyncio.to_thread(one.start), asyncio.to_thread(two.start))
    await until(lambda: _inputs(one) == (2, 1, True))
    changed = texts.joined(MESH, texts.service("store", app="shop"))
    for replica, digests in ((one, 2), (two, 1)):
        (replica.program.mesh / "mesh.yaml").write_text(changed)
        expected = (2, digests, digests == 1)
        for seen_from in (one, two):
            await until(partial(_has_inputs, seen_from, expected))
    for replica in (one, two):
        await asyncio.to_thread(replica.running.stop)


def _has_inputs(replica: Replica, expected: tuple[int, int, bool]) -> bool:
    return _inputs(replica) == expected


def _inputs(replica: Replica) -> tuple[int, int, bool]:
    """Return the numbers of servers and of different inputs that a server sees, and whether all are equal."""
    with urllib.request.urlopen(f"http://{replica.running.bound['debug']}/api/v1/replicas") as response:
        answer = json.load(response)
    digests = [server["inputs"] for server in answer["replicas"]]
    return len(digests), len(set(digests)), answer["inputs_differ_seconds"] is None


async def test_three_servers_are_one_mesh(store: Store, replicas: list[Replica], tmp_path: Path) -> None:
    """Proxies join, move and are revoked, while members are killed, quorum is lost and credentials change."""
    one, two, three = replicas
    await asyncio.gather(*(asyncio.to_thread(replica.start) for replica in replicas))
    buyers = await asyncio.to_thread(one.issued, BUYER, tmp_path / "buyer")
    joining = Joining((buyers / "ca.pem").read_bytes(), tmp_path)
    shops = tmp_path / str(SHOP)

    # A token of one server is used at another one, and the proxy moves to a third one.
    token = await joining.token(one)
    assert (await joining.attempt(two, token)).code is grpc.StatusCode.OK
    assert (await joining.attempt(three, token)).code is grpc.StatusCode.PERMISSION_DENIED
    async with two.stream(SHOP, shops) as before, three.stream(SHOP, shops) as moved:
        for stream in (before, moved):
            await stream.until(stream.is_served)
        assert before.secrets() == moved.secrets() != {}

    waiting = await joining.token(one)
    async with one.stream(BUYER, buyers) as here, three.stream(BUYER, buyers) as there:
        for stream in (here, there):
            await stream.until(partial(_is_served, stream))
        assert here.secrets() == there.secrets() != {}

        # Without one member nothing is missing; without two, only what would have to be written.
        store.members[0].kill()
        token = await joining.token(two)
        assert (await joining.attempt(three, token)).code is grpc.StatusCode.OK
        # A server without quorum serves the certificates that it knows: this one is a moment old.
        async with two.stream(SHOP, shops) as known:
            await known.until(known.is_served)
        store.members[1].kill()
        late = Machine()
        answered = await joining.attempt(one, waiting, late)
        assert (answered.code, answered.words) == (grpc.StatusCode.UNAVAILABLE, LATER)
        await until(lambda: not _has_store(one))
        assert one.running.get("/healthz/ready")[0] == 200
        async with two.stream(SHOP, shops) as known:
            await known.until(known.is_served)

        # The members come back with certificates of another CA. The servers see a file that is half written.
        renewed = issued(tmp_path / "renewed")
        (store.keys.folder / "client.key").write_bytes(b"")
        for replica in replicas:
            await until(partial(_says_once, replica, TORN))
        store.renew(renewed)
        store.members[2].kill()
        for member in store.members:
            member.trust(client_context(store.keys.folder, "root"))
            member.start()
        for member in store.members:
            await asyncio.to_thread(member.service.until_ready)
        for replica in replicas:
            await until(partial(_has_store, replica))
        # The last member may have kept the write, and the others take it over: then the use is this key's.
        assert (await joining.attempt(one, waiting, late)).code is grpc.StatusCode.OK

        # All streams have outlived this; a revocation reaches them also after a compaction.
        for stream in (here, there):
            assert not stream.task.done()
        await asyncio.to_thread(store.compact)
        serial = _serial(await asyncio.to_thread(two.run, "certs", "list"), BUYER)
        await asyncio.to_thread(two.run, "certs", "revoke", serial)
        async with asyncio.timeout(REVOKED_SECONDS):
            await asyncio.wait((here.task, there.task))
    shutil.rmtree(three.program.state)
    await asyncio.to_thread(three.running.stop)
    for replica in (one, two):
        await until(partial(_says_once, replica, "another server of the mesh is gone"))
    for replica in (one, two):
        await asyncio.to_thread(replica.running.stop)
