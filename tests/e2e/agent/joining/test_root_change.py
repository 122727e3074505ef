"""Test of a root rotation under load: machines follow automatically, whatever happens to the server."""

import asyncio
import json
import os
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from certs.issuers.ca_folder import fingerprint_in
from certs.keys.leaf import is_signed_by_bundle, read_leaf
from demo.plane import COMMAND
from meshwright.mesh.workload import Capture, Transparent
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.machines import APPLICATION_UID
from tests.e2e.agent.mesh_of_machines import CALLED_AT, V4, Meshed
from tests.e2e.policy.applications import GREETER
from tests.e2e.policy.calls import exchange, load
from tests.tools.deadline import until

IS_LONG = os.environ.get("MESHWRIGHT_SOAK") == "long"
PAUSE = 0.01 if IS_LONG else 0.05
"""Seconds between calls, which are so many that there is time for everything else."""

STAGES = ("trusting", "replacing", "retiring") if IS_LONG else ("replacing",)
"""Stages at which the server is killed."""

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(900 if IS_LONG else 600),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]


ROOT = """\
apiVersion: config.openservicemesh.io/v1alpha2
kind: MeshRootCertificate
metadata: {{name: {name}, namespace: osm-system}}
spec: {{provider: {{tresor: {{ca: {{secretRef: {{name: {name}}}}}}}}}}}
"""


class Changing:
    """A mesh of two machines that joined by token, with calls between them."""

    def __init__(self, meshed: Meshed) -> None:
        self.meshed = meshed
        self.control = meshed.state / "control"

    @property
    def root(self) -> str:
        """Return the fingerprint of the signing root."""
        return fingerprint_in(self.control / "ca")

    def stage(self) -> str:
        """Return the stage of a rotation, with " back" if it is aborted. Without a rotation, return ""."""
        try:
            answer = json.loads((self.control / "rotation.json").read_text())
        except FileNotFoundError:
            return ""
        return f"{answer['stage']}{' back' if answer['aborted'] else ''}"

    async def greeted(self) -> str:
        """Have alice call the shop's greeter on a new end-to-end connection."""
        await asyncio.sleep(PAUSE)
        at = self.meshed.machines["alice"].socket(V4, APPLICATION_UID)
        text = await exchange(CALLED_AT[V4], GREETER, first=True, at=at)
        return "greeted" if text else "nothing"

    async def rotate(self, *words: str) -> str:
        """Run `certs rotate-root`."""
        typed = ("certs", "rotate-root", "--state", str(self.control), *words)
        done = await asyncio.to_thread(self.meshed.machines["switch"].run, str(COMMAND), *typed)
        return done.stdout

    async def restarted_at(self, *stages: str) -> None:
        """Kill and restart the server at the start of each of these stages.

        Wait for the end of the rotation.
        """
        left = list(stages)
        while stage := self.stage():
            if stage in left:
                left.remove(stage)
                await self.meshed.crash()
                await self.meshed.serve()
            await asyncio.sleep(0.02)
        assert not left, f"never seen: {left}"

    async def aborted_at(self, stage: str) -> None:
        """Start a rotation and abort it as soon as this stage has begun; wait for the end."""
        await self.rotate()
        while self.stage() != stage:
            assert self.stage(), f"never seen: {stage}"
            await asyncio.sleep(0.02)
        await self.rotate("--abort")
        await self.restarted_at()

    async def declared(self) -> str:
        """Declare the present root as an object, then another root.

        Return the fingerprint of the new root.
        """
        before = self.root
        for name in ("first", "second"):
            self.meshed.write("roots.yaml", ROOT.format(name=name))
            notes = self.control / "declared-roots.json"
            while not notes.exists() or f"/{name}" not in notes.read_text():
                await asyncio.sleep(0.02)
            while self.stage() or (name == "second" and self.root == before):
                await asyncio.sleep(0.02)
        return self.root

    async def follows(self) -> bool:
        """Return whether alice's machine has the signing root and a certificate issued by it."""
        folder = self.meshed.state / "alice" / "credentials"
        signing = (self.control / "ca" / "ca.pem").read_bytes()
        return is_signed_by_bundle((folder / "proxy.pem").read_bytes(), signing) and (
            (folder / "ca.pem").read_bytes().strip() == signing.strip()
        )


async def test_root_rotation_under_load_loses_no_call(
    envoy: str, tmp_path: Path, ends: AsyncExitStack
) -> None:
    """The server is killed and restarted in the middle, and both machines follow without manual work.

    In the long form this happens at every stage, a rotation is aborted, and another root is declared; without
    machines tests/feature/identity asserts this too.
    """
    tmp_path.chmod(0o755)
    how = Transparent(Capture.REDIRECT, ipv6=True)
    changing = Changing(await Meshed.start(tmp_path, V4, how, envoy, ends, joining=True))
    before = changing.root
    first = read_leaf((tmp_path / "alice" / "credentials" / "proxy.pem").read_bytes()).serial
    began = time.monotonic()
    async with load(changing.greeted, concurrency=4 if IS_LONG else 2) as calls:
        await calls.more(20)
        for _ in range(3 if IS_LONG else 1):
            await changing.rotate()
            await changing.restarted_at(*STAGES)
            await until(changing.follows, 180)  # an agent that met no server asks again after a minute
            await calls.more(20)
        after = changing.root
        for stage in STAGES if IS_LONG else ():
            await changing.aborted_at(stage)
            await calls.more(20)
        declared = await changing.declared() if IS_LONG else "none"
        await until(changing.follows, 180)
        await calls.more(20)
    sent, seconds = calls.every.total(), time.monotonic() - began
    sys.stdout.write(
        f"{seconds:.0f} s: {sent} sent, each on a new connection ({sent / seconds:.0f} a second), "
        f"{sent - calls.every['greeted']} failed {dict(calls.every)}\n"
    )
    assert set(calls.every) == {"greeted"}, calls.every
    assert len({before, after, declared}) == 3
    assert read_leaf((tmp_path / "alice" / "credentials" / "proxy.pem").read_bytes()).serial != first
