"""Tests of the agent with a real Envoy and our ADS server: processes, certificates, hot restarts."""

import asyncio
import json
import os
import signal
import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog

from certs.state.pair_files import PairFiles
from meshwright.agent.envoy.runtime import shared_memory
from tests.e2e.agent.scenes import APPLICATION, CLIENT, NET, PORT, Agent, Scene, answered, get, is_alive, when
from tests.e2e.policy.calls import load
from tests.tools.deadline import until
from tools.ports import free_port

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(300)]
_log = structlog.get_logger(__name__)


async def test_agent_restarts_a_killed_envoy_and_both_end_together(scene: Scene) -> None:
    """A killed Envoy is restarted. If Envoy quits, the agent ends as well; a killed agent ends its Envoy."""
    agent = await scene.agent("alice-uuid")
    (first,) = agent.started()
    os.kill(first, signal.SIGKILL)
    await when(lambda: len(agent.started()) == 2)
    await until(agent.ready)
    base_id = int((agent.folder / "run" / "base-id").read_text())
    assert shared_memory(base_id).exists()

    await get(f"{agent.admin}/quitquitquit", "POST")
    async with asyncio.timeout(60):
        assert await agent.process.wait() == 0
    assert not shared_memory(base_id).exists()

    other = await scene.agent("shop-uuid", "--application-port", str(PORT))
    (envoy,) = other.started()
    other.process.kill()
    await other.process.wait()
    await when(lambda: not is_alive(envoy))
    shared_memory(int((other.folder / "run" / "base-id").read_text())).unlink()


