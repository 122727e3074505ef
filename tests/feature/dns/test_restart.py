"""Tests of DNS answers after a restart of the control plane, with the real program and a DNS server."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes.credentials import issue_each
from benchmarks.processes.plane import ControlPlane, control_plane
from meshwright.controller.state_files import DNS_ANSWERS
from tests.feature.dns.dnsmasq import DEADLINE, Dnsmasq, needs_dnsmasq, running
from tests.feature.dns.test_dns_service import CLUSTER, FOUND, NAME, workload
from tests.feature.serve.delta_sidecar import Sidecar
from tests.meshes import texts
from tests.tools.deadline import until
from tests.tools.forked_cli import Command, Typed

pytestmark = needs_dnsmasq
NOBODY = "2 of 2 DNS queries were not answered"
STALE = {"good": 0, "stale": 1, "refused": 0}
UNUSED = "saved DNS answers cannot be used; the server resolves every name again first"


@pytest.fixture
def dns(tmp_path: Path) -> Iterator[Dnsmasq]:
    """A DNS server with the service at 10.0.0.1."""
    with running(tmp_path / "dnsmasq") as server:
        server.zone(db=["10.0.0.1"])
        yield server


@pytest.fixture
def state(tmp_path: Path, dns: Dnsmasq, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state directory of a mesh with a client, and two workloads behind a DNS name."""
    (tmp_path / "tls").mkdir()
    (tmp_path / "mesh").mkdir()
    issue_each(tmp_path / "state", tmp_path / "tls", [NAME])
    documents = (workload("buyer", "10.0.0.9"), workload("one", "10.0.0.1"), workload("two", "10.0.0.2"))
    (tmp_path / "mesh" / "mesh.yaml").write_text("\n---\n".join((texts.PERMISSIVE, FOUND, *documents)))
    settings = {
        "dns_nameservers": dns.nameserver,
        "dns_floor_seconds": "0.05",
        "dns_timeout_seconds": "0.2",
        "endpoint_admission": "off",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"MESHWRIGHT_{name.upper()}", value)
    return tmp_path / "state"


@contextlib.asynccontextmanager
async def served(state: Path) -> AsyncIterator[tuple[ControlPlane, Sidecar]]:
    """Run the program and connect the client. Yield when the client has its endpoints."""
    with control_plane(state.with_name("mesh"), state, measured=False) as (plane, _):
        client = Sidecar(NAME)
        task = asyncio.create_task(client.run(plane.ads, state.with_name("tls")))
        await until(lambda: CLUSTER in client.endpoints)
        yield plane, client
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _source(state: Path, typed: Typed) -> Any:
    """Return the DNS source from the output of `meshwright sources`."""
    command = Command(state, ("sources", "--json", "--state", str(state)), {})
    result = json.loads(typed.run(command, DEADLINE).stdout)
    (source,) = (item for item in result["sources"] if item["name"] == "dns")
    return source


async def test_saved_dns_answers_are_served_after_a_kill(state: Path, dns: Dnsmasq, typed: Typed) -> None:
    """Without a DNS server the saved endpoints are served and reported as stale.

    A new answer replaces them.
    """
    async with served(state) as (plane, client):
        dns.zone(db=["10.0.0.2"])
        await until(lambda: client.endpoints[CLUSTER] == {"10.0.0.2"})
        kept = state / DNS_ANSWERS.file
        await until(lambda: kept.exists() and b"10.0.0.2" in kept.read_bytes())
        plane.process.kill()
        plane.process.wait()
    dns.stop()
    async with served(state) as (_, client):
        assert client.endpoints[CLUSTER] == {"10.0.0.2"}
        first = await asyncio.to_thread(_source, state, typed)
        async with asyncio.timeout(DEADLINE):
            # A name has two records, which fail one after the other.
            later: dict[str, Any] = {}
            while (later.get("error"), later.get("objects")) != (NOBODY, STALE):
                later = await asyncio.to_thread(_source, state, typed)
        assert later["last_full_read"] == first["last_full_read"] < later["error_since"]
        assert later["age_seconds"] > first["age_seconds"] > 0
        assert later["last_event"] is None  # no change since the start
        assert client.endpoints[CLUSTER] == {"10.0.0.2"}
        dns.start()
        dns.zone(db=["10.0.0.1"])
        await until(lambda: client.endpoints[CLUSTER] == {"10.0.0.1"})
    assert b"10.0.0.1" in (state / DNS_ANSWERS.file).read_bytes()


@pytest.mark.parametrize("content", [None, b'{"version": 1, "answers": [', b'{"version": 9}'])
async def test_without_saved_dns_answers_no_endpoint_is_served(
    state: Path, dns: Dnsmasq, content: bytes | None
) -> None:
    """A damaged file is logged, a missing one is not, and new answers replace both.

    This is the negative control.
    """
    kept = state / DNS_ANSWERS.file
    async with served(state):
        await until(kept.exists)
    dns.stop()
    if content is None:
        kept.unlink()
    else:
        kept.write_bytes(content)
    async with served(state) as (plane, client):
        assert client.endpoints[CLUSTER] == set()
        answer = plane.first_log_line(UNUSED)
        assert (answer is None) == (content is None)
        assert answer is None or answer["reason"].startswith(f"{kept} is damaged, or of another version: ")
        dns.start()
        await until(lambda: client.endpoints[CLUSTER] == {"10.0.0.1"})
        await until(lambda: kept.exists() and b"10.0.0.1" in kept.read_bytes())
