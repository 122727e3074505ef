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
    async with served(program, buyer, shared_cluster.kubeconfig) as found:
        responses, relists = len(found.sidecar.responses), found.relists()
        await asyncio.to_thread(shared_cluster.api.kill)
        await asyncio.to_thread(shared_cluster.compact)
        await asyncio.to_thread(shared_cluster.api.again)
        await found.until(lambda: all(count > relists[each] for each, count in found.relists().items()))
        assert found.sidecar.kinds(responses) == []
        await moves(kubectl, found, SECOND)
        assert found.sidecar.kinds(responses) == [("ClusterLoadAssignment", 1)]


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
        async with served(program, buyer, kubeconfig) as found:
            responses = len(found.sidecar.responses)
            between.turn(spoil)
            await found.until(found.failing)
            await asyncio.to_thread(kubectl.status, objects.runs("shop", SECOND))
            assert found.sidecar.kinds(responses) == []
            between.turn(None)
            await found.until_at(SECOND)
            await found.until(lambda: not found.failing())


async def test_a_server_that_starts_without_the_api_server_serves_what_was_known(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName
) -> None:
    """It says that it does; when the API server comes, what has changed in the meantime is there."""
    async with served(program, buyer, shared_cluster.kubeconfig):
        pass
    await asyncio.to_thread(kubectl.status, objects.runs("shop", SECOND))
    await asyncio.to_thread(shared_cluster.api.kill)
    try:
        async with served(program, buyer, shared_cluster.kubeconfig, FIRST) as found:
            assert found.failing()
            await asyncio.to_thread(shared_cluster.api.again)
            await found.until_at(SECOND)
            await found.until(lambda: not found.failing())
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
                *(f"{each}.smi-spec.io" for each in ("access", "specs", "split")),
                *(f"{each}.openservicemesh.io" for each in ("config", "policy")),
                *("meshwright.dev", "policy.meshwright.dev"),
            ],
            "resources": ["*"],
            "verbs": ["list", "watch"],
        },
    )
    accounts.allow(account, lacking)
    async with served(program, buyer, account.kubeconfig) as found:
        await found.until(found.failing)
        assert found.failing() == {"services"}
        (said,) = (each for each in found.problems() if "services" in each["problem"])
        assert "watch" in said["problem"], said
        await moves(kubectl, found, SECOND)
        await asyncio.to_thread(accounts.allow, account, EVERYTHING)
        await found.until(lambda: not found.failing())


async def test_a_token_that_expires_is_read_anew(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, buyer: ProxyName, account: Account
) -> None:
    """Until there is a new one, what was known stays, and it is said why."""
    account.token_file.write_text(account.token(600))
    async with served(program, buyer, account.kubeconfig_by_file) as found:
        account.token_file.write_text(account.token(-60))  # as a kubelet that has died leaves it
        await asyncio.to_thread(shared_cluster.api.kill)
        await asyncio.to_thread(shared_cluster.api.again)
        await found.until(
            lambda: any("Unauthorized" in str(each) or "401" in str(each) for each in found.problems())
        )
        assert found.addresses() == {FIRST}
        account.token_file.write_text(account.token(600))
        await moves(kubectl, found, THIRD)
        await found.until(lambda: not found.failing())
