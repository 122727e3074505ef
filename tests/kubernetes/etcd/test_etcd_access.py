"""Access to a real etcd: client certificates that are renewed, users and tokens, and missing permissions."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from meshwright.etcd.access import Access
from meshwright.etcd.client import Client, Limits
from meshwright.records.contract import Epoch, RecordsError, ReplicaId, StoreUnavailableError
from meshwright.records.etcd.layout import Layout
from meshwright.records.etcd.store import EtcdRecords
from meshwright.records.key import key_of
from meshwright.tls.contents import TlsFiles
from tests.kubernetes.etcd.cut_relay import relay_to
from tests.kubernetes.etcd.members import RealMember, Tls, encoded, etcd
from tests.tools.deadline import until
from tests.unit.records.test_contract import following, running
from tools.real_parts.keys import Keys
from tools.real_parts.keys import client as client_context

CART: Final = key_of("proxies", "shop", "cart", "9f0c")
PASSWORD: Final = "correct-horse"


def store_of(client: Client, mesh: str = "mesh") -> EtcdRecords:
    """Return the store of a mesh."""
    return EtcdRecords(client, Layout(mesh), ReplicaId("a"))


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """Return a CA with a certificate for the server, and one for the client."""
    return new_keys(tmp_path / "keys")


def new_keys(folder: Path) -> Keys:
    """Make a CA with certificates in a folder."""
    made = Keys(folder)
    made.issue("server", "etcd")
    made.issue("client", "meshwright")
    return made


def tls_files(keys: Keys) -> TlsFiles:
    """Return the files of the client."""
    return TlsFiles(keys.folder / "ca.crt", keys.folder / "client.crt", keys.folder / "client.key")


@pytest.fixture
def guarded(etcd_part: None, keys: Keys, tmp_path: Path) -> Iterator[RealMember]:
    """Return a member that demands a client certificate."""
    flags = (
        f"--cert-file={keys.folder / 'server.crt'}",
        f"--key-file={keys.folder / 'server.key'}",
        f"--trusted-ca-file={keys.folder / 'ca.crt'}",
        "--client-cert-auth",
    )
    tls = Tls(flags, client_context(keys.folder, "client"))
    with etcd(tmp_path / "guarded", tls=tls) as [started]:
        yield started


async def test_client_certificate_is_enough(guarded: RealMember, keys: Keys) -> None:
    """With the certificate records are written, read and followed."""
    async with Client(Access((guarded.endpoint,), tls_files(keys))) as client:
        store = store_of(client)
        created = await store.write(CART, b"one", None)
        async with following(store, "proxies") as follower:
            assert follower.known == {CART: created}


async def test_server_of_another_ca_is_not_trusted(guarded: RealMember, keys: Keys, tmp_path: Path) -> None:
    """The error says that the certificate is at fault; a store that cannot be verified is unavailable."""
    others = new_keys(tmp_path / "others")
    files = TlsFiles(others.folder / "ca.crt", keys.folder / "client.crt", keys.folder / "client.key")
    async with Client(Access((guarded.endpoint,), files), Limits(write=1.0)) as client:
        with pytest.raises(StoreUnavailableError, match=r"Tls handshake failed"):
            await store_of(client).write(CART, b"one", None)


async def test_renewed_files_are_used_without_a_restart(guarded: RealMember, keys: Keys) -> None:
    """The store gets certificates of a new CA, and the client's files are replaced after that."""
    async with Client(Access((guarded.endpoint,), tls_files(keys)), Limits(read=1.0)) as client:
        store = store_of(client)
        created = await store.write(CART, b"one", None)
        fresh = new_keys(keys.folder.parent / "fresh")
        guarded.kill()
        for name in ("ca.crt", "server.crt", "server.key"):
            (keys.folder / name).write_bytes((fresh.folder / name).read_bytes())
        guarded.start()
        with pytest.raises(StoreUnavailableError):
            await store.read(CART)
        for name in ("client.crt", "client.key"):
            (keys.folder / name).write_bytes((fresh.folder / name).read_bytes())

        async def is_read() -> bool:
            try:
                return await store.read(CART) == created
            except StoreUnavailableError:
                return False

        await until(is_read)


