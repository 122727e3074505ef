"""Sidecar drivers of this server: the installed ones, the running ones, and the one of each workload."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from aiohttp import web

from catalog.relations.groups import driver_of, members
from catalog.store.inventory import holder_of
from catalog.store.view import View
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.jsonable import Document, jsonable
from meshwright.admin.pages.site import Page
from meshwright.admin.proxy_names import NothingToShow
from meshwright.controller.settings.settings import Settings
from meshwright.mesh.config import SidecarSettings
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.sidecars import lint
from meshwright.sidecars.contract.contexts import AcknowledgedSecrets, DebugAnswer, MovableStreams
from meshwright.sidecars.contract.driver import SidecarDriver
from meshwright.sidecars.contract.errors import DriverError, NothingThereError, UnknownDriverError
from meshwright.sidecars.contract.reasons import Reason
from meshwright.sidecars.contract.selection import select
from xds.protocol.resources.resource import Reference, Resource, TypeUrl
from xds.stream_status import StreamStatus

ADS_DRIVER: Final = "envoy"
"""The driver that listens at the setting `ads_address`."""


class MeshDrivers:
    """The drivers by name, with the environment, which selects one if MeshConfig does not.

    Raises UnknownDriverError if the environment selects a missing driver.
    """

    def __init__(self, drivers: Mapping[str, SidecarDriver], environment: Mapping[str, str]) -> None:
        self.drivers = drivers
        self.environment = environment
        self.running: frozenset[str] | None = None
        # Raises for an unknown driver in the environment, before anything is started.
        self._selected(SidecarSettings())

    @property
    def installed(self) -> lint.InstalledDrivers:
        """Return the installed and the running drivers, for lint's checks of references to drivers."""
        return lint.InstalledDrivers(self.drivers, self.environment, self.running)

    def empty(self, reference: Reference) -> Resource | None:
        """Return an empty resource to send instead of a rejected one without any accepted version.

        The driver of the resource's type provides the replacement.
        """
        for driver in self.drivers.values():
            if reference[0] in driver.types:
                return driver.empty(reference)
        return None

    def reason(self, type_url: TypeUrl, said: str) -> Reason:
        """Return the reason of a resource's rejection, from the proxy's error message.

        The driver of the resource's type classifies the message.
        """
        result = (
            sidecar_driver for sidecar_driver in self.drivers.values() if type_url in sidecar_driver.types
        )
        driver = next(result, None)
        return Reason.CONTENT if driver is None else driver.reason(said)

    def wanted(self, view: View, names: Iterable[str]) -> tuple[str, ...]:
        """Return the drivers to start: the mesh's, those named by objects, and those in `names` (settings).

        A driver that only objects name, and that is not installed, becomes a problem of these objects.
        UnknownDriverError is raised for an unknown driver in the settings.
        """
        given = tuple(names)
        for name in given:
            if name not in self.drivers:
                known = ", ".join(self.drivers)
                raise UnknownDriverError(
                    f"driver_addresses: sidecar driver {name!r} is unknown; known: {known}"
                )
        named = {group.driver for group in members(view)} - {""}
        entries = {entry.name for entry in view.config.sidecar.drivers}
        result = {self._default(view.config.sidecar), *given, *named, *entries}
        # Drivers that only objects name and that are not installed are dropped here; lint reports them.
        return tuple(sorted(result & self.drivers.keys()))

    def address(self, name: str, view: View, settings: Settings) -> HostPort:
        """Return the address of a driver.

        The settings win: `driver_addresses`, and `ads_address` for Envoy's driver. Otherwise the host is from
        `ads_address`, and the port from MeshConfig's entry, or the driver's default. For example,
        `driver_addresses: document=127.0.0.1:15129` sets the address of the driver `document`.
        """
        host_port = settings.driver_addresses.get(name)
        if host_port is not None:
            return host_port
        if name == ADS_DRIVER and "ads_address" in settings.model_fields_set:
            return settings.ads_address
        return HostPort(settings.ads_address.host, self._port(name, view.config.sidecar))

    def not_served(self, view: View | None, proxy: ProxyName, driver: str) -> str:
        """Return the reason why a driver's server does not serve a proxy; empty if it does, or if unknown."""
        workload = holder_of(view, proxy) if view is not None else None
        if view is None or workload is None:
            return ""
        named = driver_of(view, workload)
        try:
            its = self.installed.driver_of(view.config.sidecar, named).name
        except DriverError:
            return ""  # reported as a problem of its own; the proxy keeps its resources
        return "" if its == driver else f"workload {workload.key} is of sidecar driver {its}, not {driver}"

    def _default(self, config: SidecarSettings) -> str:
        try:
            return self._selected(config)
        except DriverError:
            return self._selected(SidecarSettings())

    def _selected(self, config: SidecarSettings) -> str:
        return self.installed.driver_of(config, "").name

    def _port(self, name: str, config: SidecarSettings) -> int:
        try:
            return select(config, self.environment, self.installed.ports, name).proxy_server_port
        except DriverError:
            return self.drivers[name].proxy_server_port


class DriverPages:
    """Pages and data of drivers for the debug server (`sidecars.contract.contexts.DebugHandlers`)."""

    def __init__(self) -> None:
        self._pages: dict[str, Page] = {}
        self._streams: list[Callable[[], tuple[StreamStatus, ...]]] = []
        self._secrets: list[Callable[[], Iterable[AcknowledgedSecrets]]] = []
        self._movable: list[MovableStreams] = []

    def page(self, path: str, shows: str, answer: DebugAnswer) -> None:
        """Add a driver's debug page; if a path is added twice, only the first page is served."""

        async def answered(request: web.Request) -> Document:
            try:
                response = await answer(request.query)
            except NothingThereError as error:
                raise NothingToShow(str(error)) from error
            return {name: jsonable(value) for name, value in response.items()}

        self._pages.setdefault(path, Page(path, shows, answered, PageLook(shows=shows)))

    def streams(self, statuses: Callable[[], tuple[StreamStatus, ...]]) -> None:
        """Register a function of a driver that returns the status of each stream to a proxy."""
        self._streams.append(statuses)

    def secrets(self, taken: Callable[[], Iterable[AcknowledgedSecrets]]) -> None:
        """Register a function of a driver that returns the secrets acknowledged by the driver's proxies."""
        self._secrets.append(taken)

    def movable(self, streams: MovableStreams) -> None:
        """Register a driver's streams that can be moved to other servers."""
        self._movable.append(streams)

    def movable_streams(self) -> tuple[MovableStreams, ...]:
        """Return the streams of all drivers that can be moved to other servers."""
        return tuple(self._movable)

    def taken(self) -> Iterator[AcknowledgedSecrets]:
        """Yield the secrets acknowledged by proxies, from all drivers with a function registered for them."""
        return itertools.chain.from_iterable(secrets() for secrets in self._secrets)

    def pages(self) -> tuple[Page, ...]:
        """Return the debug pages of all drivers, sorted by path."""
        return tuple(self._pages[path] for path in sorted(self._pages))

    def statuses(self) -> tuple[StreamStatus, ...]:
        """Return the status of each open stream between a proxy and a driver, for all drivers."""
        return tuple(status for statuses in self._streams for status in statuses())
