"""Tests of sidecar drivers: selection, addresses and proxies, and their supervision."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.policy.group_policy import proxy_policy
from catalog.relations.groups import group_of
from meshwright.controller.driver_runner import DriverTasks
from meshwright.controller.drivers import DriverPages, MeshDrivers
from meshwright.controller.errors import SettingsError
from meshwright.controller.observing import driver_probes as probing
from meshwright.controller.process.tasks import TaskEnded
from meshwright.controller.settings.settings import Settings, load
from meshwright.delivery.snapshots.rendering import GroupInput
from meshwright.delivery.snapshots.translation import CertificateMissing, translation
from meshwright.mesh.config import SidecarDriverSettings, SidecarSettings
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.sidecars.contract.driver import SidecarDriver, each_piece
from meshwright.sidecars.contract.errors import UnknownDriverError
from meshwright.sidecars.contract.health import HealthProbe, HealthProbes, ProbeScheme
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.document.translate import DOCUMENT, NAME
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.envoy.empty_resources import empty
from tests.meshes import values as a
from tests.meshes.views import mesh_config, namespace, view, workload
from xds.protocol.resources.resource import ROUTE, ResourceName, TypeUrl

BOTH: dict[str, SidecarDriver] = {"document": DocumentDriver(), "envoy": EnvoyDriver()}
CLASS = "MESHWRIGHT_SIDECAR_CLASS"


def _settings(tmp_path: Path, **told: object) -> Settings:
    return load({"mesh": tmp_path, "state": tmp_path, **told})


@pytest.mark.parametrize(
    ("documents", "environment", "told", "expected"),
    [
        ((), {}, (), ("envoy",)),
        ((), {CLASS: "document"}, (), ("document",)),
        ((mesh_config("sidecarClass: document"),), {}, (), ("document",)),
        ((mesh_config("sidecarClass: pipy"),), {}, (), ("envoy",)),
        (
            (mesh_config("sidecarDrivers: [{sidecarName: pipy}, {sidecarName: document}]"),),
            {},
            (),
            tuple(BOTH),
        ),
        ((workload("one", "document"),), {}, (), tuple(BOTH)),
        ((workload("one"), namespace("document")), {}, (), tuple(BOTH)),
        ((workload("one", "pipy"),), {}, ("document",), tuple(BOTH)),
    ],
)
def test_needed_drivers_are_started(
    documents: tuple[str, ...], environment: dict[str, str], told: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """The default driver, drivers named by objects and drivers in the settings are started, and no other."""
    assert MeshDrivers(BOTH, environment).wanted(view(*documents), told) == expected


def test_unknown_driver_is_an_error_with_the_known_ones() -> None:
    """An unknown driver in the environment or in driver_addresses is an error at once."""
    with pytest.raises(UnknownDriverError, match="'pipy' is unknown; known: document, envoy"):
        MeshDrivers(BOTH, {CLASS: "pipy"})
    with pytest.raises(UnknownDriverError, match="driver_addresses: sidecar driver 'pipy' is unknown"):
        MeshDrivers(BOTH, {}).wanted(view(), ("pipy",))


def test_replacement_of_a_rejected_resource_comes_from_its_driver() -> None:
    """A route is replaced by Envoy's empty route; documents and unknown types have no replacement."""
    drivers = MeshDrivers(BOTH, {})
    route = (ROUTE, ResourceName("r"))
    assert drivers.empty(route) == empty(route)
    assert empty(route) is not None
    assert drivers.empty((DOCUMENT, NAME)) is None
    assert drivers.empty((TypeUrl("type.example/thing"), ResourceName("r"))) is None


def test_address_of_a_driver_is_taken_from_settings_then_mesh_config(tmp_path: Path) -> None:
    """The order is: the setting, the entry in the MeshConfig, the driver's default port."""
    drivers, plain = MeshDrivers(BOTH, {}), view()
    entries = view(mesh_config("sidecarDrivers: [{sidecarName: envoy, proxyServerPort: 7}]"))
    silent, settings = _settings(tmp_path), _settings(tmp_path, ads_address="127.0.0.1:9")
    assert drivers.address("envoy", plain, silent) == HostPort("::", 15128)
    assert drivers.address("envoy", entries, silent) == HostPort("::", 7)
    assert drivers.address("envoy", entries, settings) == HostPort("127.0.0.1", 9)
    assert drivers.address("document", entries, settings) == HostPort("127.0.0.1", 15129)
    given = _settings(tmp_path, driver_addresses="document=[::1]:5, envoy=127.0.0.1:6")
    assert drivers.address("document", plain, given) == HostPort("::1", 5)
    assert drivers.address("envoy", plain, given) == HostPort("127.0.0.1", 6)


def test_proxy_of_another_driver_is_refused() -> None:
    """Each server refuses proxies of another known driver. A proxy whose driver is unknown is not refused."""
    drivers, of = MeshDrivers(BOTH, {}), view(workload("one", "document"), workload("two", "pipy", 2))
    one, two, three = (ProxyName.parse(f"{name}.store.shop") for name in ("one", "two", "three"))
    assert drivers.not_served(of, one, "document") == ""
    text = "workload shop/one is of sidecar driver document, not envoy"
    assert drivers.not_served(of, one, "envoy") == text
    for name in (two, three):
        assert drivers.not_served(of, name, "envoy") == drivers.not_served(of, name, "document") == ""
    assert drivers.not_served(None, one, "envoy") == ""


