"""Tests of the secret records as data of the Secret `meshwright-custody` on a real API server."""

import asyncio
import base64
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from meshwright.controller.sharing.store.backends import SECRETS as IN_SECRET
from meshwright.kube.api import Api
from meshwright.kube.builtin import SECRETS
from meshwright.kube.connection.connection import find_connection
from meshwright.kube.errors import KubeError
from meshwright.records.contract import RecordsError, ReplicaId, Revision, StoreUnavailableError
from meshwright.records.key import Key, key_of
from meshwright.records.kubernetes.definition import RECORDS
from meshwright.records.kubernetes.store import CUSTODY, KubernetesRecords
from tests.kubernetes.tools.accounts import Accounts, Rule
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.record_stores import TIMES, KubernetesStores
from tests.tools import libyaml
from tests.tools.deadline import until
from tests.unit.records.test_contract import RecordContract, following
from tools.real_parts.cluster import RunningCluster

SEAL: Final = key_of("seal")
AUTHORITY: Final = key_of("authority")
MANIFEST: Final = Path(__file__).parents[3] / "docs" / "kubernetes" / "shared-store.yaml"


def _is_short(key: Key) -> bool:
    """Return whether a key of the contract's tests fits into the name of a Secret's data."""
    return len(key) <= 200


class TestSecret(RecordContract):
    """The contract of records as data of one Secret.

    Presence and leadership have no record in the Secret, so `TestKubernetes` has their tests.
    """

    @pytest.fixture
    def stores(self, api: Api, home: str) -> KubernetesStores:
        """Return a namespace in which nearly all records of the tests are in the Secret."""
        return KubernetesStores(api, home, _is_short)


async def test_only_secret_records_are_in_the_secret(api: Api, home: str, stores: KubernetesStores) -> None:
    """The data key and the CA are in no object of the kind Record, and nothing else is in the Secret."""
    store = stores.client("a")
    for key in (SEAL, AUTHORITY, key_of("ledger"), key_of("proxies", "shop", "cart", "9f0c")):
        await store.write(key, b"content", None)
    objects = (await api.list(RECORDS, home))["items"]
    keys = {item["spec"]["key"] for item in objects}
    secret = await api.get(SECRETS, home, CUSTODY)
    assert (keys, set(secret["data"])) == ({"ledger", "proxies/shop/cart/9f0c"}, {"seal", "authority"})
    assert base64.b64decode(secret["data"]["seal"]) == b"content"


async def test_writes_of_two_records_do_not_conflict(stores: KubernetesStores) -> None:
    """Each server replaces its record again and again, by the revision of its own last write."""

    async def replaced(replica: str, key: Key) -> None:
        store, revision = stores.client(replica), None
        for number in range(10):
            revision = (await store.write(key, str(number).encode(), revision)).revision

    await asyncio.gather(replaced("a", SEAL), replaced("b", AUTHORITY))
    for key in (SEAL, AUTHORITY):
        record = await stores.client("c").read(key)
        assert record is not None
        assert record.content == b"9"


async def test_labels_and_data_of_others_stay(api: Api, home: str, stores: KubernetesStores) -> None:
    """The chart makes the Secret empty; its labels, and what administrators add, are kept by each write."""
    metadata = {
        "name": CUSTODY,
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"helm.sh/resource-policy": "keep"},
    }
    await api.create(SECRETS, home, {"metadata": metadata, "data": {"note.txt_": "eA=="}})
    store = stores.client("a")
    async with following(store, "seal") as follower:
        first = await store.write(SEAL, b"one", None)
        await until(lambda: follower.known == {SEAL: first})
        await api.patch(SECRETS, home, CUSTODY, {"metadata": {"annotations": {"others": "1"}}})
        second = await store.write(SEAL, b"two", first.revision)
        await until(lambda: follower.known == {SEAL: second})
        await store.remove(SEAL, second.revision)
        await until(lambda: not follower.known)
        assert follower.contents_of(SEAL) == [b"one", b"two", None]
    secret = await api.get(SECRETS, home, CUSTODY)
    annotations = secret["metadata"]["annotations"]
    assert json.loads(annotations.pop("state.meshwright.dev/writes")) == {}
    assert annotations == {"helm.sh/resource-policy": "keep", "others": "1"}
    assert secret["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "Helm"}
    assert secret["data"] == {"note.txt_": "eA=="}


async def test_deleted_secret_is_a_removal_of_its_records(
    api: Api, home: str, stores: KubernetesStores
) -> None:
    """Followers hear of it, and the next write makes the Secret again where the role permits that."""
    store = stores.client("a")
    first = await store.write(AUTHORITY, b"one", None)
    async with following(stores.client("b"), "authority") as follower:
        await api.delete(SECRETS, home, CUSTODY)
        await until(lambda: not follower.known)
        assert await store.read(AUTHORITY) is None
        second = await store.write(AUTHORITY, b"one", None)
        assert second.revision != first.revision
        await until(lambda: follower.known == {AUTHORITY: second})


async def test_documented_role_reaches_this_secret_only(
    record_kind: None,
    shared_cluster: RunningCluster,
    kubectl: Kubectl,
    api: Api,
    home: str,
    tmp_path: Path,
) -> None:
    """It may read, watch and patch the Secret by its name, but not make it, nor read or list any other."""
    documents = list(libyaml.load_all(MANIFEST.read_text("utf-8")))
    rules: list[Rule] = [rule for item in documents if item["kind"] == "Role" for rule in item["rules"]]
    made: list[Any] = [item for item in documents if item["kind"] == "Secret"]
    accounts = Accounts(shared_cluster, replace(kubectl, namespace=home), tmp_path / "accounts")
    account = accounts.make("meshwright", ())
    accounts.allow(account, rules, everywhere=False)
    async with Api(find_connection(account.kubeconfig, "")) as limited:
        store = KubernetesRecords(
            limited, home, ReplicaId("a"), lambda: datetime.now(UTC), TIMES, IN_SECRET.__contains__
        )
        sentence = (
            f"the Secret {home}/{CUSTODY} is missing, and this server may not create it: apply "
            "docs/kubernetes/shared-store.yaml, or run `kubectl create secret generic "
            f"{CUSTODY} --namespace {home}`"
        )
        assert await store.read(SEAL) is None
        with pytest.raises(RecordsError) as refused:
            await store.write(SEAL, b"one", None)
        assert (str(refused.value), isinstance(refused.value, StoreUnavailableError)) == (sentence, False)
        [empty] = made
        await api.create(SECRETS, home, {**empty, "metadata": {**empty["metadata"], "namespace": home}})
        async with following(store, "seal") as follower:
            written = await store.write(SEAL, b"one", None)
            await until(lambda: follower.known == {SEAL: written})
            await store.remove(SEAL, Revision(written.revision))
            await until(lambda: not follower.known)
        with pytest.raises(KubeError, match="RBAC grants no `get`"):
            await limited.get(SECRETS, home, "another")
