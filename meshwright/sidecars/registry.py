"""Registry of the sidecar drivers in this process, found by their entry points.

`contract.selection` chooses a driver for a workload by name; only then is it used.
"""

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Self

from meshwright.sidecars.contract.driver import SidecarDriver
from meshwright.sidecars.contract.errors import DuplicateDriverError, NoDriverError, NotADriverError

GROUP: Final = "meshwright.sidecars"
"""Entry-point group of drivers."""


class DriverRegistry:
    """The sidecar drivers registered in this process."""

    def __init__(self) -> None:
        self._drivers: dict[str, SidecarDriver] = {}

    @classmethod
    def discover(cls, installed: Iterable[EntryPoint] | None = None) -> Self:
        """Register every installed driver; raise DriverError for an unusable one."""
        registry = cls()
        points = entry_points(group=GROUP) if installed is None else installed
        # Sorted, so that of two drivers with the same name the same one is refused everywhere.
        for point in sorted(points, key=lambda entry_point: (entry_point.name, entry_point.value)):
            registry.register(_load(point))
        return registry

    @property
    def drivers(self) -> Mapping[str, SidecarDriver]:
        """Return the registered drivers by name, sorted; raise NoDriverError without any."""
        if not self._drivers:
            raise NoDriverError(
                "no sidecar driver is registered; is the package installed with its entry points?"
            )
        return dict(sorted(self._drivers.items()))

    def register(self, driver: SidecarDriver) -> None:
        """Add a driver; raise DuplicateDriverError if its name is taken."""
        if driver.name in self._drivers:
            raise DuplicateDriverError(f"sidecar driver {driver.name!r} is registered twice")
        self._drivers[driver.name] = driver


def _load(point: EntryPoint) -> SidecarDriver:
    try:
        driver = point.load()()
    # A driver is code of others and may fail in any way; the error must name the entry point.
    except Exception as error:
        raise NotADriverError(
            f"entry point {point.name} = {point.value} cannot be loaded: {error}"
        ) from error
    if not isinstance(driver, SidecarDriver):
        raise NotADriverError(f"entry point {point.name} = {point.value} is not a sidecar driver")
    return driver