async def test_envoy_gets_the_resource_attributes_for_its_spans(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Envoy's environment has the service name and instance, then the attributes set for the agent."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=prod")
    agent = await scene.agent("alice-uuid")
    (envoy,) = agent.started()
    messages = Path(f"/proc/{envoy}/environ").read_bytes().split(b"\0")
    known = b"service.name=alice.default,service.instance.id=alice-uuid"
    assert b"OTEL_RESOURCE_ATTRIBUTES=" + known + b",deployment.environment=prod" in messages


async def test_renewed_certificate_is_used_without_a_restart(scene: Scene) -> None:
    """New files, written one by one, are used once they are a pair.

    The next stream presents the new serial.
    """
    agent = await scene.agent("alice-uuid")
    serial = scene.issue("alice-uuid", agent.folder / "credentials")
    await when(lambda: any(event.get("serial") == serial for event in agent.events))
    seen: list[str] = []
    old = scene.mesh.server
    await _reconnected(scene, seen)
    await until(lambda: _has(seen, serial))
    assert scene.mesh.server is not old
    assert len(agent.started()) == 1
    assert await agent.epoch() == 0


async def _has(seen: list[str], serial: str) -> bool:
    return serial in seen


async def _reconnected(scene: Scene, seen: list[str]) -> None:
    """Replace the ADS server at its port by one that records the serials that proxies present."""
    from certs.peer import read_peer
    from certs.server import ads_server_certificate
    from tests.golden.running_mesh import ByCommonName
    from xds.cache import NodeKey
    from xds.hooks import Peer
    from xds.server.ads import AdsServer
    from xds.server.tls import TlsIdentity

    class Noting(ByCommonName):
        def authenticate(self, peer: Peer) -> NodeKey:
            assert peer.certificate is not None
            seen.append(read_peer(peer.certificate).serial)
            return super().authenticate(peer)

    mesh = scene.mesh
    await mesh.server.stop(0)
    shown = ads_server_certificate(mesh.authority, PairFiles(mesh.state), datetime.now(UTC))
    identity = TlsIdentity(shown.chain_pem, shown.key.reveal(), mesh.authority.trust_bundle())
    mesh.server = AdsServer(mesh.cache, Noting(), lambda: identity)
    await mesh.server.start(f"127.0.0.1:{mesh.ads_port}")
    mesh.ends.push_async_callback(mesh.server.stop, 0)


async def test_mismatched_key_and_certificate_are_not_used(scene: Scene) -> None:
    """The old certificate stays in use, the cause is logged, and the next matching pair is used."""
    agent = await scene.agent("alice-uuid")
    folder = agent.folder / "credentials"
    good = (agent.folder / "run" / "certificates" / "current").readlink()
    other = agent.folder / "other"
    other.mkdir()
    scene.issue("alice-uuid", other)
    (folder / "proxy.pem").write_bytes((other / "proxy.pem").read_bytes())
    await when(lambda: any("do not belong together" in str(event.get("reason")) for event in agent.events))
    assert (agent.folder / "run" / "certificates" / "current").readlink() == good
    assert "BEGIN" not in (agent.folder / "agent.log").read_text()
    (folder / "proxy.key").write_bytes((other / "proxy.key").read_bytes())
    await when(lambda: (agent.folder / "run" / "certificates" / "current").readlink() != good)


async def test_hot_restart_under_load_loses_no_request(scene: Scene, tmp_path: Path) -> None:
    """New connections go on through two restarts of each side's Envoy, and each request is answered."""
    overrides = {uuid: tmp_path / f"{uuid}.json" for uuid in ("alice-uuid", "shop-uuid")}
    for path in overrides.values():
        path.write_text("{}")
    agents = {uuid: await scene.agent(uuid, "--override", str(path)) for uuid, path in overrides.items()}
    await until(answered)
    async with load(_status, 4) as under:
        for epoch in (1, 2):
            for uuid, agent in agents.items():
                overrides[uuid].write_text(json.dumps({"node": {"metadata": {"epoch": epoch}}}))
                await until(lambda agent=agent, epoch=epoch: _is_at(agent, epoch))  # type: ignore[misc]
                await under.more(50)
    _log.info("hot restarts under load", epochs=4, outcomes=dict(under.every))
    assert set(under.every) == {"200"}


async def _status() -> str:
    return str((await get(f"http://{CLIENT}:{PORT}/"))[0])


async def _is_at(agent: Agent, epoch: int) -> bool:
    return await agent.epoch() == epoch


async def test_bootstrap_that_envoy_rejects_is_not_used(scene: Scene, tmp_path: Path) -> None:
    """A rejected bootstrap leaves the running Envoy alone; at the start it ends the agent with status 2."""
    override = tmp_path / "override.json"
    override.write_text("{}")
    agent = await scene.agent("alice-uuid", "--override", str(override))
    override.write_text('{"admin": {"address": {"socketAddress": {"address": "nowhere"}}}}')
    await when(lambda: any("does not accept" in str(event.get("reason")) for event in agent.events))
    assert (await agent.epoch(), len(agent.started())) == (0, 1)
    failed = await scene.start("shop-uuid", "--override", str(override))
    async with asyncio.timeout(60):
        assert await failed.process.wait() == 2
    assert "meshwright: Envoy does not accept" in (failed.folder / "agent.log").read_text()


async def test_status_server_serves_probes_metrics_and_guarded_shutdown(
    scene: Scene, meshwright: str
) -> None:
    """Probes and metrics are served, and `agent request` reaches Envoy.

    The admin socket is private, and `quitquitquit` refuses foreign hosts and origins. While draining, the
    agent is not ready.
    """
    agent = await scene.agent(
        "shop-uuid", "--application-port", str(PORT), "--application-address", APPLICATION
    )
    assert (await get(f"{agent.status}/healthz/live"))[0] == 200
    header = {"istio-app-probe-port": str(PORT)}
    assert (await get(f"{agent.status}/any", **header))[0] == 200
    assert (await get(f"{agent.status}/any", **{"istio-app-probe-port": "1"}))[0] == 400
    text = (await get(f"{agent.status}/stats/prometheus"))[1]
    assert "meshwright_agent_envoys 1" in text
    assert "envoy_server_live" in text
    assert (await get(f"{agent.status}/quitquitquit", "POST", Host="evil.example"))[0] == 403
    assert (await get(f"{agent.status}/quitquitquit", "POST", Origin="https://evil.example"))[0] == 403
    assert (await get(f"{agent.status}/quitquitquit"))[0] == 404
    run = agent.folder / "run"
    mode = (run / "admin.sock").stat().st_mode
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    asked = await asyncio.to_thread(
        subprocess.run,
        [meshwright, "agent", "request", "GET", "/clusters", "--run", str(run)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "meshwright-ads::" in asked.stdout
    at = agent.status.removeprefix("http://")
    words = [meshwright, "agent", "drain", "--status", at]
    assert (await asyncio.to_thread(subprocess.run, words, check=False)).returncode == 0
    assert (await get(f"{agent.status}/healthz/ready"))[0] == 503
    assert (await get(f"{agent.status}/quitquitquit", "POST"))[0] == 200
    async with asyncio.timeout(60):
        assert await agent.process.wait() == 0


async def test_readiness_depends_on_the_agents_own_envoy(scene: Scene) -> None:
    """Another sidecar has the admin port, so the agent's own Envoy fails.

    The agent is not ready although the other Envoy responds, and it reports the failure.
    """
    admin = f"{NET}.9:{free_port(f'{NET}.9')}"
    first = await scene.agent("alice-uuid", "--admin", admin)
    other = await scene.start("shop-uuid", "--admin", admin)
    answer: set[str] = set()

    async def has_failed() -> bool:
        status, words = await get(f"{other.status}/healthz/ready")
        assert status != 200, words
        answer.update(words.splitlines())
        # This line is there between two tries alone, and pauses double from 0.2 s.
        has_said = any(line.startswith("Envoy does not run: it failed ") for line in answer)
        return has_said and sum(event["event"] == "envoy exited" for event in other.events) >= 2

    await until(has_failed, explain=lambda: answer)
    assert any(
        "; give each proxy on this machine its own --admin" in line or "does not run" in line
        for line in answer
    ), answer
    metrics = (await get(f"{other.status}/stats/prometheus"))[1]
    assert "envoy_server_live" not in metrics
    assert (await get(f"{other.status}/drain", "POST"))[0] == 200
    assert await first.ready()


async def test_killed_envoy_is_restarted_once_and_requests_succeed_again(scene: Scene) -> None:
    """Requests fail only while an Envoy is dead. One restart is enough, and all later requests succeed."""
    agents = [await scene.agent(uuid) for uuid in ("alice-uuid", "shop-uuid")]
    await until(answered)
    async with load(_status, 4) as under:
        for agent in agents:
            os.kill(agent.started()[0], signal.SIGKILL)
            await when(lambda agent=agent: len(agent.started()) == 2)  # type: ignore[misc]
            await until(agent.ready)
            await until(answered)
        after = await under.more(100)
    _log.info("two Envoys killed under load", all=dict(under.every), after=dict(after))
    assert set(after) == {"200"}
    assert [len(agent.started()) for agent in agents] == [2, 2]


async def test_failed_epoch_ends_the_draining_one_and_a_new_envoy_starts(
    scene: Scene, tmp_path: Path
) -> None:
    """While two epochs live, the newer is killed, so the older is ended too.

    A new Envoy starts at epoch 0 with the new bootstrap.
    """
    override = tmp_path / "override.json"
    override.write_text("{}")
    agent = await scene.agent("alice-uuid", "--override", str(override), "--parent-shutdown-seconds", "30")
    override.write_text('{"node": {"metadata": {"new": true}}}')
    await until(lambda: _is_at(agent, 1))
    first, second = agent.started()
    assert is_alive(first)
    os.kill(second, signal.SIGKILL)
    await when(lambda: len(agent.started()) == 3)
    assert not is_alive(first)
    await until(lambda: _is_at(agent, 0))
    assert "new" in (await get(f"{agent.admin}/server_info"))[1]
    ended = [(event["epoch"], event["status"]) for event in agent.events if event["event"] == "envoy exited"]
    assert ended == [(1, -9), (0, -9)]


async def test_agent_that_ends_before_its_envoy_serves_does_not_drain(scene: Scene, tmp_path: Path) -> None:
    """The minimum drain time does not apply, because no client was served yet."""
    judging, judged, program = (tmp_path / name for name in ("judging", "judged", "envoy"))
    program.write_text(
        f"#!/bin/sh\ncase \"$*\" in\n*'--mode validate'*) touch {judging}; "
        f"until [ -e {judged} ]; do sleep 0.05; done;;\n*) exec sleep 300;;\nesac\n"
    )
    program.chmod(0o755)
    least = ("--termination-least-seconds", "80", "--termination-most-seconds", "80")
    agent = await scene.start("alice-uuid", "--envoy", str(program), *least)
    await when(judging.exists)
    agent.process.terminate()
    await when(lambda: any(event["event"] == "shutdown started" for event in agent.events))
    judged.touch()
    async with asyncio.timeout(40):
        assert await agent.process.wait() == 0


async def test_agent_log_is_json_and_sighup_ends_nothing(scene: Scene) -> None:
    """Every line is JSON, also those of Envoy, with level and logger.

    SIGHUP reloads the files without a restart, and `log-level` changes Envoy's level.
    """
    agent = await scene.agent("alice-uuid", "--envoy-log-level", "info")
    agent.process.send_signal(signal.SIGHUP)
    await when(lambda: any(str(event["event"]).startswith("files reloaded") for event in agent.events))
    assert len(agent.started()) == 1
    done = await asyncio.create_subprocess_exec(
        *(scene.meshwright, "log-level", "error", "--logger", "envoy"),
        *("--agent", agent.status.removeprefix("http://")),
        stdout=subprocess.PIPE,
    )
    out, _ = await done.communicate()
    assert out.decode().splitlines()[-1] == "envoy: error"
    agent.process.terminate()
    assert await agent.process.wait() == 0
    lines = [json.loads(line) for line in (agent.folder / "agent.log").read_text().splitlines()]
    assert all({"event", "level", "logger", "timestamp"} <= line.keys() for line in lines)
    envoys = [line for line in lines if line.get("source") == "envoy"]
    assert {"info"} <= {line["level"] for line in envoys}
    assert any(line["logger"] == "envoy.main" and line["place"] for line in envoys)
