"""Sidecar drivers by name: registered once each, one of them chosen."""

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Self

from sidecars.driver import SidecarDriver
from sidecars.errors import (
    DuplicateDriverError,
    NoDriverError,
    NotADriverError,
    NotChosenError,
    UnknownDriverError,
)

GROUP: Final = "meshwright.sidecars"
"""The entry-point group in which drivers are found."""


class DriverRegistry:
    """The drivers of this process, and the one that the mesh uses."""

    def __init__(self) -> None:
        self._drivers: dict[str, SidecarDriver] = {}
        self._chosen: SidecarDriver | None = None

    @classmethod
    def discover(cls, found: Iterable[EntryPoint] | None = None) -> Self:
        """Register every installed driver; raise DriverError for one that is not usable."""
        registry = cls()
        points = entry_points(group=GROUP) if found is None else found
        for point in sorted(points, key=lambda each: (each.name, each.value)):
            registry.register(_load(point))
        return registry

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the registered drivers, sorted."""
        return tuple(sorted(self._drivers))

    @property
    def chosen(self) -> SidecarDriver:
        """Return the driver in use; raise NotChosenError before `choose`."""
        if self._chosen is None:
            raise NotChosenError("no sidecar driver has been chosen yet")
        return self._chosen

    @property
    def drivers(self) -> Mapping[str, SidecarDriver]:
        """Return the registered drivers by name."""
        return {name: self._drivers[name] for name in self.names}

    def register(self, driver: SidecarDriver) -> None:
        """Add a driver; raise DuplicateDriverError if its name is taken."""
        if driver.name in self._drivers:
            raise DuplicateDriverError(f"sidecar driver {driver.name!r} is registered twice")
        self._drivers[driver.name] = driver

    def choose(self, name: str) -> SidecarDriver:
        """Take the driver of that name into use and return it; raise if there is none."""
        if not self._drivers:
            raise NoDriverError(
                "no sidecar driver is registered; is the package installed with its entry points?"
            )
        if name not in self._drivers:
            raise UnknownDriverError(f"sidecar driver {name!r} is unknown; known: {', '.join(self.names)}")
        self._chosen = self._drivers[name]
        return self._chosen


def _load(point: EntryPoint) -> SidecarDriver:
    try:
        driver = point.load()()
    except Exception as error:
        raise NotADriverError(
            f"entry point {point.name} = {point.value} cannot be loaded: {error}"
        ) from error
    if not isinstance(driver, SidecarDriver):
        raise NotADriverError(f"entry point {point.name} = {point.value} is no sidecar driver")
    return driver
