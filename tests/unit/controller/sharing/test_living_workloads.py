"""Tests of recorded certificates whose Pods run outside the mesh: the records of running Pods stay."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

from catalog.store.settings import MeshSettings
from catalog.store.view import View
from certs.ledger.entry import LedgerEntry
from certs.ledger.records.ledger import RecordedLedger
from meshwright.controller.sharing.living_workloads import is_alive
from meshwright.controller.sharing.record_pruning import RecordPruning
from meshwright.enrolment.proofs.kubernetes import KIND, TokenIdentity, pod_proof
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName
from meshwright.mesh.workload import WorkloadKey
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import Memory, MemoryRecords

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NOTHING = View.build({}, MeshSettings())
TOKEN = TokenIdentity(ServiceIdentity(Namespace("shop"), ServiceAccountName("cart")), "cart-1", "8a-01")
OF_POD = f"{KIND} {TOKEN}"


def certificate(uuid: str, joined_by: str) -> LedgerEntry:
    """Return a certificate of 90 days."""
    name = ProxyName.parse(f"{uuid}.cart.shop")
    return LedgerEntry.issued(uuid, name, BEGIN, BEGIN + 90 * DAY, joined_by=joined_by)


def alive(joined_by: str, *running: tuple[WorkloadKey, str], knows_pods: bool = True) -> bool:
    """Return whether the proxy of a certificate is alive in a mesh without workloads."""
    entry = certificate("a1", joined_by)
    pods = (lambda pod, uid: (pod, uid) in running) if knows_pods else None
    return is_alive(NOTHING, pods, ProxyName.parse(entry.common_name), (entry,))


def test_proof_of_a_pod_is_read_as_it_was_written() -> None:
    """The ledger has the Pod's namespace, name and UID in one line."""
    proof = pod_proof(OF_POD)
    assert proof is not None
    assert (proof.pod, proof.uid) == (TOKEN.key, TOKEN.uid)
    assert pod_proof("join-token 0123456789ab") is None


def test_pod_outside_the_mesh_keeps_its_proxy_alive() -> None:
    """Only the very Pod counts; a machine has no Pod, so only its certificate's end counts."""
    assert alive(OF_POD, (TOKEN.key, "8a-01"))
    assert not alive(OF_POD, (TOKEN.key, "8a-02"))
    assert not alive("join-token 0123456789ab", (TOKEN.key, "8a-01"))


def test_pod_that_cannot_be_looked_up_may_be_alive() -> None:
    """A server without a cluster knows no Pods, and the ledger shortens the names of some."""
    assert alive(OF_POD, knows_pods=False)
    long = certificate("a1", f"{KIND} Pod shop/{'cart-' * 60}1 (8a-01)")
    assert pod_proof(long.joined_by) is None
    assert alive(long.joined_by)


async def test_running_pod_keeps_its_certificate_while_its_namespace_is_outside_the_mesh() -> None:
    """It has the certificate until a day after the Pod's end, for however long the mesh lacks the Pod."""
    running, now = {(TOKEN.key, TOKEN.uid)}, BEGIN
    store = MemoryRecords(Memory(), ReplicaId("a"))
    ledger = RecordedLedger(store, ReplicaId("a"), asyncio.get_running_loop())
    following = asyncio.create_task(ledger.follow(lambda _: None))
    for uuid, joined_by in (("a1", OF_POD), ("a2", OF_POD.replace("8a-01", "8a-00"))):
        await asyncio.to_thread(ledger.record, certificate(uuid, joined_by))
    judge = partial(is_alive, NOTHING, lambda pod, uid: (pod, uid) in running)
    pruning = RecordPruning(ledger, lambda: judge, lambda: now, keeps_revoked=False, pause_seconds=0.0)
    left = []
    for day in (10, 12, 20, 20.5, 22):
        now = BEGIN + day * DAY
        running = running if day < 20.5 else set()
        await pruning.look()
        left.append([entry.serial for entry in ledger.entries()])
    assert left == [["a1", "a2"], ["a1"], ["a1"], ["a1"], []]
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