def test_each_group_is_translated_by_its_driver(make_need: Callable[..., GroupInput]) -> None:
    """The group's driver or the MeshConfig's is used.

    Unknown drivers and a missing certificate raise errors.
    """
    translate = translation(*BOTH.values(), environment={CLASS: "document"})

    def types(driver: str, sidecar: SidecarSettings) -> set[str]:
        pieces = translate(make_need(driver, sidecar))
        return {resource.type_url for piece in each_piece(pieces) for resource in piece.resources()}

    plain, envoy = SidecarSettings(), SidecarSettings("envoy", (SidecarDriverSettings("envoy"),))
    assert types("", plain) == types("document", envoy) == BOTH["document"].types
    assert types("", envoy) == types("envoy", plain)
    assert DOCUMENT not in types("envoy", plain)
    with pytest.raises(UnknownDriverError):
        translate(make_need("pipy", plain))
    with pytest.raises(CertificateMissing):
        translate(make_need("", plain, certified=False))


@pytest.fixture
def make_need() -> Callable[..., GroupInput]:
    """Return a factory of translation inputs for one workload."""
    of = view(workload("one"))
    policy = proxy_policy(of, group_of(of, next(iter(of.workloads.values()))))

    def made(driver: str, sidecar: SidecarSettings, *, certified: bool = True) -> GroupInput:
        held = a.certificate(policy.identity, "1") if certified else None
        return GroupInput(policy, held, b"roots", driver, sidecar)

    return made


async def test_driver_pages_can_be_added_while_the_server_runs() -> None:
    """Of two pages with one path the first is kept."""
    pages = DriverPages()

    async def answer(query: Any) -> dict[str, object]:
        return {"asked": query["name"]}

    pages.page("/debug/one", "first", answer)
    pages.page("/debug/one", "second", answer)
    assert [(page.path, page.shows) for page in pages.pages()] == [("/debug/one", "first")]
    assert pages.statuses() == ()


async def test_health_probe_reports_failures_as_text() -> None:
    """TCP and HTTP probes return an empty text for success, and otherwise the cause; they raise no error."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        status = b"200 OK" if b"/good" in line else b"503 No"
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await probing.carry_out(HealthProbe(port), "127.0.0.1") == ""
        good, bad = (HealthProbe(port, ProbeScheme.HTTP, path) for path in ("/good", "/bad"))
        assert await probing.started(good, "127.0.0.1") == ""
        assert await probing.carry_out(bad, "127.0.0.1") == "status 503"
    assert await probing.carry_out(HealthProbe(port), "127.0.0.1") != ""


async def test_counted_probe_connection_is_announced() -> None:
    """Only connections that would be counted are announced, and a failed one is withdrawn."""
    seen: list[str] = []

    @contextlib.contextmanager
    def own() -> Iterator[None]:
        seen.append("begun")
        try:
            yield
        except OSError:
            seen.append("failed")
            raise

    async with await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await probing.carry_out(HealthProbe(port), "127.0.0.1", own) == ""
        assert await probing.started(HealthProbe(port, counted=True), "127.0.0.1", own) == ""
    assert seen == ["begun"]
    assert await probing.carry_out(HealthProbe(port, counted=True), "127.0.0.1", own) != ""
    assert seen == ["begun", "begun", "failed"]


async def test_drivers_without_an_answer_are_reported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round of probes reports the names of drivers that failed it."""
    monkeypatch.setattr(probing, "PROBE_SECONDS", 0.0)
    async with await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0) as server:
        good = HealthProbe(server.sockets[0].getsockname()[1])
        bad = HealthProbe(1, timeout_seconds=0.5)
        future: asyncio.Future[tuple[str, ...]] = asyncio.get_running_loop().create_future()
        probes = {
            "good": (HealthProbes(good, good, good), "127.0.0.1"),
            "bad": (HealthProbes(good, bad, good), "127.0.0.1"),
        }

        def tell(names: tuple[str, ...]) -> None:
            if not future.done():
                future.set_result(names)

        task = asyncio.create_task(probing.probing(probes, tell))
        assert await future == ("bad",)
        task.cancel()


async def test_task_of_a_stopped_driver_may_end() -> None:
    """A task that ends after the stop is awaited and raises no error."""
    async with asyncio.TaskGroup() as group:
        tasks = DriverTasks(group, 5.0)
        closed: list[float] = []

        async def close(grace: float) -> None:
            closed.append(grace)

        tasks.lifetime.spawn("server", tasks.lifetime.until_over(close))
        await tasks.end(in_order=True)
    assert closed == [5.0]


async def test_task_of_a_running_driver_that_ends_stops_the_program() -> None:
    """A task that returns before the stop raises TaskEnded, as a failed one does."""

    async def ends() -> None:
        return

    with pytest.raises(ExceptionGroup) as failed:
        async with asyncio.TaskGroup() as group:
            DriverTasks(group, 5.0).lifetime.spawn("server", ends())
    assert isinstance(failed.value.exceptions[0], TaskEnded)


async def test_driver_that_does_not_stop_in_time_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task is cancelled, so that the program does not hang because of a third party's driver."""
    monkeypatch.setattr("meshwright.controller.driver_runner.OVERTIME_SECONDS", 0.05)

    async def stays() -> None:
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        tasks = DriverTasks(group, 0.0)
        task: Any = tasks.lifetime.spawn("server", stays())
        await tasks.end(in_order=True)
    assert task.cancelled()


@pytest.mark.parametrize("text", ["document", "document=", "=127.0.0.1:1", "document=here"])
def test_invalid_driver_address_is_refused(tmp_path: Path, text: str) -> None:
    """The error names the setting, the value and the accepted form."""
    with pytest.raises(SettingsError, match=r"--driver-addresses is .*must be"):
        _settings(tmp_path, driver_addresses=text)


def test_driver_addresses_are_printed_as_they_are_read(tmp_path: Path) -> None:
    """The JSON form has the address as it was given."""
    fields = _settings(tmp_path, driver_addresses="document=[::1]:5").model_dump(mode="json")
    assert fields["driver_addresses"] == {"document": "[::1]:5"}