async def test_renewed_files_break_no_feed(guarded: RealMember, keys: Keys) -> None:
    """Connections with the earlier files are replaced, also those of a watch at another member."""
    async with relay_to(guarded.endpoint) as relay:
        access = Access((relay.endpoint, guarded.endpoint), tls_files(keys))
        async with Client(access) as client:
            store = store_of(client)
            async with following(store, "proxies") as follower:
                keys.issue("client", "meshwright")
                relay.lose_answers()
                assert await store.read(CART) is None
                created = await store.write(CART, b"one", None)
                await until(lambda: follower.known == {CART: created})


@pytest.fixture
def with_users(etcd_part: None, tmp_path: Path) -> Iterator[RealMember]:
    """Return a member with users: root, and one with a role for the prefix of one mesh."""
    with etcd(tmp_path / "users", flags=("--bcrypt-cost=4",)) as [started]:
        started.ask("auth/user/add", name="root", password="root")
        started.ask("auth/user/grant", user="root", role="root")
        started.ask("auth/user/add", name="mesh", password=PASSWORD)
        started.ask("auth/role/add", name="mesh")
        span = {"key": encoded(b"/meshwright/mesh/"), "range_end": encoded(b"/meshwright/mesh0")}
        started.ask("auth/role/grant", name="mesh", perm={"permType": "READWRITE", **span})
        started.ask("auth/user/grant", user="mesh", role="mesh")
        started.ask("auth/enable")
        yield started


def access_as(member: RealMember, path: Path, line: str) -> Access:
    """Return the access with a file of user and password."""
    path.write_text(f"{line}\n", "utf-8")
    return Access((member.endpoint,), user_file=path)


async def test_role_for_the_prefix_of_the_mesh_is_enough(with_users: RealMember, tmp_path: Path) -> None:
    """Records, presence and leadership need no other keys; another mesh is refused in one sentence."""
    async with Client(access_as(with_users, tmp_path / "user", f"mesh:{PASSWORD}")) as client:
        store = store_of(client)
        created = await store.write(CART, b"one", None)
        assert await store.read(CART) == created
        async with following(store, "proxies") as follower:
            assert follower.known == {CART: created}
        with pytest.raises(RecordsError) as caught:
            await store_of(client, "other").read(CART)
        assert type(caught.value) is RecordsError
        assert str(caught.value) == (
            f"etcd at {with_users.url} refuses Range: etcdserver: permission denied: grant the user a role"
            " with read and write permission for the prefix of this mesh"
        )
        epochs: list[Epoch] = []

        async def work(epoch: Epoch) -> None:
            epochs.append(epoch)
            await asyncio.Event().wait()

        seen: list[Mapping[ReplicaId, bytes]] = []
        async with running(store.lead(work)), running(store.announce(lambda: b"a", seen.append)):
            await until(lambda: epochs and seen[-1:] == [{"a": b"a"}])


async def test_forgotten_token_is_replaced(with_users: RealMember, tmp_path: Path) -> None:
    """A restarted store knows no tokens of before; calls and watches get a new one, unnoticed."""
    async with Client(access_as(with_users, tmp_path / "user", f"mesh:{PASSWORD}")) as client:
        store = store_of(client)
        created = await store.write(CART, b"one", None)
        async with following(store, "proxies") as follower:
            with_users.kill()
            with_users.again()
            replaced = await store.write(CART, b"two", created.revision)
            await until(lambda: follower.known == {CART: replaced})


async def test_wrong_password_is_named_and_not_shown(with_users: RealMember, tmp_path: Path) -> None:
    """The sentence says what to check; after a correction of the file no restart is needed."""
    path = tmp_path / "user"
    async with Client(access_as(with_users, path, "mesh:wrong-secret")) as client:
        store = store_of(client)
        with pytest.raises(RecordsError) as caught:
            await store.read(CART)
        assert str(caught.value) == (
            f"etcd at {with_users.url} refuses Authenticate: user or password is wrong: check the file with"
            " both"
        )
        path.write_text(f"mesh:{PASSWORD}\n", "utf-8")
        assert await store.read(CART) is None
