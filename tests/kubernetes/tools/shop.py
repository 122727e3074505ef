"""A shop of one Pod in the cluster, and a buyer's sidecar that gets its endpoints."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from meshwright.mesh.identity import ProxyName
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.recorded_stream import Following, following
from tests.tools.program import Program

FIRST, SECOND, THIRD = "10.244.1.1", "10.244.1.2", "10.244.1.3"
"""Where the shop is, and where it may move."""


_AT_ONCE = ("--set", "endpoint_admission=off")  # only the buyer's sidecar ever connects


def opened(kubectl: Kubectl) -> ProxyName:
    """Create the shop and a permitted buyer; return the name of the buyer's proxy."""
    uuid = f"buyer-{kubectl.namespace}"  # a server of all namespaces sees those of other tests
    kubectl.apply(
        *map(objects.account, ("buyer", "shop")),
        objects.service("shop"),
        objects.pod("shop", "shop", uuid=f"shop-{kubectl.namespace}"),
        objects.workload("buyer", "10.244.9.9", "buyer", uuid=uuid),
        objects.routes("all"),
        objects.target("buyers", kubectl.namespace, "buyer", "shop", "all"),
    )
    kubectl.status(objects.runs("shop", FIRST))
    return ProxyName.parse(f"{uuid}.buyer.{kubectl.namespace}")


def everywhere(kubeconfig: Path) -> tuple[str, ...]:
    """Return the flags of a server that reads the whole cluster and uses endpoints at once."""
    return ("--kubernetes", "--kubeconfig", str(kubeconfig), *_AT_ONCE)


@asynccontextmanager
async def served(
    program: Program, buyer: ProxyName, kubeconfig: Path, *addresses: str
) -> AsyncIterator[Following]:
    """Serve the test's namespace; wait until the buyer has the shop's endpoints, by default of one Pod."""
    flags = everywhere(kubeconfig)
    async with following(program, buyer, *flags, "--namespaces", str(buyer.namespace)) as result:
        await result.until_at(*(addresses or (FIRST,)))
        yield result


async def moves(kubectl: Kubectl, result: Following, address: str) -> None:
    """Move the shop and wait until the buyer has the new endpoint."""
    await asyncio.to_thread(kubectl.status, objects.runs("shop", address))
    await result.until_at(address)
