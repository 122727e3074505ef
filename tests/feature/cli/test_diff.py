"""Tests of `meshwright diff` against a server's pages, and of the comparison behind it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catalog.policy.group_policy import proxy_policy
from catalog.relations.groups import groups
from catalog.store.view import View
from meshwright.cli.offline.mesh import read
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.delivery.snapshots.changes import Change, ChangedProxies, Comparison, Kind, compare
from meshwright.mesh.identity import ProxyName
from tests.meshes import texts
from tests.meshes.resources import resources
from tests.tools.forked_cli import Done
from tests.unit.cli.api import answering
from tests.unit.cli.commands.test_explain import MESH, Run
from xds.protocol.resources.snapshot import Snapshot

POLICY = texts.joined(
    texts.route_group("routes", texts.match("books", "/books")),
    texts.target("t", "buyer", "store", texts.http("routes")),
)
Diff = Callable[..., Awaitable[Done]]


@dataclass
class Served:
    """A fake `admin.reading.MeshReading` of a server that serves a directory."""

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
        """Report no failure of a proxy's group."""
        del name
        return ""

    def unreceived(self, name: ProxyName) -> str:
        """Report no unreceived configuration."""
        del name
        return ""

    def pushes(self, name: ProxyName) -> tuple[object, ...]:
        """Return no pushes."""
        del name
        return ()

    def rejected(self, name: ProxyName) -> tuple[object, ...]:
        """Return no rejections."""
        del name
        return ()

    def listening(self) -> dict[str, str]:
        """Return no listening addresses."""
        return {}

    def settings(self) -> dict[str, object]:
        """Return the settings that affect resources."""
        return {
            "trust_domain": "cluster.local",
            "cluster_domain": "cluster.local",
            "virtual_addresses": "240.0.0.0/8",
            "endpoint_admission": "off",
            "headers_per_message": 1000,
            "header_kibibytes": 64,
            "denial_reasons": "callers",
            "trace_sampling": 100.0,
            "connect_seconds": 2.0,
            "connect_retries": 2,
            "ejecting_failures": 5,
            "ejecting_server_errors": 0,
            "ejected_seconds": 10.0,
            "ejected_percent": 50,
            "peer_silence_seconds": 10,
            "connection_reuse_seconds": 1,
            "virtual_addresses_ipv6": "2001:2::/96",
            "http_upgrades": ["websocket"],
            "tcp_idle_seconds": 604800,
            "service_certificate_key": "ecdsa-p256",
        }

    def proxies(self) -> tuple[ProxyStatus, ...]:
        """Return all proxies in the state "expected"."""
        now = datetime.now(UTC)
        return tuple(ProxyStatus(name, ProxyState.EXPECTED, "", now, known=True) for name in self._groups())

    def ejected(self) -> dict[str, tuple[ProxyName, ...]]:
        """Return no ejected endpoints."""
        return {}

    def dead_after(self) -> timedelta:
        """Return one minute."""
        return timedelta(minutes=1)

    def snapshot(self, name: ProxyName) -> Snapshot:
        """Return a proxy's snapshot."""
        return Snapshot.of(resources(proxy_policy(self.shown, self._groups()[name])))

    def _groups(self) -> dict[ProxyName, Any]:
        return {proxy: group for group, proxies in groups(self.shown).items() for proxy in proxies}


@pytest.fixture
async def diff(tmp_path: Path, run: Run) -> AsyncIterator[Diff]:
    """Serve a directory with a policy, and return a function that runs the command against it."""
    served = tmp_path / "served"
    served.mkdir()
    (served / "mesh.yaml").write_text(texts.joined(MESH, POLICY))
    reading: Any = Served(read(served).view)

    async def compared(manifests: str, *arguments: str) -> Done:
        wanted = tmp_path / "wanted"
        wanted.mkdir(exist_ok=True)
        (wanted / "mesh.yaml").write_text(manifests)
        return await asyncio.to_thread(run, "diff", str(wanted), "--state", str(tmp_path), *arguments)

    async with answering(reading, tmp_path):
        yield compared


async def test_diff_of_the_served_directory_reports_no_change(diff: Diff) -> None:
    """The same manifests give status 0 and the number of unchanged proxies."""
    assert await diff(texts.joined(MESH, POLICY)) == Done(0, "0 proxies would change, 2 would not\n", "")


