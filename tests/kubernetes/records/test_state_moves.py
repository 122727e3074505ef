"""Test of a mesh on its way from a state directory into a real API server, and back."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from meshwright.mesh.identity import ProxyName
from tests.kubernetes.records.test_servers import DOCS, ROLES, Replica, Stream, until
from tests.kubernetes.tools.accounts import Accounts, Rule
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.shop import FIRST
from tests.tools import libyaml
from tests.tools.forked_cli import Typed
from tests.tools.program import Program
from tools.real_parts.cluster import RunningCluster

SHARED = ("--set", "store=kubernetes")


@pytest.fixture
def servers(
    shared_cluster: RunningCluster, kubectl: Kubectl, home: str, typed: Typed, tmp_path: Path
) -> Iterator[tuple[Replica, ...]]:
    """Return three servers that are not started yet, with the roles of our manifests only."""
    documents = [item for name in ROLES for item in libyaml.load_all((DOCS / name).read_text("utf-8"))]
    for item in documents:
        if item["kind"] == "Secret":
            kubectl.apply({**item, "metadata": {**item["metadata"], "namespace": home}})
    accounts = Accounts(shared_cluster, replace(kubectl, namespace=home), tmp_path / "accounts")
    account = accounts.make("meshwright", _rules(documents, "ClusterRole"))
    accounts.allow(account, _rules(documents, "Role"), everywhere=False)
    made = []
    for name in ("a", "b", "c"):
        program = Program(tmp_path / name / "state", tmp_path / name / "files", typed)
        program.reads = ()
        program.environment["POD_NAMESPACE"] = home
        # As in the environment of a Pod, so that servers and commands have the same settings.
        program.environment["MESHWRIGHT_KUBERNETES"] = "true"
        program.environment["MESHWRIGHT_KUBECONFIG"] = str(account.kubeconfig)
        flags = ("--namespaces", kubectl.namespace, "--set", "endpoint_admission=off")
        made.append(Replica(program, flags))
    yield tuple(made)
    for server in made:
        server.program.end()


def _rules(documents: list[dict[str, object]], kind: str) -> list[Rule]:
    return [rule for item in documents if item["kind"] == kind for rule in item["rules"]]  # type: ignore[attr-defined] # a list in our manifests


async def _secrets(server: Replica, name: ProxyName, folder: Path) -> dict[str, bytes]:
    """Return the certificates that a proxy is sent, once it has everything."""
    async with server.stream(name, folder) as stream:
        await stream.until(lambda: _is_at_shop(stream))
        return stream.secrets()


def _is_at_shop(stream: Stream) -> bool:
    return stream.is_served() and stream.addresses() == {FIRST}


async def _is_refused(server: Replica, name: ProxyName, folder: Path) -> bool:
    async with server.stream(name, folder) as stream:
        await until(stream.task.done)
        return not stream.sidecar.responses


async def test_mesh_moves_to_several_servers_and_back(
    servers: tuple[Replica, ...], buyer: ProxyName, tmp_path: Path
) -> None:
    """At each place proxies are sent the same certificates, and a revoked proxy is refused."""
    one, two, last = servers
    passphrase, file = tmp_path / "passphrase", tmp_path / "mesh.state"
    passphrase.write_text("correct horse battery\n")
    passphrase.chmod(0o600)
    await asyncio.to_thread(one.start)
    buyers = await asyncio.to_thread(one.issued, buyer, tmp_path / "buyer")
    revoked = ProxyName.parse(f"revoked.buyer.{buyer.namespace}")
    others = await asyncio.to_thread(one.issued, revoked, tmp_path / "revoked")
    before = await _secrets(one, buyer, buyers)
    await asyncio.to_thread(one.run, "certs", "revoke", str(revoked))
    await asyncio.to_thread(one.running.stop)

    # The first server of several moves its directory, the second one has an empty directory.
    alone = one.flags
    for server in (one, two):
        server.flags += SHARED
        await asyncio.to_thread(server.start)
        assert await _secrets(server, buyer, buyers) == before != {}
        assert await _is_refused(server, revoked, others)
    (done,) = one.running.said("mesh moved from the state directory into the shared store")
    assert done["written"] == 4, "the header, two proxies and a service"
    assert not two.running.said("mesh moved from the state directory into the shared store")

    exporting = ("state", "export", str(file), "--passphrase-file", str(passphrase), "--json", *SHARED)
    exported = json.loads(await asyncio.to_thread(two.run, *exporting))
    counts = {"proxy_certificates": 2, "revoked": 1, "service_certificates": 1, "join_tokens": 0}
    assert (exported["root"], exported["counts"]) == (done["root"], counts)
    for server in (one, two):
        await asyncio.to_thread(server.running.stop)
    assert json.loads(await asyncio.to_thread(one.run, "state", "move", "--json", *SHARED)) == {
        "moved": False,
        "store": "kubernetes",
        "records": 0,
    }
    sentence = await asyncio.to_thread(one.program.refused, *alone)
    assert f"(CA {done['root']}) was moved into the store kubernetes" in sentence

    importing = ("state", "import", str(file), "--passphrase-file", str(passphrase))
    status, _, complaint = await asyncio.to_thread(
        two.program.run, *importing, *SHARED, "--state", str(tmp_path / "none")
    )
    has = f"has a mesh with the CA {done['root']}, and the file has the CA {done['root']}"
    assert (status, complaint) == (2, f"the store kubernetes {has}: import into an empty store")
    await asyncio.to_thread(last.run, *importing)
    await asyncio.to_thread(last.start)
    assert await _secrets(last, buyer, buyers) == before
    assert await _is_refused(last, revoked, others)
    await asyncio.to_thread(last.running.stop)
