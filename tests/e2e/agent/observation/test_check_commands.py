"""Test of `meshwright check` and `meshwright agent check` in a healthy mesh and a broken one."""

import asyncio
import json
import os
import shutil
import signal
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.custody import LEDGER_FILE
from certs.ledger.sqlite import SqliteLedger
from certs.proxy import issue_proxy
from demo.plane import COMMAND
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.workload import Capture, Transparent
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.machines import APPLICATION_UID, PROXY_UID, Servers
from tests.e2e.agent.mesh_of_machines import ADDRESSES, PLANE, SWITCH, V4, Meshed
from tests.e2e.policy.applications import GREETER, HTTP
from tests.tools.deadline import until
from tests.tools.own_authority import own_authority

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
BOTH = Transparent(Capture.REDIRECT, ipv6=True)
Lines = dict[str, dict[str, str]]


async def agent_check(meshed: Meshed, name: str, *more: str, status: int | None = None) -> Lines:
    """Run `meshwright agent check` on a machine as root."""
    folder = meshed.state / name
    words = ["agent", "check", "--credentials", str(folder / "credentials"), "--run", str(folder / "run")]
    words += ["--hosts-file", str(folder / "hosts"), *more]
    return await _lines(meshed, name, words, status)


async def check(meshed: Meshed, status: int) -> Lines:
    """Run `meshwright check` on the control plane's machine."""
    return await _lines(meshed, "switch", ["check", "--state", str(meshed.state / "control")], status)


async def _lines(meshed: Meshed, name: str, words: list[str], status: int | None) -> Lines:
    command = [str(COMMAND), *words, "--json"]
    done = await asyncio.to_thread(lambda: meshed.machines[name].run(*command, check=False))
    assert done.stderr == ""
    result = {item["name"]: item for item in json.loads(done.stdout)["checks"]}
    assert status in (None, done.returncode), wrong(result)
    return result


def wrong(lines: Lines) -> dict[str, str]:
    """Return the lines that are not ok, each with its message."""
    return {name: line["said"] for name, line in lines.items() if line["status"] != "ok"}


def failed(lines: Lines) -> set[str]:
    """Return the names of the failed lines."""
    return {name for name, line in lines.items() if line["status"] == "failed"}


def _expired(meshed: Meshed, folder: Path) -> None:
    """Replace a machine's credentials by ones that expired two days ago."""
    state, now = meshed.state / "control", datetime.now(UTC)
    authority = own_authority(state, TrustDomain("cluster.local"), now)
    name = ProxyName.parse("shop-uuid.shop.default")
    with SqliteLedger.open(state / LEDGER_FILE) as ledger:
        made = issue_proxy(authority, ledger, name, timedelta(days=1), now - timedelta(days=3))
    (folder / "proxy.key").write_bytes(made.key.reveal())
    (folder / "proxy.pem").write_bytes(made.chain_pem)


async def test_checks_pass_in_a_healthy_mesh_and_name_each_broken_part(tmp_path: Path, envoy: str) -> None:
    """On every machine of a healthy mesh, all checks pass.

    Then one part after the other is broken, and the check of that part fails with its cause.
    """
    tmp_path.chmod(0o755)
    async with AsyncExitStack() as ends:
        meshed = await Meshed.start(tmp_path, V4, BOTH, envoy, ends)
        shop = meshed.state / "shop"
        await until(meshed.synced)
        for name in ADDRESSES:
            lines = await agent_check(meshed, name, status=0)
            assert wrong(lines) == {}
        assert list(lines) == [
            *("credentials", "certificate", "clock", "control plane", "workload", "Envoy's program", "agent"),
            *("Envoy", "interception", "hosts file"),
            *(f"application port {number}" for number in sorted((GREETER, HTTP))),
        ]
        lines = await check(meshed, 0)
        assert wrong(lines) == {}
        assert lines["proxies"]["said"] == "2 connected, 0 expected, 0 disconnected"

        await _machine_is_broken(meshed, shop)
        await _network_is_broken(meshed)
        await _agent_is_broken(meshed, shop)

        await meshed.crash()
        lines = await check(meshed, 1)
        assert failed(lines) == {"server"}
        lines = await agent_check(meshed, "alice", "--ads", PLANE.ads, status=1)
        assert lines["control plane"]["said"].startswith("port-closed: no server listens at")
        assert lines["workload"]["status"] == "warning"