async def test_diff_with_an_older_server_names_the_missing_setting(
    diff: Diff, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that lacks a setting of this command is one message, without a stack trace."""
    settings = Served.settings

    def older(self: Served) -> dict[str, object]:
        return {name: item for name, item in settings(self).items() if name != "connect_retries"}

    monkeypatch.setattr(Served, "settings", older)
    done = await diff(texts.joined(MESH, POLICY))
    assert done.returncode == 2
    assert "the server does not report its setting 'connect_retries'" in done.stderr
    assert "Traceback" not in done.stderr


async def test_changed_route_is_one_resource_with_its_differing_lines(diff: Diff) -> None:
    """A changed path of one match is one changed route of the server's proxy, with both lines."""
    done = await diff(texts.joined(MESH, POLICY).replace("/books", "/shelves"))
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (1, "")
    assert lines[:4] == [
        "1 proxy would change, 1 would not",
        "",
        "u1.store.shop",
        "  ~ route rds-inbound.8080",
    ]
    differing = [line for line in lines if line[:2] in ("+ ", "- ")]
    assert [(line[0], line.split()[-1]) for line in differing] == [("-", "/books"), ("+", "/shelves")]


async def test_diff_names_new_and_removed_proxies_and_resources(diff: Diff) -> None:
    """A new workload is a new proxy, removed resources have a minus, and errors in manifests are printed."""
    other = MESH.replace("uuid: u1", "uuid: u3")
    done = await diff(other + "---\nkind: Nonsense", "--names")
    assert done.returncode == 1
    assert done.stderr.startswith("meshwright: 1 error in ")
    assert done.stdout.splitlines()[:3] == [
        "1 proxy would change, 0 would not",
        "new: u3.store.shop",
        "not known any more (it keeps its configuration): u1.store.shop",
    ]
    assert "  - cluster shop/store|8080" in done.stdout.splitlines()


async def test_diff_reports_rules_without_effect_as_errors(diff: Diff) -> None:
    """A target whose rule names a missing route group changes nothing, and is an error that lint explains."""
    dangling = (
        POLICY.partition("---")[2].replace("name: t,", "name: u,").replace("name: routes", "name: gone")
    )
    done = await diff(texts.joined(MESH, POLICY, dangling))
    assert (done.returncode, done.stdout) == (0, "0 proxies would change, 2 would not\n")
    # The rule, and the target that has no other.
    assert done.stderr.startswith("meshwright: 2 errors between objects of ")


async def test_diff_compares_proxies_of_other_drivers(diff: Diff) -> None:
    """A proxy with another driver is compared by its document.

    A proxy with an unknown driver keeps its configuration, which is no error of the manifests.
    """
    named = "metadata: {name: store-1, namespace: shop, annotations: {meshwright.dev/sidecar-driver: %s},"
    policy = "---\n" + POLICY
    done = await diff(MESH.replace("metadata: {name: store-1, namespace: shop,", named % "document") + policy)
    lines = done.stdout.splitlines()
    assert (lines[0], done.stderr) == ("1 proxy would change, 1 would not", "")
    assert "  + document document" in lines
    assert "  - listener inbound-listener" in lines
    done = await diff(MESH.replace("metadata: {name: store-1, namespace: shop,", named % "pipy") + policy)
    unknown = "sidecar driver 'pipy' is unknown; known: document, envoy"
    text = f"0 proxies would change, 1 would not\nkeeps its configuration: u1.store.shop: {unknown}\n"
    assert done == Done(0, text, "")


def test_equal_changes_of_several_proxies_are_one_entry() -> None:
    """Equal changes are grouped. The same resource with another version is a separate entry."""
    before = {name: {"route": {"r": "1"}} for name in "abcd"}
    after = {
        "a": {"route": {"r": "2"}},
        "b": {"route": {"r": "2"}},
        "c": {"route": {"r": "3"}},
        "d": {"route": {"r": "1"}},
    }
    change = (Change("route", "r", Kind.CHANGED),)
    assert compare(before, after) == Comparison(
        (ChangedProxies(("a", "b"), change), ChangedProxies(("c",), change)), 1, (), ()
    )
    assert not compare(before, before)
