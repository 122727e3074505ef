"""Two machines whose traffic is intercepted, all of it real: IPv6 by REDIRECT, and TPROXY."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from mesh.workload import Capture, Transparent
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.machines import APPLICATION_UID
from tests.e2e.agent.meshed import ADDRESSES, V4, V6, Meshed, policy
from tests.e2e.policy import calls
from tests.e2e.policy.applications import GREETER, HTTP
from tests.golden.live import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(120),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
KINDS = {
    "redirect-ipv6": (V6, Transparent(ipv6=True)),
    "tproxy-ipv4": (V4, Transparent(Capture.TPROXY, ipv6=True)),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=KINDS)
async def meshed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, envoy: str
) -> AsyncIterator[Meshed]:
    """Two machines in the mesh, which reach each other by IPv6 or by IPv4."""
    family, how = KINDS[request.param]
    async with AsyncExitStack() as ends:
        yield await Meshed.start(tmp_path_factory.mktemp("meshed"), family, how, envoy, ends)


async def test_calls_of_both_families_arrive_with_caller_and_address(meshed: Meshed) -> None:
    """By mTLS from the caller's proxy, whose address the server's proxy sees; each is intercepted once."""
    family = V4 if meshed.how.capture is Capture.TPROXY else V6
    before = [await meshed.stat("alice", _TAKEN), await meshed.stat("shop", _TAKEN)]
    assert [await meshed.books("alice", each) for each in (V4, V6)] == [(200, f"{HTTP} /books")] * 2
    await until(lambda: _logged(meshed, "alice", 2))
    for each in meshed.log("shop", "alice"):
        assert each["caller"] == "spiffe://cluster.local/ns/default/sa/alice"
        assert each["caller_address"].strip("[").startswith(ADDRESSES["alice"][family])
        assert each["local_address"].strip("[").startswith(ADDRESSES["shop"][family])
    # Were what a proxy sends intercepted too, its own calls would be among those that it took.
    taken = [await meshed.stat("alice", _TAKEN), await meshed.stat("shop", _TAKEN)]
    assert [now - then for now, then in zip(taken, before, strict=True)] == [2, 2]


_TAKEN = r"^listener\.(0\.0\.0\.0|\[__\])_150.*\.downstream_cx_total"


async def _logged(meshed: Meshed, caller: str, count: int) -> bool:
    return len(meshed.log("shop", caller)) >= count
