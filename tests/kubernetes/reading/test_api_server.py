"""Tests of an API server that dies, loses history, or answers slowly or wrongly: known objects are kept."""

import asyncio
import os
from pathlib import Path
from typing import Final

import pytest

from meshwright.mesh.identity import ProxyName
from tests.kubernetes.tools import faulty_proxy as spoiling
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.accounts import Account, Accounts, Rule
from tests.kubernetes.tools.faulty_proxy import Spoil, by_way_of
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.shop import FIRST, SECOND, THIRD, moves, served
from tests.tools.program import Program
from tools.real_parts.cluster import RunningCluster
from tools.real_parts.parts import KUBERNETES

EVERYTHING: Final[tuple[Rule, ...]] = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
)


@pytest.fixture
def account(accounts: Accounts) -> Account:
    """Return a service account that may read everything."""
    return accounts.make("plane", EVERYTHING)


def test_api_server_has_the_chosen_version(shared_cluster: RunningCluster) -> None:
    """A run for another minor (`make test-kubernetes-versions`) is not a run with the default version."""
    minor = os.environ.get("REAL_KUBERNETES") or KUBERNETES.minor
    assert shared_cluster.ask("/version")["gitVersion"].startswith(f"v{minor}.")


async def test_relist_after_an_outage_sends_only_changed_resources(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName
) -> None:
    """The API server was killed and etcd compacted, so every resourceVersion is too old.

    All kinds are listed again.
    """
    async with served(program, buyer, shared_cluster.kubeconfig) as result:
        responses, relists = len(result.sidecar.responses), result.relists()
        await asyncio.to_thread(shared_cluster.api.kill)
        await asyncio.to_thread(shared_cluster.compact)
        await asyncio.to_thread(shared_cluster.api.again)
        await result.until(lambda: all(count > relists[item] for item, count in result.relists().items()))
        assert result.sidecar.kinds(responses) == []
        await moves(kubectl, result, SECOND)
        assert result.sidecar.kinds(responses) == [("ClusterLoadAssignment", 1)]


@pytest.mark.parametrize(
    "spoil",
    [spoiling.nonsense, spoiling.half, spoiling.failing, spoiling.slow(120)],
    ids=["html", "half-an-answer", "500", "slow"],
)
async def test_known_objects_are_kept_while_the_api_server_fails(
    shared_cluster: RunningCluster,
    kubectl: Kubectl,
    program: Program,
    buyer: ProxyName,
    account: Account,
    tmp_path: Path,
    spoil: Spoil,
) -> None:
    """The failure is reported, and later changes are read once the API server answers correctly again."""
    async with spoiling.spoiling(shared_cluster) as between:
        kubeconfig = by_way_of(account.kubeconfig, between.server, tmp_path / "by-way-of")
        async with served(program, buyer, kubeconfig) as result:
            responses = len(result.sidecar.responses)
            between.turn(spoil)
            await result.until(result.failing)
            await asyncio.to_thread(kubectl.status, objects.runs("shop", SECOND))
            assert result.sidecar.kinds(responses) == []
            between.turn(None)
            await result.until_at(SECOND)
            await result.until(lambda: not result.failing())


async def test_server_without_an_api_server_starts_with_the_last_known_objects(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName
) -> None:
    """The failure is reported, and changes are read once the API server is back."""
    async with served(program, buyer, shared_cluster.kubeconfig):
        pass
    await asyncio.to_thread(kubectl.status, objects.runs("shop", SECOND))
    await asyncio.to_thread(shared_cluster.api.kill)
    try:
        async with served(program, buyer, shared_cluster.kubeconfig, FIRST) as result:
            assert result.failing()
            await asyncio.to_thread(shared_cluster.api.again)
            await result.until_at(SECOND)
            await result.until(lambda: not result.failing())
    finally:
        if shared_cluster.api.process.poll() is not None:
            await asyncio.to_thread(shared_cluster.api.again)


async def test_missing_verb_is_reported_and_other_kinds_are_read(
    kubectl: Kubectl, accounts: Accounts, program: Program, buyer: ProxyName, account: Account
) -> None:
    """Services may be listed but not watched. The report ends when the verb is granted."""
    lacking: tuple[Rule, ...] = (
        {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list"]},
        {
            "apiGroups": [""],
            "resources": ["namespaces", "pods", "serviceaccounts"],
            "verbs": ["list", "watch"],
        },
        {
            "apiGroups": [
                "discovery.k8s.io",
                *(f"{item}.smi-spec.io" for item in ("access", "specs", "split")),
                *(f"{item}.openservicemesh.io" for item in ("config", "policy")),
                *("meshwright.dev", "policy.meshwright.dev"),
            ],
            "resources": ["*"],
            "verbs": ["list", "watch"],
        },
    )
    accounts.allow(account, lacking)
    async with served(program, buyer, account.kubeconfig) as result:
        await result.until(result.failing)
        assert result.failing() == {"services"}
        (answer,) = (problem for problem in result.problems() if "services" in problem["problem"])
        assert "watch" in answer["problem"], answer
        await moves(kubectl, result, SECOND)
        await asyncio.to_thread(accounts.allow, account, EVERYTHING)
        await result.until(lambda: not result.failing())


async def test_expired_token_is_replaced_from_its_file(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName, account: Account
) -> None:
    """Until the file has a new token, known objects are kept and the cause is reported."""
    account.token_file.write_text(account.token(600))
    async with served(program, buyer, account.kubeconfig_by_file) as result:
        account.token_file.write_text(account.token(-60))  # as a kubelet that has died leaves it
        await asyncio.to_thread(shared_cluster.api.kill)
        await asyncio.to_thread(shared_cluster.api.again)
        await result.until(
            lambda: any(
                "Unauthorized" in str(problem) or "401" in str(problem) for problem in result.problems()
            )
        )
        assert result.addresses() == {FIRST}
        account.token_file.write_text(account.token(600))
        await moves(kubectl, result, THIRD)
        await result.until(lambda: not result.failing())
