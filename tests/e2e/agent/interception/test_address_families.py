"""Tests of machines with only IPv6 addresses, and of meshes with single-stack and dual-stack machines."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from demo.plane import COMMAND
from meshwright.mesh.workload import Transparent
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.machines import LOOPBACK, machine
from tests.e2e.agent.mesh_of_machines import ADDRESSES, CALLED_AT, V4, V6, Families, Meshed, policy
from tests.e2e.agent.scenes import when
from tests.e2e.policy.applications import HTTP
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
BOOKS, REFUSED = (200, f"{HTTP} /books"), (0, "")
STACKS: dict[str, Mapping[str, Families]] = {
    "ipv6-only": {"switch": (V6,), "alice": (V6,), "shop": (V6,)},
    "ipv6-calls-both": {"switch": (V4, V6), "alice": (V6,), "shop": (V4, V6)},
    "ipv4-calls-both": {"switch": (V4, V6), "alice": (V4,), "shop": (V6, V4)},
}
FURTHER = f"""---
apiVersion: v1
kind: Service
metadata: {{name: named, namespace: default}}
spec: {{selector: {{app: shop}}, ports: [{{port: 80, targetPort: {HTTP}, appProtocol: http}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: both, namespace: default}}
spec:
  clusterIPs: [10.96.0.9, 'FD00:96::9']
  ipFamilyPolicy: RequireDualStack
  selector: {{app: shop}}
  ports: [{{port: 80, targetPort: {HTTP}, appProtocol: http}}]
---
apiVersion: v1
kind: Service
metadata: {{name: nodes, namespace: default}}
spec: {{clusterIP: None, selector: {{app: shop}}, ports: [{{port: {HTTP}, appProtocol: http}}]}}
"""
"""A service without an address, one with one of each family, and a headless one."""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=STACKS)
async def meshed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, envoy: str
) -> AsyncIterator[Meshed]:
    """Two machines in the mesh; the application listens only on the first family of its machine."""
    async with AsyncExitStack() as ends:
        state, how = tmp_path_factory.mktemp("families"), Transparent(ipv6=True)
        made = await Meshed.start(state, V4, how, envoy, ends, stacks=STACKS[request.param])
        made.apply(f"{policy('alice', 'shop')}{FURTHER}")
        await until(made.synced)
        yield made


def _names(meshed: Meshed, name: str) -> dict[socket.AddressFamily, str]:
    """Return the addresses of a name in the caller's hosts file, as its agent wrote it, by family."""
    lines = (meshed.state / "alice" / "hosts").read_text().splitlines()
    result = [line.split()[0] for line in lines if name in line.split()]
    return {V6 if ":" in item else V4: item for item in result}


def _url(host: str, port: int = 80, path: str = "/books") -> str:
    return f"http://[{host}]:{port}{path}" if ":" in host else f"http://{host}:{port}{path}"


@pytest.mark.parametrize(
    ("name", "port"), [("named.default", 80), ("both.default", 80), ("nodes.default", HTTP)]
)
async def test_service_name_resolves_to_both_families_and_each_address_reaches_the_server(
    meshed: Meshed, name: str, port: int
) -> None:
    """A name has addresses of both families, or those of the endpoints for a headless service.

    Each address reaches the server. Between the proxies, the connection uses a family that both machines
    have.
    """
    headless = name.startswith("nodes")
    wanted = set(meshed.families("shop")) if headless else {V4, V6}
    await when(lambda: set(_names(meshed, name)) == wanted)
    known = len(meshed.log("shop", "alice"))
    for family in meshed.families("alice"):
        assert await meshed.get("alice", _url(_names(meshed, name)[family], port), family) == BOOKS
    (family,) = meshed.families("alice")
    await until(lambda: _logged(meshed, known + 1))
    assert str(meshed.log("shop", "alice")[-1]["caller_address"]).startswith(
        f"[{ADDRESSES['alice'][V6]}]" if family is V6 else ADDRESSES["alice"][V4]
    )


async def _logged(meshed: Meshed, count: int) -> bool:
    return len(meshed.log("shop", "alice")) >= count


async def test_policy_is_enforced_for_both_address_families(meshed: Meshed) -> None:
    """A path outside the policy is refused.

    Plain text that bypasses the caller's sidecar is refused at every address of the server.
    """
    (family,) = meshed.families("alice")
    assert (await meshed.get("alice", _url(CALLED_AT[family], path="/letters"), family))[0] == 403
    for address_family in meshed.families("shop"):
        if address_family in meshed.families("switch"):
            at = _url(ADDRESSES["shop"][address_family], HTTP)
            assert await meshed.get("switch", at, address_family) == REFUSED


async def test_agent_status_server_responds_on_each_family_of_its_machine(meshed: Meshed) -> None:
    """Readiness is served on each address of the machine, because a kubelet may have only an IPv6 address.

    The local status is served on both loopback addresses.
    """
    for name in ADDRESSES:
        for family in meshed.families(name):
            if family in meshed.families("switch"):
                at = _url(ADDRESSES[name][family], 15020, "/healthz/ready")
                assert (await meshed.get("switch", at, family))[0] == 200
        # What only this machine may ask: a socket of both families shows 127.0.0.1 in IPv6's form.
        for family, host in LOOPBACK.items():
            assert (await meshed.get(name, _url(host, 15020, "/healthz/status"), family))[0] == 200


async def test_explicit_interception_works_with_ipv6_addresses(tmp_path: Path, envoy: str) -> None:
    """Sidecars bind IPv6 addresses, and the application and its callers use only IPv6 loopback.

    Policy is enforced, and plain text from outside is refused.
    """
    workload = "---\napiVersion: meshwright.dev/v1alpha1\nkind: Workload\n"
    text = "".join(
        f"{workload}metadata: {{name: {name}, namespace: default, labels: {{app: {name}}}}}\n"
        f"spec: {{address: '{ADDRESSES[name][V6]}', serviceAccount: {name}, uuid: {name}-uuid, {more}}}\n"
        for name, more in (
            ("alice", "upstreams: [{service: shop, port: 80, address: '::1', localPort: 20080}]"),
            ("shop", "applicationAddress: '::1'"),
        )
    )
    async with AsyncExitStack() as ends:
        stacks, how = STACKS["ipv6-only"], Transparent()
        made = await Meshed.without_agents(
            tmp_path, V6, how, envoy, ends, stacks=stacks, application=LOOPBACK[V6]
        )
        made.write("workloads.yaml", text)
        await asyncio.gather(*(made.agent(name, ()) for name in ADDRESSES))
        at = partial(_url, LOOPBACK[V6], 20080)

        async def served() -> bool:
            return await made.get("alice", at(), V6) == BOOKS

        await until(served)
        assert (await made.get("alice", at("/letters"), V6))[0] == 403
        assert await made.get("switch", _url(ADDRESSES["shop"][V6], HTTP), V6) == REFUSED
        await when(lambda: _names(made, "shop.default") == {V6: LOOPBACK[V6]})


async def test_ipv6_rules_are_set_only_on_machines_with_an_ipv6_address() -> None:
    """With --ipv6-by-address, rules for IPv6 are set only if the machine has an IPv6 address.

    This is unknown when a Pod is injected. Where IPv6 is disabled, no rules are set and no error is reported.
    """
    intercept = (str(COMMAND), "intercept", "--ipv6-by-address", "--exclude-outbound-ranges", "fd00:1::/32")
    with machine() as here:
        for commands, captured in (
            ((), False),
            (("ip link add eth0 type bridge", "ip link set eth0 up"), False),
            (("ip address add fd00::1/64 dev eth0 nodad",), True),
            (("sysctl -q -w net.ipv6.conf.all.disable_ipv6=1",), False),
        ):
            for command in commands:
                here.run(*command.split())
            here.run(*intercept)
            assert here.run(*intercept, "--check").stdout == "interception is as wanted\n"
            assert ("MESH_" in here.run("ip6tables-save").stdout) is captured
            assert "MESH_" in here.run("iptables-save").stdout
