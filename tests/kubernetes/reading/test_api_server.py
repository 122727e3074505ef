"""An API server that dies, forgets, dawdles, refuses, talks nonsense: what was known last stays in force."""

import asyncio
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

EVERYTHING: Final[tuple[Rule, ...]] = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
)


@pytest.fixture
def account(accounts: Accounts) -> Account:
    """Return a service account that may read everything."""
    return accounts.make("plane", EVERYTHING)


async def test_a_list_after_an_outage_sends_nothing_that_has_not_changed(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName
) -> None:
    """The API server was killed and etcd compacted, so that nobody's resourceVersion is of any use."""
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
async def test_what_was_known_stays_while_the_api_server_is_not_itself(
    shared_cluster: RunningCluster,
    kubectl: Kubectl,
    program: Program,
    buyer: ProxyName,
    account: Account,
    tmp_path: Path,
    spoil: Spoil,
) -> None:
    """It is said that it cannot be read; once it can be, what has changed in the meantime is there."""
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


async def test_a_server_that_starts_without_the_api_server_serves_what_was_known(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName
) -> None:
    """It says that it does; when the API server comes, what has changed in the meantime is there."""
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


async def test_a_verb_that_is_not_granted_is_named_and_the_rest_works(
    kubectl: Kubectl, accounts: Accounts, program: Program, buyer: ProxyName, account: Account
) -> None:
    """Services may be listed and not watched; once that is granted, nothing is said any more."""
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


async def test_a_token_that_expires_is_read_anew(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName, account: Account
) -> None:
    """Until there is a new one, what was known stays, and it is said why."""
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