async def _machine_is_broken(meshed: Meshed, shop: Path) -> None:
    key = shop / "credentials" / "proxy.key"
    key.chmod(0o644)
    lines = await agent_check(meshed, "shop", status=1)
    assert failed(lines) == {"credentials"}
    assert lines["credentials"]["do"].startswith(f"chmod 600 {key}")
    key.chmod(0o600)

    hosts = shop / "hosts"
    hosts.write_text(
        "".join(line for line in hosts.read_text().splitlines(keepends=True) if "shop6" not in line)
    )
    lines = await agent_check(meshed, "shop", status=1)
    assert (failed(lines), "lacks 1 name: shop6" in wrong(lines)["hosts file"]) == ({"hosts file"}, True)

    copy = meshed.state / "expired"
    shutil.copytree(shop / "credentials", copy, copy_function=shutil.copy2)
    _expired(meshed, copy)
    for path in (copy, *copy.iterdir()):
        os.chown(path, PROXY_UID, PROXY_UID)
    lines = await agent_check(meshed, "shop", "--credentials", str(copy), status=1)
    assert {"certificate", "control plane"} <= failed(lines)
    assert "1 d 23 h ago" in lines["certificate"]["said"] or "2 d ago" in lines["certificate"]["said"]
    assert lines["control plane"]["said"].startswith("certificate-expired")

    lines = await agent_check(meshed, "shop", "--application-port", "8099", status=1)
    assert failed(lines) == {"hosts file", "application port 8099"}
    servers = Servers(meshed.machines["shop"])
    servers.listen("other", V4, 8098, APPLICATION_UID)
    lines = await agent_check(meshed, "shop", "--application-port", "8098")
    assert lines["application port 8098"]["status"] == "ok"
    servers.close()


async def _network_is_broken(meshed: Meshed) -> None:
    machine = meshed.machines["alice"]
    port = PLANE.ads.rpartition(":")[2]
    rule = ("OUTPUT", "-p", "tcp", "-d", SWITCH[V4], "--dport", port, "-j", "REJECT", "--reject-with")
    machine.run("iptables", "-I", *rule, "icmp-host-prohibited")
    lines = await agent_check(meshed, "alice", status=1)
    assert lines["control plane"]["said"].startswith("no-route")
    machine.run("iptables", "-D", *rule, "icmp-host-prohibited")

    machine.run(str(COMMAND), "intercept", "--clean")
    lines = await agent_check(meshed, "alice", status=1)
    assert failed(lines) == {"interception"}
    assert "so traffic bypasses the proxy" in lines["interception"]["said"]
    await meshed.intercept(BOTH)


async def _agent_is_broken(meshed: Meshed, shop: Path) -> None:
    """Kill the agent, and let a program of another user take the proxy's port."""
    process = meshed.agents.pop("shop").process
    process.send_signal(signal.SIGKILL)
    await process.wait()

    async def silent() -> bool:
        lines = await agent_check(meshed, "shop", "--ads", PLANE.ads, status=1)
        text = lines["interception"]["said"]
        return {"agent", "Envoy", "interception"} <= failed(lines) and "no process listens there" in text

    await until(silent)
    servers = Servers(meshed.machines["shop"])
    servers.listen("other", V4, 15001, APPLICATION_UID)
    lines = await agent_check(
        meshed, "shop", "--ads", PLANE.ads, "--envoy", str(shop.parent / "envoy"), status=1
    )
    message = lines["interception"]["said"]
    assert "port 15001, to which outbound traffic is redirected, belongs to" in message
    assert f"as user {APPLICATION_UID}" in message
    servers.close()

    async def gone() -> bool:
        return failed(await check(meshed, 1)) == {"proxies"}

    await until(gone)
    assert "shop-uuid.shop.default" in (await check(meshed, 1))["proxies"]["said"]
