"""The roles that we hand out are the least: everything works with them, and nothing in them is for nobody."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

from mesh.identity import ProxyName
from tests.kubernetes import objects, spoiling
from tests.kubernetes.accounts import Accounts
from tests.kubernetes.following import following
from tests.kubernetes.granted import Grant, asked, granted
from tests.kubernetes.kubectl import Kubectl
from tests.kubernetes.shop import FIRST, everywhere
from tests.kubernetes.spoiling import by_way_of
from tests.program import Program
from tools.real_parts.cluster import RunningCluster

ROLES: Final = Path(__file__).parents[2] / "docs" / "kubernetes" / "rbac.yaml"
HOME: Final = "meshwright-system"
UDP: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "udproutes.specs.smi-spec.io"},
    "spec": {
        "group": "specs.smi-spec.io",
        "names": {"kind": "UDPRoute", "plural": "udproutes"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha4",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
"""A kind of SMI's own definitions that is not among ours: no mesh enforces it, and its owners are told so."""


def documents() -> list[dict[str, Any]]:
    """Return the manifests that we hand out."""
    return list(yaml.safe_load_all(ROLES.read_text("utf-8")))


async def test_a_server_with_our_roles_is_refused_nothing_and_uses_them_all(
    shared_cluster: RunningCluster,
    administrator: Kubectl,
    kubectl: Kubectl,
    accounts: Accounts,
    program: Program,
    buyer: ProxyName,
    tmp_path: Path,
) -> None:
    """By the API server's own audit log, while policy is read, refused, reported on and judged."""
    administrator("apply", "--server-side", "-f", str(ROLES))
    administrator.apply(UDP)
    at_home = replace(accounts, kubectl=replace(kubectl, namespace=HOME))
    account = at_home.found("meshwright")
    kubectl.apply(objects.target("nobodys", kubectl.namespace, "buyer", "shop", "missing"))
    log, grants = shared_cluster.place.audit, set(granted(documents()))

    def unused() -> list[Grant]:
        used = [each.grant for each in asked(log, account.user) if each.is_allowed]
        return sorted(each for each in grants if not any(map(each.covers, used)))

    try:
        async with following(program, buyer, *everywhere(account.kubeconfig)) as found:
            await found.until_at(FIRST)
            async with spoiling.spoiling(shared_cluster) as between:
                between.spoil = spoiling.without_streaming_lists  # else nobody would ever list
                other = by_way_of(account.kubeconfig, between.server, tmp_path / "by-way-of")
                asking = ("lint", "--kubernetes", "--kubeconfig", str(other))
                done = await asyncio.to_thread(program.run, *asking)
                assert done[2] == "", done
            try:
                await found.until(lambda: not unused())
            except AssertionError:
                raise AssertionError(f"nobody uses: {', '.join(map(str, unused()))}") from None
            assert not found.failing()
        refused = sorted({each.grant for each in asked(log, account.user) if not each.is_allowed})
        assert not refused, ", ".join(map(str, refused))
    finally:
        administrator("delete", "-f", str(ROLES), "--wait=false")
        administrator("delete", "crd", UDP["metadata"]["name"])
