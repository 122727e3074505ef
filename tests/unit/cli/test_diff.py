"""`meshwright diff` against the pages of a server, and the comparison that it stands on."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from admin.pages import add_pages, pages
from admin.reading import ProxyStanding, ProxyState
from admin.serving import SOCKET_NAME, serving, unix_socket
from catalog.groups import groups
from catalog.policy import proxy_policy
from catalog.view import View
from cli.changes import Change, Changed, Comparison, Kind, compare
from cli.offline import read
from mesh.identity import ProxyName
from sidecars.envoy.translate import resources
from tests.unit.cli.test_explain import MESH, ROOT
from xds.snapshot import Snapshot

POLICY = """
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {name: routes, namespace: shop}
spec: {matches: [{name: books, pathRegex: /books}]}
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {name: t, namespace: shop}
spec:
  destination: {kind: ServiceAccount, name: store, namespace: shop}
  sources: [{kind: ServiceAccount, name: buyer, namespace: shop}]
  rules: [{kind: HTTPRouteGroup, name: routes}]
"""
Diff = Callable[..., Awaitable[tuple[int | None, str, str]]]


@dataclass
class Served:
    """admin.reading.MeshReading of a server that serves a directory."""

    shown: View

    def view(self) -> View:
        """Return the view."""
        return self.shown

    def streams(self) -> tuple[object, ...]:
        """Return no streams."""
        return ()

    def ledger(self) -> tuple[object, ...]:
        """Return no proxy certificates."""
        return ()

    def failure(self, name: ProxyName) -> str:
        """Say that a proxy's group could be computed."""
        del name
        return ""

    def rejected(self, name: ProxyName) -> tuple[object, ...]:
        """Say that a proxy has rejected nothing."""
        del name
        return ()

    def settings(self) -> dict[str, str]:
        """Return the settings that matter."""
        return {
            "trust_domain": "cluster.local",
            "cluster_domain": "cluster.local",
            "virtual_addresses": "240.0.0.0/8",
            "endpoint_admission": "off",
        }

    def proxies(self) -> tuple[ProxyStanding, ...]:
        """Return all proxies, expected."""
        now = datetime.now(UTC)
        return tuple(ProxyStanding(name, ProxyState.EXPECTED, "", now, known=True) for name in self._groups())

    def snapshot(self, name: ProxyName) -> Snapshot:
        """Return what a proxy is served."""
        return Snapshot.of(resources(proxy_policy(self.shown, self._groups()[name])))

    def _groups(self) -> dict[ProxyName, Any]:
        found = {}
        for group, uuids in groups(self.shown).items():
            for uuid in uuids:
                name = self.shown.workloads_by_uuid[uuid].proxy_name
                assert name is not None
                found[name] = group
        return found


@pytest.fixture
async def diff(tmp_path: Path) -> AsyncIterator[Diff]:
    """Serve a directory with a policy, and return a runner of the command against it."""
    served = tmp_path / "served"
    served.mkdir()
    (served / "mesh.yaml").write_text(MESH + "---" + POLICY)
    reading: Any = Served(read(served).view)
    app = web.Application()
    add_pages(app, pages(reading, lambda: datetime.now(UTC)))

    async def run(manifests: str, *arguments: str) -> tuple[int | None, str, str]:
        wanted = tmp_path / "wanted"
        wanted.mkdir(exist_ok=True)
        (wanted / "mesh.yaml").write_text(manifests)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from cli.main import main; main()"),
            *("diff", str(wanted), "--state", str(tmp_path), *arguments),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()

    async with serving(app, unix_socket(tmp_path / SOCKET_NAME)):
        yield run


async def test_nothing_would_change(diff: Diff) -> None:
    """The same directory: status 0."""
    assert await diff(MESH + "---" + POLICY) == (0, "0 proxies would change, 2 would not\n", "")


async def test_one_route_would_change(diff: Diff) -> None:
    """Another path of one match: one resource of the server's proxy, with the lines that differ."""
    status, out, err = await diff(MESH + "---" + POLICY.replace("/books", "/shelves"))
    lines = out.splitlines()
    assert (status, err) == (3, "")
    assert lines[:4] == [
        "1 proxies would change, 1 would not",
        "",
        "u1.store.shop",
        "  ~ route rds-inbound.8080",
    ]
    differing = [line for line in lines if line[:2] in ("+ ", "- ")]
    assert [(line[0], line.split()[-1]) for line in differing] == [("-", "/books"), ("+", "/shelves")]


async def test_what_comes_and_goes(diff: Diff) -> None:
    """Without the policy the client's resources go; a workload more is a new proxy; errors are said."""
    other = MESH.replace("uuid: u1", "uuid: u3")
    status, out, err = await diff(other + "---\nkind: Nonsense", "--names")
    assert status == 3
    assert err.startswith("meshwright: 1 errors in ")
    assert out.splitlines()[:3] == [
        "1 proxies would change, 0 would not",
        "new: u3.store.shop",
        "not known any more (it keeps what it has): u1.store.shop",
    ]
    assert "  - cluster shop/store|8080" in out.splitlines()


def test_proxies_with_the_same_change_are_told_together() -> None:
    """Equal changes are one entry; the same names with other versions are another."""
    before = {name: {"route": {"r": "1"}} for name in "abcd"}
    after = {
        "a": {"route": {"r": "2"}},
        "b": {"route": {"r": "2"}},
        "c": {"route": {"r": "3"}},
        "d": {"route": {"r": "1"}},
    }
    change = (Change("route", "r", Kind.CHANGED),)
    assert compare(before, after) == Comparison(
        (Changed(("a", "b"), change), Changed(("c",), change)), 1, (), ()
    )
    assert not compare(before, before)
