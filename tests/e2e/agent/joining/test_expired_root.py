"""Test of an expired root: the server and the agents report the remedy, and machines enrol again by token."""

import asyncio
import json
import os
import re
import subprocess
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from certs.custody import AuthorityWithLedger, opened
from certs.issuers.root import VALIDITY
from certs.keys.leaf import is_signed_by_bundle
from certs.proxy import issue_proxy
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from demo.plane import COMMAND
from meshwright.controller.identity.join_tokens import JoinTokens
from meshwright.enrolment.tokens import TokenRequest
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.workload import Capture, Transparent
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.machines import PROXY_UID
from tests.e2e.agent.mesh_of_machines import ADDRESSES, V4, Meshed
from tests.tools.deadline import HANG_SECONDS, until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
THEN = datetime.now(UTC) - VALIDITY - timedelta(days=1)
"""When the mesh began, whose root has expired a day ago."""


async def test_machines_enrol_again_after_the_root_certificate_has_expired(
    envoy: str, tmp_path: Path, ends: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps of docs/operate/certificates.md, and nothing else, restore traffic."""
    tmp_path.chmod(0o755)
    control = tmp_path / "control"
    with opened(control, TrustDomain("cluster.local"), THEN) as authority:
        ads_server_certificate(authority.authority, PairFiles(control), THEN)
        for name in ADDRESSES:
            _equip(authority, tmp_path, name)
        expired = authority.authority.trust_bundle()
    remedy = (
        r"expired at .*; restore the right files, or move the directory away so that the server creates a "
        r"new CA \(then all proxy certificates must be issued again\)"
    )
    assert re.search(remedy, _refused(tmp_path))
    (control / "ca").rename(tmp_path / "ca.expired")
    serial = re.search(r"create a new CA with --begin-anew ([0-9a-f]+)", _refused(tmp_path))
    assert serial is not None
    monkeypatch.setenv("MESHWRIGHT_BEGIN_ANEW", serial[1])
    how = Transparent(Capture.REDIRECT, ipv6=True)
    meshed = await Meshed.without_agents(tmp_path, V4, how, envoy, ends, joining=True)
    monkeypatch.delenv("MESHWRIGHT_BEGIN_ANEW")
    beginning = [asyncio.create_task(meshed.begin(name, seconds=200)) for name in ADDRESSES]
    for name in ADDRESSES:
        await until(partial(_knows, tmp_path / name / "agent.log"), 100)
        await meshed.entitle(name)
        os.chown(tmp_path / name / "token", PROXY_UID, PROXY_UID)
    await asyncio.gather(*beginning)
    await meshed.intercept(how)
    await until(meshed.serves)
    for name in ADDRESSES:
        folder = tmp_path / name / "credentials"
        new, chain = (folder / "ca.pem").read_bytes(), (folder / "proxy.pem").read_bytes()
        assert new != expired
        assert is_signed_by_bundle(chain, new)


def _equip(authority: AuthorityWithLedger, state: Path, name: str) -> None:
    """Give a machine its original token and the credentials issued for it."""
    folder = state / name
    credentials = folder / "credentials"
    credentials.mkdir(parents=True)
    made = issue_proxy(
        authority.authority, authority.ledger, ProxyName.parse(f"{name}-uuid.{name}.default"), VALIDITY, THEN
    )
    tokens = JoinTokens.in_directory(state / "control", authority.authority.trust_bundle, lambda: THEN)
    token, record = tokens.create(TokenRequest(name, "default", f"{name}-uuid"), "root")
    files = {
        "proxy.key": made.key.reveal(),
        "proxy.pem": made.chain_pem,
        "ca.pem": authority.authority.trust_bundle(),
        "joined": f"{record.id}\n".encode(),
    }
    for file, content in files.items():
        (credentials / file).write_bytes(content)
        (credentials / file).chmod(0o600)
    (folder / "token").write_text(f"{token.text()}\n")
    (folder / "token").chmod(0o600)
    (folder / "run").mkdir()
    (folder / "override.json").write_text("{}")
    (folder / "hosts").touch()


def _refused(state: Path) -> str:
    """Return the error of a server that refuses to start."""
    (state / "nothing").mkdir(exist_ok=True)
    command = [str(COMMAND), "serve", "--mesh", str(state / "nothing"), "--state", str(state / "control")]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=HANG_SECONDS)
    assert done.returncode == 2, done
    return done.stderr


async def _knows(log: Path) -> bool:
    """Return whether an agent has logged why it cannot join and that its certificate has expired."""
    lines = log.read_text().splitlines() if log.exists() else []
    answer = [
        json.loads(line)
        for line in lines
        if "join failed; the present certificate stays in use" in line and line.endswith("}")
    ]
    if not answer:
        return False
    assert (
        "presents roots that do not match the pin in the join token: the token belongs to "
        "another mesh, or the server is not the control plane. The token was not sent"
    ) in answer[0]["reason"]
    assert datetime.fromisoformat(answer[0]["ends"]) < datetime.now(UTC)
    return True
