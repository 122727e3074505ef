"""Tests of an agent's reports about its control plane: connection, loss, recovery."""

import asyncio
import json
import subprocess

import pytest

from tests.e2e.agent.scenes import MESH, Agent, Scene, get, when
from tests.tools.deadline import until

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(300)]
WHY, AGAIN = "control plane not connected", "control plane connected"


async def _status(meshwright: str, agent: Agent, *more: str, command: str = "status") -> tuple[int, str]:
    """Run `meshwright agent status` or another command that queries the agent."""
    whole = [meshwright, "agent", command, "--status", agent.status.removeprefix("http://"), *more]
    done = await asyncio.to_thread(subprocess.run, whole, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def _said(agent: Agent, event: str) -> list[dict[str, object]]:
    return [item for item in agent.events if item["event"] == event]


async def test_sidecar_without_its_control_plane_reports_the_cause(scene: Scene, meshwright: str) -> None:
    """A sidecar is not ready until it was first served, and stays ready when the connection is lost later.

    Both states are reported with the cause and the next step, and logged once.
    """
    at = f"127.0.0.1:{scene.mesh.ads_port}"
    sentence = f"control plane not connected: no server listens at {at}; start `meshwright serve` there"
    async with scene.mesh.away():
        agent = await scene.start("alice-uuid")
        await when(lambda: bool(_said(agent, WHY)))
        code, words = await get(f"{agent.status}/healthz/ready")
        assert (code, words.startswith(sentence)) == (503, True), words
        code, words = await _status(meshwright, agent)
        assert (code, f"control plane  {at} is not reached since 2" in words) == (1, True), words
        assert f"port-closed: no server listens at {at}\n" in words
        code, words = await _status(meshwright, agent, "--json")
        result = json.loads(words)
        assert (code, result["ready"], result["control_plane"]["reason"]) == (1, False, "port-closed")
        assert result["proxy"] == "alice-uuid.alice.default"
    await until(agent.ready)
    await when(lambda: bool(_said(agent, AGAIN)))
    code, words = await _status(meshwright, agent)
    assert (code, f"{at} is reached since" in words, "runs (pid " in words) == (0, True, True), words
    assert (await get(f"{agent.status}/healthz/ready")) == (200, "ok\n")
    of_alice = ("--credentials", str(agent.folder / "credentials"))
    waited = (0, "alice-uuid.alice.default is ready\n")
    assert await _status(meshwright, agent, command="wait") == waited
    assert await _status(meshwright, agent, *of_alice, command="wait") == waited

    async with scene.mesh.away():
        await when(lambda: len(_said(agent, WHY)) == 2)
        code, words = await get(f"{agent.status}/healthz/ready")
        assert (code, words.startswith(f"ok\nbut: {sentence}")) == (200, True), words
    await when(lambda: len(_said(agent, AGAIN)) == 2)
    (first, _) = _said(agent, WHY)
    assert (first["level"], first["reason"]) == ("error", "port-closed")
    assert await _status(meshwright, agent, "--status", "127.0.0.1:1") == (
        2,
        "meshwright: the agent at 127.0.0.1:1 does not answer: [Errno 111] Connection refused\n",
    )


async def test_sidecar_whose_workload_is_removed_reports_it_and_keeps_serving(
    scene: Scene, meshwright: str
) -> None:
    """The sidecar serves on with its last configuration and reports the unknown workload.

    It recovers when the workload is declared again.
    """
    agent = await scene.agent("alice-uuid")
    declared = MESH.index("---\napiVersion: meshwright.dev/v1alpha1\nkind: Workload\nmetadata: {name: alice")
    without = MESH[:declared] + MESH[MESH.index("---\napiVersion: specs.smi-spec.io") :]
    scene.mesh.apply(without)
    await when(lambda: bool(_said(agent, WHY)))
    (answer,) = _said(agent, WHY)
    assert answer["reason"] == "workload-unknown"
    code, words = await get(f"{agent.status}/healthz/ready")
    assert (code, words.startswith("ok\nbut: control plane not connected: ")) == (200, True), words
    sentence = (
        "has no workload for alice-uuid.alice.default, and serves this proxy as soon as the workload exists"
    )
    assert sentence in words
    assert (await _status(meshwright, agent))[0] == 1
    scene.mesh.apply(MESH)
    await when(lambda: bool(_said(agent, AGAIN)))
    assert (await get(f"{agent.status}/healthz/ready")) == (200, "ok\n")
