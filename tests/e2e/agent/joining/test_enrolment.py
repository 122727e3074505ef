"""Test of two machines that get only a join token: enrolment, traffic, renewal, revocation."""

import asyncio
import json
from collections.abc import Awaitable, Callable
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
from tests.e2e.agent.mesh_of_machines import V4, Meshed
from tests.e2e.agent.scenes import end
from tests.tools.deadline import until
from tests.tools.own_authority import own_authority

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
ALICE = ProxyName.parse("alice-uuid.alice.default")


async def test_machines_enrol_by_token_renew_and_enrol_again_after_revocation(
    envoy: str, tmp_path: Path, ends: AsyncExitStack
) -> None:
    """Both machines enrol and have traffic, and a certificate past half of its life is renewed.

    A revoked machine loses its stream and enrols again with a new token. Secrets are not in logs, arguments
    or environments.
    """
    how = Transparent(Capture.REDIRECT, ipv6=True)
    tmp_path.chmod(0o755)
    meshed = await Meshed.start(tmp_path, V4, how, envoy, ends, joining=True)
    first = await _serial(meshed)
    assert {certificate["state"] for certificate in await _certificates(meshed)} == {"claimed"}

    # Half of its life is over: as if it had been put there 60 days ago.
    await end(meshed.agents["alice"])
    aged = _aged(meshed)
    await meshed.begin("alice")
    await _soon(lambda: _other_than(meshed, aged))
    renewed = await _serial(meshed)
    assert renewed not in (first, aged)
    await _soon(meshed.serves)
    await _soon(lambda: _has_stream(meshed, there=True))

    # All that the proxy holds: its stream may still be that of the certificate before.
    for certificate in await _certificates(meshed):
        if certificate["cn"] == str(ALICE):
            await _typed(
                meshed, "certs", "revoke", "--state", str(tmp_path / "control"), str(certificate["serial"])
            )
    await _soon(lambda: _has_stream(meshed, there=False))
    log = (tmp_path / "alice" / "agent.log").read_text()
    assert "certificate renewed" in log

    await end(meshed.agents["alice"])
    await meshed.entitle("alice")
    await meshed.begin("alice")
    assert await _serial(meshed) not in (first, aged, renewed)
    await _soon(meshed.serves)
    assert await _used(meshed) == [1, 1, 1]
    assert not [name for name in _said_or_shown(meshed) if _secret(meshed) in name]


def _aged(meshed: Meshed) -> str:
    """Replace alice's certificate by one that is due for renewal."""
    folder, state = meshed.state / "alice" / "credentials", meshed.state / "control"
    authority = own_authority(state, TrustDomain("cluster.local"), datetime.now(UTC))
    with SqliteLedger.open(state / LEDGER_FILE) as ledger:
        at = datetime.now(UTC) - timedelta(days=60)
        made = issue_proxy(authority, ledger, ALICE, timedelta(days=90), at)
    (folder / "proxy.key").write_bytes(made.key.reveal())
    (folder / "proxy.pem").write_bytes(made.chain_pem)
    return made.serial


def _secret(meshed: Meshed) -> str:
    """Return the secret of alice's last token."""
    return (meshed.state / "alice" / "token").read_text().split(".")[1]


def _said_or_shown(meshed: Meshed) -> list[str]:
    """Return the logs, and the public command lines and environments of the processes."""
    logs = [path.read_text("utf-8", "replace") for path in meshed.state.rglob("*.log")]
    assert len(logs) == 3
    pids = [agent.process.pid for agent in meshed.agents.values()]
    seen = [Path(f"/proc/{pid}/{name}").read_text() for pid in pids for name in ("cmdline", "environ")]
    return logs + seen


async def _serial(meshed: Meshed) -> str:
    """Return the serial of the certificate that alice's agent uses."""
    _, text = await meshed.agents["alice"].get("http://127.0.0.1:15020/healthz/status")
    return str(json.loads(text)["certificate"]["serial"])


async def _other_than(meshed: Meshed, serial: str) -> bool:
    return await _serial(meshed) != serial


async def _certificates(meshed: Meshed) -> list[dict[str, object]]:
    result: list[dict[str, object]] = (await meshed.ask("/debug/certs"))["proxy_certificates"]
    return result


async def _has_stream(meshed: Meshed, *, there: bool) -> bool:
    streams = (await meshed.ask("/debug/xds"))["streams"]
    return any(str(ALICE) in str(stream) for stream in streams) is there


async def _used(meshed: Meshed) -> list[object]:
    return [join_token["used"] for join_token in (await meshed.ask("/certs/tokens"))["join_tokens"]]


async def _typed(meshed: Meshed, *words: str) -> None:
    await asyncio.to_thread(meshed.machines["switch"].run, str(COMMAND), *words)


async def _soon(held: Callable[[], Awaitable[bool]]) -> None:
    await until(held)
